"""Webhooks of Azure Container Registry and service hooks of Azure DevOps as notices.

Both come to the same address; the product's name at the start of `User-Agent` tells them apart. Shapes: Microsoft's
"Azure Container Registry webhook reference" and "Service hooks events".
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.receiving import Notice, PullRequestEnded, RefsMoved, TagsPushed
from bot.domain.values import Json
from bot.payloads.reading import Node, UnsupportedEventError

REGISTRY, DEVOPS = "AzureContainerRegistry", "VSServices"


def parse_azure(event: str, root: Node, config: Mapping[str, Json]) -> tuple[Notice, ...]:  # noqa: ARG001
    """What was pushed or ended; `event` is the User-Agent. Raises UnsupportedEventError for everything else."""
    if event.startswith(REGISTRY):
        return _of_registry(root)
    if event.startswith(DEVOPS):
        return _of_devops(root)
    raise UnsupportedEventError(f"the User-Agent is neither {REGISTRY} nor {DEVOPS}")


def _of_registry(root: Node) -> tuple[Notice, ...]:
    action = root.text("action", default="")
    if action == "ping":
        return ()
    if action != "push":
        raise UnsupportedEventError(f"the action {action!r} is no push")
    host = root.text("request", "host", default="")
    repository = root.text("target", "repository", default="")
    # Pushed by digest, as the parts of an index are, it has no tag.
    return (TagsPushed(f"{host}/{repository}", (root.text("target", "tag", default=""),)),)


def _of_devops(root: Node) -> tuple[Notice, ...]:
    kind = root.text("eventType", default="")
    if kind == "git.push":
        refs = tuple(item.text("name", default="") for item in root.items("resource", "refUpdates"))
        return (RefsMoved((root.text("resource", "repository", "remoteUrl", default=""),), refs),)
    if kind == "git.pullrequest.merged":
        return (PullRequestEnded(_page(root)),)
    if kind == "git.pullrequest.updated":
        abandoned = root.text("resource", "status", default="") == "abandoned"
        return (PullRequestEnded(_page(root)),) if abandoned else ()
    raise UnsupportedEventError(f"the event type {kind!r} tells nothing about versions")


def _page(root: Node) -> str:
    return root.text("resource", "_links", "web", "href", default="")
