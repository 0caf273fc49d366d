"""The port `Issues` on GitHub's REST API."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from bot.adapters.github.comments import Comments, hide
from bot.adapters.github.connection import Connection, join_path
from bot.adapters.github.errors import NotFound
from bot.adapters.github.tokens import Scope
from bot.domain.github import CommentId, Issue, IssueNumber, Repository
from bot.payloads.reading import Node
from bot.ports import TerminalError
from bot.ports.issues import IssueChange, NewIssue

_BODY_LIMIT = 65_536
_MOST_FOUND = 30
"""Kargo's limit for what a search gives."""
_MARK = re.compile(r"<!-- lockstep:[^\n]*? -->\r?\n")
_NAMES_KIND = re.compile(r"(?<!\S)-?(is:(issue|pr|pull-request)|type:(issue|pr))(?!\S)", re.IGNORECASE)


class GitHubIssues:
    """Issues on a connection that is open; `comments` knows our bot account."""

    def __init__(self, connection: Connection, comments: Comments) -> None:
        self._connection = connection
        self._comments = comments

    async def get_issue(self, repository: Repository, number: IssueNumber) -> Issue | None:
        """See `Issues.get_issue`."""
        node = await self._connection.find(_scope(repository, "read"), _path(repository, number))
        return None if node is None else _read(node)

    async def search_issues(self, repository: Repository, query: str) -> Sequence[Issue]:
        """See `Issues.search_issues`; without a kind in the query issues are meant."""
        kind = "" if _NAMES_KIND.search(query) else " is:issue"
        asked = f"repo:{repository}{kind} {query}"
        answer = await self._connection.get(
            _scope(repository, "read"), "search/issues", {"q": asked, "per_page": _MOST_FOUND}
        )
        # A query may name other repositories too, which GitHub then searches as well.
        ours = f"/repos/{repository}".lower()
        return tuple(
            _read(item)
            for item in answer.items("items")
            if item.text("repository_url").lower().endswith(ours)
        )

    async def find_own_issue(self, repository: Repository, marker: str, *, label: str) -> Issue | None:
        """See `Issues.find_own_issue`."""
        account = await self._comments.bot_account(repository)
        begin, found = hide(marker), list[Node]()

        def is_ours(item: Node) -> bool:
            by_us = item.number("user", "id", default=0) == account.id and not item.has("pull_request")
            if by_us and item.text("body", default="").startswith(begin):
                found.append(item)
            return bool(found)

        await self._connection.list_all(
            _scope(repository, "read"),
            join_path("repos", repository.owner, repository.name, "issues"),
            {"state": "all", "creator": account.login, "labels": label},
            until=is_ours,
        )
        return _read(found[0]) if found else None

    async def create_issue(self, repository: Repository, issue: NewIssue, *, since: datetime) -> Issue:
        """See `Issues.create_issue`; the list of issues is read, since the search lags behind."""
        text = f"{hide(issue.marker)}\n{issue.body}"
        _check_length(text)
        path = join_path("repos", repository.owner, repository.name, "issues")

        async def look() -> Issue | None:
            user_id = await self._comments.bot_user_id(repository)
            listed = await self._connection.list_all(
                _scope(repository, "read"),
                path,
                {"state": "all", "since": since.strftime("%Y-%m-%dT%H:%M:%SZ")},
            )
            ours = (
                item
                for item in listed
                if item.number("user", "id", default=0) == user_id
                and item.text("body", default="").startswith(hide(issue.marker))
            )
            return next((_read(item) for item in ours), None)

        async def create() -> Issue:
            body = {"title": issue.title, "body": text}
            lists = {"labels": list(issue.labels), "assignees": list(issue.assignees)}
            given = {name: values for name, values in lists.items() if values}
            scope = _scope(repository, "write")
            return _read(await self._connection.write(scope, "POST", path, {**body, **given}, creates=True))

        there = await look()
        return there if there is not None else await self._connection.write_once(create, look)

    async def update_issue(self, repository: Repository, number: IssueNumber, change: IssueChange) -> None:
        """See `Issues.update_issue`."""
        scope, path = _scope(repository, "write"), _path(repository, number)

        async def look() -> dict[str, object] | None:
            left = _differences(await self._connection.get(scope, path), change)
            return None if left else {}

        async def write() -> dict[str, object]:
            left = _differences(await self._connection.get(scope, path), change)
            if left:
                await self._connection.write(scope, "PATCH", path, left)
            return left

        await self._connection.write_once(write, look)

    async def update_comment(self, repository: Repository, comment: CommentId, body: str) -> bool:
        """See `Issues.update_comment`."""
        scope, path = _scope(repository, "write"), _comment_path(repository, comment)
        found = await self._connection.find(scope, path)
        if found is None:
            return False
        text = _with_mark(found.text("body", default=""), body)
        _check_length(text)
        if found.text("body", default="").replace("\r\n", "\n") == text:
            return True

        async def look() -> bool | None:
            now = await self._connection.find(scope, path)
            return True if now is not None and now.text("body", default="") == text else None

        async def write() -> bool:
            await self._connection.write(scope, "PATCH", path, {"body": text})
            return True

        try:
            return await self._connection.write_once(write, look)
        except NotFound:
            return False

    async def delete_comment(self, repository: Repository, comment: CommentId) -> bool:
        """See `Issues.delete_comment`."""
        scope, path = _scope(repository, "write"), _comment_path(repository, comment)

        async def look() -> bool | None:
            return True if await self._connection.find(scope, path) is None else None

        async def write() -> bool:
            await self._connection.write(scope, "DELETE", path)
            return True

        try:
            return await self._connection.write_once(write, look)
        except NotFound:
            return False


def _differences(node: Node, change: IssueChange) -> dict[str, object]:
    """What has to be sent for an issue to be as wanted."""
    now = _read(node)
    left: dict[str, object] = {}
    if change.title is not None and change.title != now.title:
        left["title"] = change.title
    if change.body is not None:
        text = _with_mark(node.text("body", default=""), change.body)
        _check_length(text)
        if text != node.text("body", default="").replace("\r\n", "\n"):
            left["body"] = text
    if change.state is not None and change.state != now.state:
        left["state"] = change.state
    labels = [*now.labels, *(label for label in change.add_labels if label not in now.labels)]
    labels = [label for label in labels if label not in change.remove_labels]
    if set(labels) != set(now.labels):
        left["labels"] = labels
    if change.assignees is not None and set(change.assignees) != set(now.assignees):
        left["assignees"] = list(change.assignees)
    return left


def _with_mark(before: str, body: str) -> str:
    found = _MARK.match(before)
    return body if found is None else f"{found[0].rstrip()}\n{body}"


def _check_length(text: str) -> None:
    if len(text.encode()) > _BODY_LIMIT:
        raise TerminalError(
            f"the body has {len(text.encode())} bytes, GitHub takes {_BODY_LIMIT}; make it shorter"
        )


def _read(node: Node) -> Issue:
    return Issue(
        IssueNumber(node.number("number")),
        node.text("title"),
        _MARK.sub("", node.text("body", default=""), count=1),
        node.text("state"),
        tuple(label.text("name") for label in node.items("labels")),
        tuple(user.text("login") for user in node.items("assignees")),
        node.text("html_url"),
    )


def _scope(repository: Repository, level: str) -> Scope:
    return Scope((("issues", level), ("pull_requests", level)), repository)


def _path(repository: Repository, number: IssueNumber) -> str:
    return join_path("repos", repository.owner, repository.name, "issues", number)


def _comment_path(repository: Repository, comment: CommentId) -> str:
    return join_path("repos", repository.owner, repository.name, "issues", "comments", comment)
