"""Docker Hub's webhooks as notices (Docker's "Webhooks" page).

They are not signed; `callback_url` is never called.
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.receiving import TagsPushed
from bot.domain.values import Json
from bot.payloads.reading import Node


def parse_dockerhub(event: str, root: Node, config: Mapping[str, Json]) -> tuple[TagsPushed, ...]:  # noqa: ARG001
    """The tag that was pushed."""
    repository = root.text("repository", "repo_name", default="")
    return (TagsPushed(repository, (root.text("push_data", "tag", default=""),)),)
