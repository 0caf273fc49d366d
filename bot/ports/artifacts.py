"""What OCI registries hold, as bytes: read by tag or digest, and copied from one place to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Layer:
    """The content of one layer and what the registry calls it."""

    data: bytes
    media_type: str
    digest: str


@dataclass(frozen=True, slots=True)
class Copy:
    """An artifact to be at `destination` (`host/path:tag`), as it is at `source` (`host/path@digest`).

    `annotations` go to image manifests, or with the prefix `index:` to the index; those there are stay otherwise.
    """

    source: str
    destination: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    insecure: bool = False


class Artifacts(Protocol):
    """OCI registries. References are `host/path:tag` or `host/path@digest`; `oci://` may stand before.

    Raises TransientError (network, 429, 5xx) and TerminalError (refused, not there, too large).
    """

    async def resolve(self, reference: str, *, insecure: bool = False) -> str | None:
        """The digest that a reference leads to now, None if it does not exist."""

    async def download(self, reference: str, *, media_type: str = "", insecure: bool = False) -> Layer | None:
        """The first layer of this media type (empty: of any), None if there is none; at most 100 MiB.

        Of an index the image for linux/amd64 counts, or its only one.
        """

    async def foresee(self, copy: Copy) -> str:
        """The digest that the copy will have; nothing is written."""

    async def copy(self, copy: Copy) -> str:
        """Copy it with everything it consists of; gives its digest. What is there already is not sent again."""


class ArtifactsOfProjects(Protocol):
    """Artifacts, read and written for one project each."""

    async def of(self, project: str) -> Artifacts:
        """The artifacts, reached with the logins of this project and the shared ones alone."""
        ...
