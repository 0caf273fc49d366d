"""GitLab's webhooks as notices (GitLab's "Webhook events"); the header `X-Gitlab-Event` says which event it is."""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.receiving import Notice, PullRequestEnded, RefsMoved
from bot.domain.values import Json
from bot.payloads.commits import changed_paths
from bot.payloads.reading import Node, UnsupportedEventError


def parse_gitlab(event: str, root: Node, config: Mapping[str, Json]) -> tuple[Notice, ...]:  # noqa: ARG001
    """What moved or ended. Raises UnsupportedEventError for other events."""
    match event:
        case "Push Hook":
            return (RefsMoved(_urls(root), (root.text("ref", default=""),), _changed(root)),)
        case "Tag Push Hook":
            return (RefsMoved(_urls(root), (root.text("ref", default=""),)),)
        case "Merge Request Hook":
            if root.text("object_attributes", "action", default="") not in {"close", "merge"}:
                return ()
            return (PullRequestEnded(root.text("object_attributes", "url", default="")),)
    raise UnsupportedEventError(f"the event {event!r} tells nothing about versions")


def _urls(root: Node) -> tuple[str, ...]:
    return tuple(root.text("repository", key, default="") for key in ("git_http_url", "git_ssh_url"))


def _changed(root: Node) -> tuple[str, ...]:
    commits = list(root.items("commits"))
    # GitLab lists at most 20 commits of a push; then nothing is known about its paths.
    if root.number("total_commits_count", default=0) > len(commits):
        return ()
    return changed_paths(commits)
