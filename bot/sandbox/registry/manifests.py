"""Reading and checking image manifests and indexes before they are stored."""

from __future__ import annotations

import json
from typing import Any, Final

from bot.sandbox.registry.errors import Code, RegistryError
from bot.sandbox.registry.storage import DIGEST, Storage

OCI_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX: Final = "application/vnd.oci.image.index.v1+json"
DOCKER_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST: Final = "application/vnd.docker.distribution.manifest.list.v2+json"
MEDIA_TYPES: Final = (OCI_MANIFEST, OCI_INDEX, DOCKER_MANIFEST, DOCKER_LIST)
LARGEST: Final = 4 * 1024 * 1024
"""Bytes; larger manifests are refused, as Distribution does."""


def read_manifest(body: bytes, media_type: str) -> dict[str, Any]:
    """The manifest as an object; MANIFEST_INVALID when its body or declared type is wrong."""
    if len(body) > LARGEST:
        raise RegistryError(Code.SIZE_INVALID, f"manifests may have at most {LARGEST} bytes")
    if media_type not in MEDIA_TYPES:
        raise RegistryError(
            Code.MANIFEST_INVALID, "manifest invalid", reason=f"unrecognized content type {media_type}"
        )
    try:
        manifest = json.loads(body)
    except ValueError as error:
        raise RegistryError(Code.MANIFEST_INVALID, "manifest invalid", reason=str(error)) from error
    if not isinstance(manifest, dict) or manifest.get("schemaVersion") != 2:
        raise RegistryError(Code.MANIFEST_INVALID, "manifest invalid", reason="schemaVersion must be 2")
    if manifest.get("mediaType", media_type) != media_type:
        raise RegistryError(
            Code.MANIFEST_INVALID, "manifest invalid", reason="mediaType differs from the Content-Type header"
        )
    return manifest


def check_references(storage: Storage, repository: str, manifest: dict[str, Any], media_type: str) -> None:
    """Refuse a manifest that points at what the repository does not have."""
    if media_type in (OCI_INDEX, DOCKER_LIST):
        for digest in _digests(manifest.get("manifests")):
            if not storage.has_manifest(repository, digest):
                raise RegistryError(
                    Code.MANIFEST_BLOB_UNKNOWN, "manifest blob unknown to registry", digest=digest
                )
        return
    for digest in _digests([manifest.get("config"), *_list(manifest.get("layers"))]):
        try:
            storage.blob(repository, digest)
        except RegistryError as error:
            raise RegistryError(
                Code.MANIFEST_BLOB_UNKNOWN, "manifest blob unknown to registry", digest=digest
            ) from error


def references(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The descriptors that a manifest points at."""
    if "manifests" in manifest:
        return [item for item in _list(manifest["manifests"]) if isinstance(item, dict)]
    return [
        item for item in [manifest.get("config"), *_list(manifest.get("layers"))] if isinstance(item, dict)
    ]


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise RegistryError(
            Code.MANIFEST_INVALID, "manifest invalid", reason="a list of descriptors is missing"
        )
    return value


def _digests(descriptors: object) -> list[str]:
    found = []
    for descriptor in _list(descriptors):
        digest = descriptor.get("digest") if isinstance(descriptor, dict) else None
        if not isinstance(digest, str) or not DIGEST.fullmatch(digest):
            raise RegistryError(
                Code.MANIFEST_INVALID, "manifest invalid", reason="a descriptor has no sha256 digest"
            )
        found.append(digest)
    return found
