"""Harbor's webhooks as notices: its own format, and CloudEvents (Harbor's "Configure Webhook Notifications")."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.domain.receiving import TagsPushed
from bot.domain.values import Json
from bot.payloads.reading import Node, UnsupportedEventError

_PUSHES = {"PUSH_ARTIFACT": "event_data", "harbor.artifact.pushed": "data"}
"""The types of a push, and where its resources stand."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def parse_harbor(event: str, root: Node, config: Mapping[str, Json]) -> tuple[TagsPushed, ...]:  # noqa: ARG001
    """The tags that were pushed, by repository. Raises UnsupportedEventError for everything but a push."""
    kind = root.text("type", default="")
    if kind not in _PUSHES:
        raise UnsupportedEventError(f"the type {kind!r} is no push")
    found: list[TagsPushed] = []
    for resource in root.items(_PUSHES[kind], "resources"):
        tag = resource.text("tag", default="")
        if tag and _DIGEST.fullmatch(tag) is None:
            found.append(TagsPushed(_repository(resource.text("resource_url", default="")), (tag,)))
    return tuple(found)


def _repository(reference: str) -> str:
    base = reference.partition("@")[0]
    name, colon, tag = base.rpartition(":")
    return name if colon and "/" not in tag else base
