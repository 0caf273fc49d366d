"""Quay's notification `repo_push` as notices (Quay's "Repository Notifications"). They are not signed."""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.receiving import TagsPushed
from bot.domain.values import Json
from bot.payloads.reading import Node


def parse_quay(event: str, root: Node, config: Mapping[str, Json]) -> tuple[TagsPushed, ...]:  # noqa: ARG001
    """The tags that were pushed; older versions of Quay give them as an object from tag to image."""
    tags = root.find("updated_tags")
    if tags is not None and isinstance(tags.value, dict):
        names = tuple(tags.texts())
    else:
        names = tuple(item.text() for item in root.items("updated_tags"))
    return (TagsPushed(root.text("docker_url", default=""), names),)
