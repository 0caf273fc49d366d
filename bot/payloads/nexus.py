"""Webhooks of Sonatype Nexus 3 repositories (`rm:repository:component`) as notices.

Shape: Sonatype's "Webhooks" page. The payload does not know where images are pulled from, so the receiver's `registry`
says it: `nexus.example:5000`, or `nexus.example/docker-hosted` where paths tell repositories apart.
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.receiving import TagsPushed
from bot.domain.values import Json
from bot.payloads.reading import Node, UnsupportedEventError


def parse_nexus(event: str, root: Node, config: Mapping[str, Json]) -> tuple[TagsPushed, ...]:
    """The tag that was pushed; `event` is `X-Nexus-Webhook-Id`. Raises UnsupportedEventError for other events."""
    if event != "rm:repository:component":
        raise UnsupportedEventError(f"the event {event!r} is about no component")
    component = root.at("component")
    if root.text("action", default="") not in {"CREATED", "UPDATED"}:
        return ()
    if component.text("format", default="") not in {"docker", "helm"}:
        return ()
    name = f"{config.get('registry', '')}/{component.text('name')}"
    return (TagsPushed(name, (component.text("version", default=""),)),)
