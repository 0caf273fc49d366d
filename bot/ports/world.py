"""Argo CD, registries, secrets, time and whatever else a pipeline reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bot.domain.argocd import Application
from bot.domain.values import Json


class Clock(Protocol):
    """The time, as an aware datetime in UTC."""

    def now(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class SyncStarted:
    """Argo CD accepted the operation."""


@dataclass(frozen=True, slots=True)
class SyncRefused:
    """It did not; `busy` tells that another operation is running, else the message says why."""

    message: str
    busy: bool = False


class ArgoCD(Protocol):
    """One Argo CD server by its REST API.

    Raises TransientError, and TerminalError for a refused token, a missing permission or an unknown server.
    """

    async def get_application(
        self, server: str, name: str, *, namespace: str = "", project: str = "", refresh: str = ""
    ) -> Application | None:
        """Read an Application; refresh is empty, `normal` or `hard`. None if it does not exist."""

    async def list_applications(
        self, server: str, selector: str, *, namespace: str = "", project: str = ""
    ) -> Sequence[Application]:
        """Applications whose labels match a Kubernetes selector."""

    async def sync(
        self, server: str, application: Application, *, revision: str, infos: Mapping[str, str]
    ) -> SyncStarted | SyncRefused:
        """Start an operation that carries `infos`; look for a running one of ours before asking."""

    async def patch_sources(self, server: str, application: Application, sources: Sequence[Json]) -> None:
        """Replace the sources of an Application by these."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What a registry tells of one tag; `digest` is that of the index where the tag is one."""

    tag: str
    digest: str
    created_at: datetime | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    platforms: tuple[str, ...] = ()


class Registry(Protocol):
    """OCI registries. Raises TransientError (network, 429 with `retry_after`, 5xx) and TerminalError (refused)."""

    async def list_tags(self, repository: str, *, insecure: bool = False) -> Sequence[str]:
        """All tags of `host/path`, in the registry's order; an unknown repository has none."""

    async def find_image(
        self, repository: str, tag: str, *, insecure: bool = False, cache_by_tag: bool = False
    ) -> ImageFacts | None:
        """Digest and metadata of one tag, None if it does not exist; metadata is cached by digest.

        `cache_by_tag` says that tags are never moved, so that what is known of one is not asked for again.
        """


class Registries(Protocol):
    """OCI registries, asked for one project each."""

    async def of(self, project: str) -> Registry:
        """The registries, read with the logins of this project and the shared ones alone."""
        ...


class Charts(Protocol):
    """Repositories of Helm charts. Raises TransientError and TerminalError as `Registry` does."""

    async def list_versions(
        self, project: str, repository: str, chart: str, *, insecure: bool = False
    ) -> Sequence[str]:
        """All versions of a chart in the repository's own order, read with the project's credentials.

        `repository` begins with `https://` (or `http://`) and holds `chart`, or with `oci://` and is the chart; there
        the versions are tags. A chart that does not exist has none.
        """


class Secrets(Protocol):
    """Secrets and ConfigMaps by project and name: documents, a directory of files, environment variables."""

    def secret(self, project: str, name: str) -> Mapping[str, str] | None: ...

    def config_map(self, project: str, name: str) -> Mapping[str, str] | None: ...


class Vault(Protocol):
    """Encryption and keyed hashes with keys that are not in the database."""

    def seal(self, data: bytes, purpose: str) -> bytes:
        """Encrypt and authenticate; `purpose` must be the same when it is opened."""

    def open(self, sealed: bytes, purpose: str) -> bytes:
        """Raises TerminalError if it was sealed with another key or for another purpose."""

    def digest(self, data: bytes) -> str:
        """A keyed hash, 64 hex digits; equal for equal data as long as the key is kept."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request of the `http` step; times are seconds."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    timeout: float = 10.0
    insecure: bool = False
    proxy: str = ""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What came back; header names are as received, the body is bounded by the adapter."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Http(Protocol):
    """Requests to addresses that a pipeline names; link-local targets are refused.

    Raises TransientError and TerminalError.
    """

    async def send(self, request: HttpRequest) -> HttpResponse: ...


class Dns(Protocol):
    """Names to addresses and aliases."""

    async def resolve(self, name: str) -> tuple[str, ...]:
        """Canonical name and addresses, empty if it does not resolve."""


class ConfigSource(Protocol):
    """Where the pipeline's files come from. Raises TransientError and TerminalError."""

    async def read(self) -> tuple[str, Mapping[str, str]]:
        """The revision (a commit, or a hash of the contents) and the files by path."""
