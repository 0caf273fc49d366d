"""What manifests, indexes and image configurations say, as the OCI image specification defines them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.adapters.oci.references import is_digest
from bot.payloads.reading import Node, parse_time
from bot.ports import TerminalError

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
MANIFEST_TYPES = (OCI_INDEX, OCI_MANIFEST, DOCKER_LIST, DOCKER_MANIFEST)
"""All four are sent in `Accept`: a registry answers 404 for a manifest of a type that was not asked for."""

_CONFIG_TYPES = frozenset(
    {"application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"}
)
_CREATED = ("org.opencontainers.image.created", "org.label-schema.build-date")
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Child:
    """One entry of an index: an image for one platform."""

    digest: str
    platform: str


@dataclass(frozen=True, slots=True)
class Index:
    """An index: its own annotations and its images; entries for no platform (attestations) are left out."""

    annotations: Mapping[str, str]
    children: tuple[Child, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest; `config` is the digest of its image configuration, empty if it is none (a chart, for example)."""

    annotations: Mapping[str, str]
    config: str


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """What the configuration of an image says."""

    labels: Mapping[str, str]
    created_at: datetime | None
    platform: str


def read_manifest(node: Node, content_type: str) -> Index | Manifest:
    """An index or a manifest, told apart by its own media type, else by the response's, else by what it holds."""
    media_type = node.text("mediaType", default="") or content_type.split(";")[0].strip()
    if media_type in {OCI_INDEX, DOCKER_LIST} or (media_type not in MANIFEST_TYPES and node.has("manifests")):
        children = (_read_child(item) for item in node.items("manifests"))
        return Index(node.texts("annotations"), tuple(child for child in children if child is not None))
    config = node.find("config")
    is_image = config is not None and config.text("mediaType", default="") in _CONFIG_TYPES
    return Manifest(node.texts("annotations"), _read_digest(config) if config and is_image else "")


def read_config(node: Node) -> ImageConfig:
    """An image configuration; a time that is none counts as missing."""
    return ImageConfig(
        node.texts("config", "Labels"),
        _parse_time(node.text("created", default="")),
        _platform(node),
    )


def read_created(annotations: Mapping[str, str]) -> datetime | None:
    """When an image was built according to its annotations or labels.

    Kargo's order: `org.opencontainers.image.created`, then `org.label-schema.build-date`.
    """
    times = (_parse_time(annotations.get(key, "")) for key in _CREATED)
    return next((time for time in times if time is not None), None)


def verify_digest(content: bytes, digest: str, what: str) -> None:
    """Raises TerminalError if the bytes are not those that the digest names."""
    algorithm, _, expected = digest.partition(":")
    actual = hashlib.new(algorithm, content).hexdigest() if is_digest(digest) else ""
    if actual != expected:
        raise TerminalError(
            f"{what} is not what its digest says: wanted {digest[:150]}, got {algorithm}:{actual}"
        )


def compute_digest(content: bytes) -> str:
    """The digest under which a registry stores these bytes."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _read_child(item: Node) -> Child | None:
    node = item.find("platform")
    platform = _platform(node) if node is not None else ""
    return Child(_read_digest(item), platform) if platform else None


def _read_digest(node: Node) -> str:
    digest = node.text("digest")
    if not is_digest(digest):
        raise node.fail("a digest was expected", "digest")
    return digest


def _platform(node: Node) -> str:
    """`os/architecture` or `os/architecture/variant`; empty if either is missing or unknown."""
    system, architecture = node.text("os", default=""), node.text("architecture", default="")
    if not system or not architecture or _UNKNOWN in {system, architecture}:
        return ""
    variant = node.text("variant", default="")
    return f"{system}/{architecture}/{variant}" if variant else f"{system}/{architecture}"


def _parse_time(text: str) -> datetime | None:
    try:
        return parse_time(text)
    except ValueError:
        # People write labels by hand; a wrong one must not hide the time that the configuration has.
        return None
