"""Webhooks of Bitbucket Cloud and Bitbucket Data Center as notices.

Shapes: Atlassian's "Event payloads" of either product; the header `X-Event-Key` says which event it is. Other than
Kargo we compare the address of Bitbucket Cloud in its normal spelling too, and a ref that was deleted concerns those
who follow that ref, not everybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bot.domain.receiving import Notice, PullRequestEnded, RefsMoved
from bot.domain.values import Json
from bot.payloads.reading import Node, UnsupportedEventError

_BRANCHES = frozenset({"branch", "named_branch", "bookmark"})
_TAGS = frozenset({"tag", "annotated_tag"})


def parse_bitbucket(event: str, root: Node, config: Mapping[str, Json]) -> tuple[Notice, ...]:  # noqa: ARG001
    """What moved or ended; `event` is `X-Event-Key`. Raises UnsupportedEventError for everything else."""
    match event:
        case "repo:push":
            url = root.text("repository", "links", "html", "href", default="")
            return (RefsMoved((url,), tuple(_cloud_refs(root))),)
        case "repo:refs_changed":
            urls = tuple(item.text("href", default="") for item in root.items("repository", "links", "clone"))
            refs = tuple(item.text("ref", "id", default="") for item in root.items("changes"))
            return (RefsMoved(urls, refs),)
        case "pullrequest:fulfilled" | "pullrequest:rejected":
            return (PullRequestEnded(root.text("pullrequest", "links", "html", "href", default="")),)
        case "pr:merged" | "pr:declined":
            pages = root.items("pullRequest", "links", "self")
            return tuple(PullRequestEnded(page.text("href", default="")) for page in pages)
        case "diagnostics:ping":
            return ()
    raise UnsupportedEventError(f"the event {event!r} tells nothing about versions")


def _cloud_refs(root: Node) -> Iterator[str]:
    for change in root.items("push", "changes"):
        # A branch or tag that was deleted has no `new`, one that was created no `old`.
        moved = change.find("new") or change.find("old")
        if moved is None:
            continue
        name, kind = moved.text("name", default=""), moved.text("type", default="")
        if name and kind not in _TAGS:
            yield f"refs/heads/{name}"
        if name and kind not in _BRANCHES:
            yield f"refs/tags/{name}"
