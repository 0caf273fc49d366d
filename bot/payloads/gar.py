"""Notifications of Google Artifact Registry, as a Pub/Sub push subscription of the topic `gcr` sends them, as notices.

Shape: Google's "Configure Pub/Sub notifications" and "Push subscriptions", with or without the wrapper of Pub/Sub.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from bot.domain.receiving import TagsPushed
from bot.domain.values import Json
from bot.payloads.reading import Node, UnsupportedEventError, read_json


def parse_gar(event: str, root: Node, config: Mapping[str, Json]) -> tuple[TagsPushed, ...]:  # noqa: ARG001
    """The tag that was pushed. Raises UnsupportedEventError for deletions."""
    pushed = _unwrap(root) if root.has("message") else root
    action = pushed.text("action", default="")
    if action != "INSERT":
        raise UnsupportedEventError(f"the action {action!r} is no push")
    repository, colon, tag = pushed.text("tag", default="").rpartition(":")
    if not colon or "/" in tag:
        return ()
    return (TagsPushed(repository, (tag,)),)


def _unwrap(root: Node) -> Node:
    encoded = root.text("message", "data")
    try:
        return read_json(base64.b64decode(encoded, validate=True))
    except (binascii.Error, ValueError) as error:
        raise root.fail("JSON in base64 was expected", "message", "data") from error
