"""The port `SignedPush` on GitHub's Git data API: what an App commits there without naming an author is signed."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from bot.adapters.github.connection import Connection, join_path
from bot.adapters.github.errors import Rejected
from bot.adapters.github.tokens import Scope
from bot.domain.files import CommitId, Mode
from bot.domain.github import Repository
from bot.ports import Moved, Pushed, PushOutcome, Refused, TerminalError
from bot.ports.signed_push import SignedPushed, UnsignedCommit

_TYPES = {Mode.SUBMODULE: "commit"}


class GitHubSignedPush:
    """Commits and branches on a connection that is open."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def push_signed(
        self,
        repository: Repository,
        branch: str,
        commits: Sequence[UnsignedCommit],
        *,
        expected: CommitId | None,
        force: bool,
    ) -> SignedPushed:
        """See `SignedPush.push_signed`."""
        signed: dict[CommitId, CommitId] = {}
        last = commits[-1].id
        for commit in commits:
            parents = [signed.get(parent, parent) for parent in commit.parents]
            signed[commit.id] = await self._commit(repository, commit, parents)
        made = signed[last]
        return SignedPushed(await self._move(repository, branch, made, expected, force=force), made)

    async def _commit(
        self, repository: Repository, commit: UnsignedCommit, parents: Sequence[CommitId]
    ) -> CommitId:
        """Making the same objects twice gives the same objects, but for the commit's date; the branch decides."""
        for file in commit.files.values():
            content = base64.b64encode(file.data).decode()
            await self._post(repository, "blobs", {"content": content, "encoding": "base64"})
        entries = [
            {
                "path": path,
                "mode": (entry.mode if entry is not None else Mode.FILE).value,
                "type": _TYPES.get(entry.mode, "blob") if entry is not None else "blob",
                "sha": entry.blob if entry is not None else None,
            }
            for path, entry in sorted(commit.changes.items())
        ]
        tree: str = commit.tree
        if entries:
            body: dict[str, object] = {"tree": entries}
            tree = await self._post(
                repository, "trees", body | ({"base_tree": commit.base} if commit.base else {})
            )
        if tree != commit.tree:
            raise TerminalError(
                f"GitHub made the tree {tree} of {repository}, not {commit.tree}, which was to be pushed; nothing was "
                "published"
            )
        made: dict[str, object] = {"message": commit.message, "tree": tree, "parents": list(parents)}
        return CommitId(await self._post(repository, "commits", made))

    async def _post(self, repository: Repository, kind: str, body: dict[str, object]) -> str:
        path = join_path("repos", repository.owner, repository.name, "git", kind)
        return (await self._connection.write(_scope(repository, "write"), "POST", path, body)).text("sha")

    async def _move(
        self,
        repository: Repository,
        branch: str,
        commit: CommitId,
        expected: CommitId | None,
        *,
        force: bool,
    ) -> PushOutcome:
        there = await self._tip(repository, branch)
        if there != expected:
            return Moved(there)
        root = join_path("repos", repository.owner, repository.name, "git", "refs")
        name = "/".join(join_path(part) for part in branch.split("/"))

        async def write() -> PushOutcome:
            scope = _scope(repository, "write")
            if expected is None:
                await self._connection.write(
                    scope, "POST", root, {"ref": f"refs/heads/{branch}", "sha": commit}
                )
            else:
                body = {"sha": commit, "force": force}
                await self._connection.write(scope, "PATCH", f"{root}/heads/{name}", body)
            return Pushed()

        async def look() -> PushOutcome | None:
            return Pushed() if await self._tip(repository, branch) == commit else None

        try:
            return await self._connection.write_once(write, look)
        except Rejected as error:
            now = await self._tip(repository, branch)
            return Moved(now) if now != expected else Refused(error.reason)

    async def _tip(self, repository: Repository, branch: str) -> CommitId | None:
        name = "/".join(join_path(part) for part in branch.split("/"))
        path = join_path("repos", repository.owner, repository.name, "git", "ref")
        node = await self._connection.find(_scope(repository, "read"), f"{path}/heads/{name}")
        return None if node is None else CommitId(node.text("object", "sha"))


def _scope(repository: Repository, level: str) -> Scope:
    return Scope((("contents", level),), repository)
