"""Notifications of an OCI registry (CNCF Distribution and those that copy its format) as events.

Format: "Notifications" in the Distribution documentation; the sandbox's registry sends the same.
"""

from __future__ import annotations

import re

from bot.domain.events import ImagePushed
from bot.payloads.reading import Node, read_json

_MANIFESTS = frozenset(
    {
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    }
)
_HOST = re.compile(r"[A-Za-z0-9.-]+(:\d+)?|\[[0-9a-fA-F:]+\](:\d+)?")
_PATH = re.compile(r"[a-z0-9]+([._/-]+[a-z0-9]+)*")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def parse_notifications(body: bytes) -> tuple[ImagePushed, ...]:
    """The tags that were pushed, each once, in the order of the body.

    Pulls, deletes, blobs and manifests without a tag (the parts of an index) are passed over.
    Raises PayloadProblem for a body that is no notification.
    """
    return read_notifications(read_json(body))


def read_notifications(root: Node) -> tuple[ImagePushed, ...]:
    """The same of a body that was read as JSON."""
    root.at("events")
    pushed = [event for item in root.items("events") if (event := _parse_event(item)) is not None]
    return tuple(dict.fromkeys(pushed))


def _parse_event(item: Node) -> ImagePushed | None:
    if item.text("action") != "push":
        return None
    target = item.at("target")
    tag = target.text("tag", default="")
    if not tag or target.text("mediaType", default="") not in _MANIFESTS:
        return None
    host, path = item.text("request", "host"), target.text("repository")
    if _HOST.fullmatch(host) is None:
        raise item.fail("a host name was expected", "request", "host")
    if _PATH.fullmatch(path) is None:
        raise target.fail("a repository path was expected", "repository")
    digest = target.text("digest", default="")
    return ImagePushed(f"{host.lower()}/{path}", tag, digest if _DIGEST.fullmatch(digest) else "")
