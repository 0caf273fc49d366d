"""Comments on pull requests and issues, and reactions to them."""

from __future__ import annotations

from collections.abc import Sequence

from bot.adapters.github.connection import Connection, join_path
from bot.adapters.github.errors import NotFound
from bot.adapters.github.tokens import Scope
from bot.domain.github import Comment, CommentId, PullNumber, Repository, User
from bot.payloads.github import read_user
from bot.payloads.reading import Node

_BODY_LIMIT = 65_536


class Comments:
    """The part of the port `GitHub` that is about comments."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._account: User | None = None

    async def bot_account(self, repository: Repository) -> User:
        """Our App's bot account."""
        if self._account is None:
            slug = (await self._connection.call_as_app("GET", "app")).text("slug")
            account = await self._connection.get(
                Scope((("metadata", "read"),), repository), join_path("users", f"{slug}[bot]")
            )
            self._account = User(f"{slug}[bot]", account.number("id"), bot=True)
        return self._account

    async def bot_user_id(self, repository: Repository) -> int:
        """The id of our App's bot account; unlike its login it survives a rename of the App."""
        return (await self.bot_account(repository)).id

    async def list_all(self, repository: Repository, number: PullNumber) -> Sequence[Comment]:
        """All comments, oldest first."""
        path = join_path("repos", repository.owner, repository.name, "issues", number, "comments")
        listed = await self._connection.list_all(_scope(repository, "read"), path)
        user_id = await self.bot_user_id(repository)
        return tuple(self._read(item, user_id) for item in listed)

    async def get(self, repository: Repository, comment: CommentId) -> Comment | None:
        """One comment, None if it was deleted."""
        node = await self._connection.find(_scope(repository, "read"), _path(repository, comment))
        return None if node is None else self._read(node, await self.bot_user_id(repository))

    async def post(self, repository: Repository, number: PullNumber, body: str, *, marker: str) -> CommentId:
        """Make our comment with this marker show the body, creating it if there is none.

        Ours is a comment whose author is our bot account and that begins with the marker; a person who copies the
        marker makes a comment of their own. Raises ValueError for a body beyond GitHub's limit.
        """
        text = f"{hide(marker)}\n{body}"
        if len(text.encode()) > _BODY_LIMIT:
            raise ValueError(f"the comment has {len(text.encode())} bytes, GitHub takes {_BODY_LIMIT}")

        async def look() -> Comment | None:
            return await self._find(repository, number, marker)

        async def create() -> Comment:
            path = join_path("repos", repository.owner, repository.name, "issues", number, "comments")
            scope = _scope(repository, "write")
            node = await self._connection.write(scope, "POST", path, {"body": text}, creates=True)
            return self._read(node, await self.bot_user_id(repository))

        there = await look()
        if there is not None:
            shows_it = there.body.replace("\r\n", "\n") == text
            if shows_it or await self._edit(repository, there.id, text):
                return there.id
        return (await self._connection.write_once(create, look)).id

    async def react(self, repository: Repository, comment: CommentId, content: str) -> None:
        """Add a reaction; GitHub keeps one of a kind per account, so a second time changes nothing."""
        path = f"{_path(repository, comment)}/reactions"
        await self._connection.write(_scope(repository, "write"), "POST", path, {"content": content})

    async def _edit(self, repository: Repository, comment: CommentId, text: str) -> bool:
        """Set the body; False if the comment is gone."""

        async def change() -> bool:
            await self._connection.write(
                _scope(repository, "write"), "PATCH", _path(repository, comment), {"body": text}
            )
            return True

        async def look() -> bool | None:
            found = await self.get(repository, comment)
            return True if found is not None and found.body == text else None

        try:
            return await self._connection.write_once(change, look)
        except NotFound:
            return False

    async def _find(self, repository: Repository, number: PullNumber, marker: str) -> Comment | None:
        user_id = await self.bot_user_id(repository)
        ours = (
            comment
            for comment in await self.list_all(repository, number)
            if comment.user.id == user_id and comment.body.startswith(hide(marker))
        )
        return next(ours, None)

    def _read(self, node: Node, user_id: int) -> Comment:
        user = read_user(node.find("user"))
        made_by = node.number("performed_via_github_app", "id", default=0) if _has_app(node) else 0
        created, updated = node.time("created_at"), node.find_time("updated_at")
        return Comment(
            CommentId(node.number("id")),
            user,
            node.text("body", default=""),
            created,
            edited=updated is not None and updated != created,
            by_app=user.id == user_id or made_by == self._connection.settings.app_id,
        )


def hide(marker: str) -> str:
    """The marker as the HTML comment that stands first in a body; one that is a comment already stays as it is.

    Raises ValueError for a marker that would end the HTML comment early.
    """
    inner = marker.removeprefix("<!--").removesuffix("-->").strip()
    if not inner or "--" in inner or ">" in inner or "\n" in inner:
        raise ValueError(f"{marker!r} cannot be hidden in an HTML comment")
    return f"<!-- {inner} -->"


def _has_app(node: Node) -> bool:
    return node.has("performed_via_github_app")


def _scope(repository: Repository, level: str) -> Scope:
    return Scope((("issues", level), ("pull_requests", level)), repository)


def _path(repository: Repository, comment: CommentId) -> str:
    return join_path("repos", repository.owner, repository.name, "issues", "comments", comment)
