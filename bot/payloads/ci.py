"""What a CI job tells after it has published something, in our own shape.

    {"image": "registry.example/pay/api", "tag": "1.8.2"}
    {"git": {"url": "https://git.example/pay/api.git", "ref": "refs/heads/main"}}

Either or both; `image` is an OCI chart's address as well. Everything else in the body is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.receiving import Notice, RefsMoved, TagsPushed
from bot.domain.values import Json
from bot.payloads.reading import Node


def parse_ci(event: str, root: Node, config: Mapping[str, Json]) -> tuple[Notice, ...]:  # noqa: ARG001
    """What was published. Raises PayloadProblem if nothing is named."""
    found: list[Notice] = []
    if root.has("image"):
        found.append(TagsPushed(root.text("image"), (root.text("tag"),)))
    if root.has("git"):
        found.append(RefsMoved((root.text("git", "url"),), (root.text("git", "ref"),)))
    if not found:
        raise root.fail("give image and tag, or git with url and ref")
    return tuple(found)
