"""Webhooks of Gitea and Forgejo as notices; the header `X-Gitea-Event` says which event it is.

Shapes: Gitea's "Webhooks" page and its API structs. Beyond Kargo's push and pull_request, `package` of a container is
read, whose registry is the host of the package's page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from bot.domain.receiving import Notice, PullRequestEnded, RefsMoved, TagsPushed
from bot.domain.values import Json
from bot.payloads.commits import changed_paths
from bot.payloads.reading import Node, UnsupportedEventError

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def parse_gitea(event: str, root: Node, config: Mapping[str, Json]) -> tuple[Notice, ...]:  # noqa: ARG001
    """What moved, was pushed or ended. Raises UnsupportedEventError for other events."""
    match event:
        case "push":
            url = root.text("repository", "clone_url", default="")
            return (RefsMoved((url,), (root.text("ref", default=""),), _changed(root)),)
        case "pull_request":
            if root.text("action", default="") != "closed":
                return ()
            return (PullRequestEnded(root.text("pull_request", "html_url", default="")),)
        case "package":
            return _of_package(root)
    raise UnsupportedEventError(f"the event {event!r} tells nothing about versions")


def _changed(root: Node) -> tuple[str, ...]:
    commits = list(root.items("commits"))
    # Gitea lists only the newest commits of a long push.
    if root.number("total_commits", default=0) > len(commits):
        return ()
    return changed_paths(commits)


def _of_package(root: Node) -> tuple[Notice, ...]:
    package = root.at("package")
    if package.text("type", default="") != "container" or root.text("action", default="") != "created":
        return ()
    version = package.text("version", default="")
    page = package.text("html_url", default="")
    try:
        host = urlsplit(page).netloc.rpartition("@")[2]
    except ValueError as error:
        raise package.fail(f"{page[:100]!r} is no address", "html_url") from error
    if not version or _DIGEST.fullmatch(version):
        # The parts of an index are packages of their own, named by their digest.
        return ()
    owner, name = package.text("owner", "login", default=""), package.text("name", default="")
    return (TagsPushed(f"{host}/{owner}/{name}".lower(), (version,)),)
