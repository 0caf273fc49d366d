"""The port `Registry` on the OCI distribution API, for any number of registries."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TypeVar
from urllib.parse import urljoin

import httpx

from bot.adapters.oci.manifests import (
    Child,
    ImageConfig,
    Index,
    Manifest,
    compute_digest,
    read_config,
    read_created,
    read_manifest,
    verify_digest,
)
from bot.adapters.oci.references import Reference, is_digest, is_loopback, is_tag, parse_reference
from bot.adapters.oci.signing import Asked, Credentials, Purpose, Signer, refuse_credentials
from bot.adapters.oci.wire import Answer, Wire, manifest_headers
from bot.payloads.reading import PayloadProblem, read_json
from bot.ports import ImageFacts, TerminalError

_K = TypeVar("_K")
_V = TypeVar("_V")

_LIST_CAP = 16 * 1024 * 1024
_MANIFEST_CAP = 4 * 1024 * 1024
_CONFIG_CAP = 8 * 1024 * 1024
_PAGE = 1000
_MOST_PAGES = 1000
_MOST_CHILDREN = 64
_MOST_REMEMBERED = 50_000


class OciRegistries:
    """Registries asked by their v2 API; used within `async with`, on one event loop.

    `credentials` gives user and password per `host/path`. Loopback registries and those in `insecure_hosts` are
    asked over plain http. At most `concurrent` requests run at a time; `timeout` is in seconds.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        insecure_hosts: frozenset[str] = frozenset(),
        concurrent: int = 16,
        timeout: float = 30.0,
    ) -> None:
        self._insecure_hosts = frozenset(host.lower() for host in insecure_hosts)
        self.wire = Wire(concurrent=concurrent, timeout=timeout)
        self.signer = Signer(credentials, self._insecure_hosts, self.wire)
        self._facts: OrderedDict[str, ImageFacts] = OrderedDict()
        self._tags: OrderedDict[tuple[Reference, str], str] = OrderedDict()

    async def __aenter__(self) -> OciRegistries:
        await self.wire.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        await self.wire.__aexit__(kind, error, trace)

    async def list_tags(self, repository: str, *, insecure: bool = False) -> Sequence[str]:
        """All tags, page after page; a link to another host is refused, since the token would go with it."""
        reference = parse_reference(repository)
        url = start = httpx.URL(f"{self.base(reference)}/tags/list?n={_PAGE}")
        seen: set[httpx.URL] = set()
        tags: list[str] = []
        while url not in seen and len(seen) < _MOST_PAGES:
            seen.add(url)
            answer = await self.ask(reference, str(url), cap=_LIST_CAP, insecure=insecure)
            if answer is None:
                # NAME_UNKNOWN: nothing was pushed there yet.
                return ()
            root = read_json(answer.body, problem_of(str(url)))
            tags += [item.value for item in root.items("tags") if isinstance(item.value, str)]
            following = httpx.Response(200, headers=answer.headers).links.get("next", {}).get("url", "")
            if not following:
                return tuple(tags)
            url = httpx.URL(urljoin(str(url), following))
            if (url.scheme, url.netloc) != (start.scheme, start.netloc):
                raise TerminalError(
                    f"{reference.host} sends us to {url.host} for more tags; a link to another host is not followed"
                )
        raise TerminalError(f"the list of tags of {reference} does not end: {len(seen)} pages were read")

    async def find_image(
        self, repository: str, tag: str, *, insecure: bool = False, cache_by_tag: bool = False
    ) -> ImageFacts | None:
        """Digest and metadata of a tag; one HEAD suffices where the digest is known already.

        With `cache_by_tag` a tag that was found once is never asked for again while this process lives.

        `created_at` is found as Kargo does: the annotation or label, then the configuration; for an index its own
        annotation, then its newest image. Annotations of a plain image are its labels, overlaid by its manifest's.
        """
        reference = parse_reference(repository)
        if not is_tag(tag):
            raise TerminalError(f"{tag!r} can be no tag of {reference}")
        digest = self._tags.get((reference, tag)) if cache_by_tag else None
        if digest is None:
            digest = await self._find_digest(reference, tag, insecure=insecure)
        if digest is None:
            return None
        facts = self._facts.get(digest)
        if facts is None:
            facts = await self._read_facts(reference, digest, insecure=insecure)
            if facts is None:
                # The tag moved and its manifest was collected between the two requests.
                return None
            _remember(self._facts, digest, facts)
        if cache_by_tag:
            _remember(self._tags, (reference, tag), digest)
        return dataclasses.replace(facts, tag=tag)

    # -- manifests -------------------------------------------------------------------------------------------

    async def _find_digest(self, reference: Reference, tag: str, *, insecure: bool) -> str | None:
        """The digest of a tag by HEAD, which Docker Hub does not count as a pull; by GET where HEAD names none."""
        url = f"{self.base(reference)}/manifests/{tag}"
        answer = await self.ask(reference, url, method="HEAD", cap=_MANIFEST_CAP, insecure=insecure)
        if answer is None:
            return None
        digest = str(answer.headers.get("docker-content-digest", ""))
        if is_digest(digest):
            return digest
        whole = await self.ask(reference, url, cap=_MANIFEST_CAP, insecure=insecure)
        return None if whole is None else compute_digest(whole.body)

    async def _read_facts(self, reference: Reference, digest: str, *, insecure: bool) -> ImageFacts | None:
        manifest = await self._read_manifest(reference, digest, insecure=insecure)
        if manifest is None:
            return None
        if isinstance(manifest, Manifest):
            return await self._read_image(reference, digest, manifest, insecure=insecure)
        created = read_created(manifest.annotations)
        if created is None:
            created = await self._newest(reference, manifest.children, insecure=insecure)
        platforms = tuple(dict.fromkeys(child.platform for child in manifest.children))
        return ImageFacts("", digest, created, manifest.annotations, platforms)

    async def _read_image(
        self, reference: Reference, digest: str, manifest: Manifest, *, insecure: bool
    ) -> ImageFacts:
        config = await self._read_config(reference, manifest.config, insecure=insecure)
        annotations: Mapping[str, str] = {**config.labels, **manifest.annotations}
        created = read_created(annotations) or config.created_at
        return ImageFacts("", digest, created, annotations, (config.platform,) if config.platform else ())

    async def _newest(
        self, reference: Reference, children: Sequence[Child], *, insecure: bool
    ) -> datetime | None:
        if len(children) > _MOST_CHILDREN:
            raise TerminalError(
                f"an index of {reference} has {len(children)} images; at most {_MOST_CHILDREN} are read"
            )
        facts = await asyncio.gather(
            *(self._read_facts_of_child(reference, child, insecure=insecure) for child in children)
        )
        return max((item.created_at for item in facts if item and item.created_at), default=None)

    async def _read_facts_of_child(
        self, reference: Reference, child: Child, *, insecure: bool
    ) -> ImageFacts | None:
        manifest = await self._read_manifest(reference, child.digest, insecure=insecure)
        # An index within an index has no time of its own; nobody builds those.
        if not isinstance(manifest, Manifest):
            return None
        return await self._read_image(reference, child.digest, manifest, insecure=insecure)

    async def _read_manifest(
        self, reference: Reference, digest: str, *, insecure: bool
    ) -> Index | Manifest | None:
        url = f"{self.base(reference)}/manifests/{digest}"
        answer = await self.ask(reference, url, cap=_MANIFEST_CAP, insecure=insecure)
        if answer is None:
            return None
        verify_digest(answer.body, digest, f"the manifest of {reference}")
        return read_manifest(read_json(answer.body, problem_of(url)), answer.headers.get("content-type", ""))

    async def _read_config(self, reference: Reference, digest: str, *, insecure: bool) -> ImageConfig:
        if not digest:
            return ImageConfig({}, None, "")
        url = f"{self.base(reference)}/blobs/{digest}"
        answer = await self.ask(reference, url, cap=_CONFIG_CAP, insecure=insecure)
        if answer is None:
            raise TerminalError(f"{reference} has no configuration {digest}, although its manifest names it")
        verify_digest(answer.body, digest, f"the configuration of {reference}")
        return read_config(read_json(answer.body, problem_of(url)))

    # -- requests ----------------------------------------------------------------------------------------------

    def base(self, reference: Reference) -> str:
        """The address below which a repository is asked."""
        is_plain = is_loopback(reference.host) or reference.host in self._insecure_hosts
        return f"{'http' if is_plain else 'https'}://{reference.host}/v2/{reference.path}"

    async def ask(
        self, reference: Reference, url: str, *, cap: int, insecure: bool, method: str = "GET"
    ) -> Answer | None:
        """One answer, signed as the registry asks for it; None for 404."""
        headers = manifest_headers() if "/manifests/" in url else {}
        purpose = Purpose.LIST if "/tags/list" in url else Purpose.PULL
        answer = await self.send(reference, method, url, headers, purpose=purpose, cap=cap, insecure=insecure)
        if answer.status == 404:
            return None
        if answer.status in {401, 403}:
            raise refuse_credentials(reference)
        if answer.status >= 300:
            raise TerminalError(
                f"{reference.host} answered {answer.status} to {method} {url}: {read_reason(answer)}"
            )
        return answer

    async def send(
        self,
        reference: Reference,
        method: str,
        url: str,
        headers: dict[str, str],
        *,
        purpose: Purpose,
        cap: int = _MANIFEST_CAP,
        insecure: bool,
        content: bytes | None = None,
    ) -> Answer:
        """One answer of any status below 500 but 429, signed as the registry asks for it."""
        sent = self.signer.header(reference, purpose)
        signed = sign(headers, sent)
        answer = await self.wire.send(
            method, url, cap=cap, insecure=insecure, headers=signed, content=content
        )
        if answer.status == 401:
            fresh = await self.signer.answer(reference, answer, Asked(purpose, sent, insecure))
            signed = sign(headers, fresh)
            answer = await self.wire.send(
                method, url, cap=cap, insecure=insecure, headers=signed, content=content
            )
        return answer


def _remember(cache: OrderedDict[_K, _V], key: _K, value: _V) -> None:
    cache[key] = value
    while len(cache) > _MOST_REMEMBERED:
        cache.popitem(last=False)


def sign(headers: dict[str, str], authorization: str) -> dict[str, str]:
    """The headers with the signature, where there is one."""
    return headers | {"Authorization": authorization} if authorization else headers


def read_reason(answer: Answer) -> str:
    """The first error of a registry's list of errors, bounded."""
    try:
        first = next(read_json(answer.body).items("errors"), None)
        if first is None:
            return "it gave no reason"
        return f"{first.text('code', default='')} {first.text('message', default='')}".strip()[:300]
    except PayloadProblem:
        return "it gave no reason"


def problem_of(url: str) -> Callable[[str, str], Exception]:
    """What to raise for an answer that is not as the specification says."""

    def problem(path: str, message: str) -> Exception:
        place = f" at {path}" if path else ""
        return TerminalError(
            f"the answer to GET {url} is not what the OCI specification says{place}: {message}"
        )

    return problem
