"""Small real images: a layer with one file, a config, a manifest, and an index when there are several platforms."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bot.sandbox.registry.manifests import OCI_INDEX, OCI_MANIFEST
from bot.sandbox.registry.storage import Manifest, digest_of

_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


@dataclass(frozen=True, slots=True)
class Image:
    """Everything to push, in the order in which a client pushes it; the last manifest gets the tag."""

    blobs: tuple[bytes, ...]
    manifests: tuple[Manifest, ...]


def build_image(
    repository: str, tag: str, *, created: datetime, labels: Mapping[str, str], platforms: tuple[str, ...]
) -> Image:
    """An image as a build would make it; `platforms` are `os/arch` or `os/arch/variant`.

    One platform gives a manifest, several an index. Raises ValueError when there is none or one is misspelt.
    """
    if not platforms:
        raise ValueError("an image needs at least one platform, such as linux/amd64")
    stamp = created.astimezone(UTC).isoformat().replace("+00:00", "Z")
    all_labels = {
        "org.opencontainers.image.created": stamp,
        "org.opencontainers.image.title": repository.rpartition("/")[2],
        "org.opencontainers.image.version": tag,
        **labels,
    }
    blobs: list[bytes] = []
    manifests: list[Manifest] = []
    entries: list[dict[str, Any]] = []
    for platform in platforms:
        described = _platform(platform)
        layer = _layer(f"{repository} {tag} for {platform}\n", created)
        config = _config(described, stamp, all_labels, layer)
        manifest = _manifest(
            OCI_MANIFEST, config=_descriptor(_CONFIG, config), layers=[_descriptor(_LAYER, layer)]
        )
        blobs += [layer, config]
        manifests.append(manifest)
        entries.append({**_descriptor(OCI_MANIFEST, manifest.body), "platform": described})
    if len(platforms) > 1:
        manifests.append(_manifest(OCI_INDEX, manifests=entries, annotations=all_labels))
    return Image(tuple(blobs), tuple(manifests))


def _platform(text: str) -> dict[str, str]:
    parts = text.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise ValueError(f"platform {text} must be os/arch or os/arch/variant, such as linux/arm64")
    return dict(zip(("os", "architecture", "variant"), parts, strict=False))


def _layer(content: str, created: datetime) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        entry = tarfile.TarInfo("app/version.txt")
        entry.size, entry.mtime = len(content.encode()), int(created.timestamp())
        archive.addfile(entry, io.BytesIO(content.encode()))
    return gzip.compress(raw.getvalue(), mtime=0)


def _config(platform: Mapping[str, str], created: str, labels: Mapping[str, str], layer: bytes) -> bytes:
    config = {
        **platform,
        "created": created,
        "config": {"Labels": dict(labels), "Cmd": ["/app/serve"]},
        "rootfs": {"type": "layers", "diff_ids": [digest_of(gzip.decompress(layer))]},
        "history": [{"created": created, "created_by": "sandbox"}],
    }
    return json.dumps(config).encode()


def _descriptor(media_type: str, body: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": digest_of(body), "size": len(body)}


def _manifest(media_type: str, **content: object) -> Manifest:
    body = json.dumps({"schemaVersion": 2, "mediaType": media_type, **content}).encode()
    return Manifest(digest_of(body), media_type, body)
