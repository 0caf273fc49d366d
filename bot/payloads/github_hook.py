"""Webhooks of a GitHub repository or organisation that is not ours, sent to a receiver, as notices.

The App's own webhook is read by `payloads.github`; here only what tells about new versions is. As in Kargo, a push is
matched by `clone_url`, with its paths unless GitHub has cut the list of commits (at 2048).
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.receiving import Notice, PullRequestEnded, RefsMoved, TagsPushed
from bot.domain.values import Json
from bot.payloads.commits import changed_paths
from bot.payloads.reading import Node, UnsupportedEventError

_MOST_COMMITS = 2048


def parse_github_hook(event: str, root: Node, config: Mapping[str, Json]) -> tuple[Notice, ...]:  # noqa: ARG001
    """What moved, was pushed or ended. Raises UnsupportedEventError for other events."""
    match event:
        case "push":
            return (_of_push(root),)
        case "package" | "registry_package":
            return _of_package(root, event)
        case "pull_request":
            if root.text("action", default="") != "closed":
                return ()
            return (PullRequestEnded(root.text("pull_request", "html_url", default="")),)
        case "ping":
            return ()
    raise UnsupportedEventError(f"the event {event!r} tells nothing about versions")


def _of_push(root: Node) -> RefsMoved:
    commits = list(root.items("commits"))
    changed: tuple[str, ...] = ()
    if len(commits) < _MOST_COMMITS:
        head = root.find("head_commit")
        changed = changed_paths([*commits, *([head] if head is not None else [])])
    url = root.text("repository", "clone_url", default="")
    # The ssh address names the same repository, and a Warehouse may subscribe to either.
    return RefsMoved(
        (url, root.text("repository", "ssh_url", default="")), (root.text("ref", default=""),), changed
    )


def _of_package(root: Node, event: str) -> tuple[Notice, ...]:
    if root.text("action", default="") not in {"published", "updated"}:
        return ()
    package = root.at(event)
    version = package.at("package_version")
    if package.text("package_type", default="").lower() not in {"container", "docker"}:
        return ()
    tag = version.text("container_metadata", "tag", "name", default="")
    # Untagged, GitHub's address ends in a bare colon.
    url = version.text("package_url", default="").removesuffix(":")
    return (TagsPushed(url, (tag,)),) if tag else ()
