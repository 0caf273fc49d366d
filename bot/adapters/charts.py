"""The port `Charts`: versions from the index of a classic repository, or from the tags of an OCI one."""

from __future__ import annotations

import asyncio
import base64
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from urllib.parse import urlsplit

import yaml

from bot.adapters.oci.client import OciRegistries
from bot.adapters.oci.wire import Answer, Wire
from bot.ports import TerminalError

_INDEX_CAP = 48 * 1024 * 1024
_MOST_REMEMBERED = 200
_MOST_VERSIONS = 100_000
_MOST_DEPTH = 64

Credentials = Callable[[str, str], Awaitable["tuple[str, str] | None"]]
"""User and password by project and repository; the address of a classic one, `host/path` of an OCI one."""


@dataclass(frozen=True, slots=True)
class _Index:
    """What an index said of a chart, and by which header it is told whether that still holds."""

    etag: str
    versions: tuple[str, ...]


@dataclass(slots=True)
class HelmRepositories:
    """Chart repositories; used within `async with`, on one event loop. An index that has not changed is not read again.

    `timeout` is in seconds.
    """

    credentials: Credentials
    timeout: float = 60.0
    wire: Wire = field(init=False)
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    registries: dict[str, OciRegistries] = field(default_factory=dict)
    known: OrderedDict[tuple[str, str, str], _Index] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.wire = Wire(concurrent=4, timeout=self.timeout)

    async def __aenter__(self) -> HelmRepositories:
        await self.stack.enter_async_context(self.wire)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        self.registries = {}
        await self.stack.aclose()

    async def list_versions(
        self, project: str, repository: str, chart: str, *, insecure: bool = False
    ) -> Sequence[str]:
        """See `Charts.list_versions`."""
        if repository.startswith("oci://"):
            registries = await self._registries_of(project)
            return await registries.list_tags(repository.removeprefix("oci://"), insecure=insecure)
        return await self._read_index(project, repository, chart, insecure=insecure)

    async def _registries_of(self, project: str) -> OciRegistries:
        """Registries with the project's own logins; what one project may read, another may not by that."""
        if project not in self.registries:

            async def login(repository: str) -> tuple[str, str] | None:
                return await self.credentials(project, repository)

            made = OciRegistries(login, concurrent=4)
            self.registries[project] = made
            await self.stack.enter_async_context(made)
        return self.registries[project]

    async def _read_index(
        self, project: str, repository: str, chart: str, *, insecure: bool
    ) -> tuple[str, ...]:
        parts = urlsplit(repository)
        if parts.scheme not in {"https", "http"} or not parts.netloc or parts.username is not None:
            raise TerminalError(
                f"{repository!r} is no chart repository; write https://HOST/PATH without credentials, or oci://"
            )
        url = f"{repository.rstrip('/')}/index.yaml"
        login = await self.credentials(project, repository)
        key = (project, url, chart)
        known = self.known.get(key)
        headers = {"Authorization": _basic(login)} if login is not None else {}
        if known is not None:
            headers["If-None-Match"] = known.etag
        answer = await self.wire.send("GET", url, cap=_INDEX_CAP, insecure=insecure, headers=headers)
        if answer.status == 304 and known is not None:
            return known.versions
        _check(answer, url)
        # A large index takes seconds, in which others must be answered.
        versions = await asyncio.to_thread(read_index, answer.body, chart, url)
        self.known.pop(key, None)
        etag = str(answer.headers.get("etag", ""))
        if etag:
            self.known[key] = _Index(etag, versions)
            while len(self.known) > _MOST_REMEMBERED:
                self.known.popitem(last=False)
        return versions


def _check(answer: Answer, url: str) -> None:
    if answer.status == 200:
        return
    if answer.status in {401, 403}:
        raise TerminalError(
            f"{url} answered {answer.status}; check the Secret with the label kargo.akuity.io/cred-type: helm for it"
        )
    raise TerminalError(f"{url} answered {answer.status}; check the address of the chart repository")


def read_index(text: bytes, chart: str, url: str) -> tuple[str, ...]:
    """The versions of a chart in an index, in its order; none if the chart is not in it.

    The index is read as a stream, since that of a large repository would take hundreds of megabytes as objects, and
    aliases in it are not followed. Raises TerminalError for what is no index.
    """
    try:
        return tuple(_find_versions(text, chart, url))
    except yaml.YAMLError as error:
        said = re.sub(r"\s+", " ", str(error))[:200]
        raise TerminalError(f"{url} is no index of charts: {said}") from error
    except UnicodeDecodeError as error:
        raise TerminalError(f"{url} is no index of charts: it is no UTF-8 text") from error


def _find_versions(text: bytes, chart: str, url: str) -> Iterator[str]:
    """Walk through the events; `path` holds a key per open mapping, None where a key comes next or in a list."""
    path: list[str | None] = []
    is_list: list[bool] = []
    found = 0
    has_entries = False
    for event in yaml.parse(text.decode(), Loader=yaml.CSafeLoader):
        at_key = bool(path) and not is_list[-1] and path[-1] is None
        if at_key and isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent)):
            path[-1] = event.value if isinstance(event, yaml.ScalarEvent) else ""
            has_entries = has_entries or path == ["entries"]
            continue
        if isinstance(event, yaml.CollectionStartEvent):
            if len(path) == _MOST_DEPTH:
                raise TerminalError(
                    f"{url} is nested more than {_MOST_DEPTH} deep, which no index of charts is"
                )
            path.append(None)
            is_list.append(isinstance(event, yaml.SequenceStartEvent))
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            path.pop()
            is_list.pop()
        elif isinstance(event, yaml.ScalarEvent) and path == ["entries", chart, None, "version"]:
            found += 1
            if found > _MOST_VERSIONS:
                raise TerminalError(f"{url} lists more than {_MOST_VERSIONS} versions of {chart}")
            yield event.value
        elif not isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent)):
            continue
        if path and not is_list[-1]:
            # The value is over, and a key comes next.
            path[-1] = None
    if not has_entries:
        raise TerminalError(f"{url} is no index of charts: it has no entries")


def _basic(login: tuple[str, str]) -> str:
    name, password = login
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"
