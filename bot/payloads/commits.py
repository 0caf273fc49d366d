"""The paths that the commits of a push changed, as GitHub, GitLab and Gitea list them."""

from __future__ import annotations

from collections.abc import Iterable

from bot.payloads.reading import Node


def changed_paths(commits: Iterable[Node]) -> tuple[str, ...]:
    """Every path that was added, modified or removed, once, in the order of the body."""
    paths: dict[str, None] = {}
    for commit in commits:
        for key in ("added", "modified", "removed"):
            paths.update(dict.fromkeys(item.text() for item in commit.items(key)))
    return tuple(paths)
