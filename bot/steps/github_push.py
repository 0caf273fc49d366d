"""How `github-push` moves a branch: GitHub makes the commits again and signs them, so that they are verified.

They have the same trees, messages and parents as ours; author and date are GitHub's. At most ten commits go at a time,
Kargo's limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.files import CommitId, Mode
from bot.ports import Git, GitHub, PushOutcome, TerminalError
from bot.ports.git import Commit
from bot.ports.signed_push import SignedPush, UnsignedCommit
from bot.steps.pull_requests import find_repository

_MOST_COMMITS = 10


@dataclass(frozen=True, slots=True)
class Move:
    """Where a branch is to go from: `expected` is where it must be, `base` a commit that the server has."""

    branch: str
    expected: CommitId | None
    base: CommitId | None
    force: bool


@dataclass(frozen=True, slots=True)
class SigningPusher:
    """Pushes by GitHub's API."""

    git: Git
    github: GitHub
    signed: SignedPush

    async def push(self, url: str, commit: CommitId, move: Move) -> tuple[PushOutcome, CommitId]:
        """What came of it, and the commit that GitHub made; raises TerminalError beyond ten commits."""
        repository = find_repository(self.github, "github-push", url)
        wanted = await self._unsigned(url, commit, move)
        if not wanted:
            # The server has the commit already, and only the branch is to follow.
            return await self.git.push(url, commit, move.branch, expected=move.expected), commit
        done = await self.signed.push_signed(
            repository, move.branch, wanted, expected=move.expected, force=move.force
        )
        await self.git.fetch(url)
        return done.outcome, done.commit

    async def _unsigned(self, url: str, head: CommitId, move: Move) -> list[UnsignedCommit]:
        """The commits that the server does not have, oldest first."""
        base = move.base
        if move.expected is not None and await self.git.is_ancestor(url, move.expected, head):
            base = move.expected
        commits = await self.git.log(url, base, head, limit=_MOST_COMMITS + 1)
        if len(commits) > _MOST_COMMITS:
            raise TerminalError(
                f"github-push: more than {_MOST_COMMITS} commits are to be pushed at once; use git-push"
            )
        return [await self._describe(url, commit) for commit in reversed(commits)]

    async def _describe(self, url: str, commit: Commit) -> UnsignedCommit:
        base = (await self.git.read_commit(url, commit.parents[0])).tree if commit.parents else None
        changes = {path: after for path, _, after in await self.git.diff(url, base, commit.tree)}
        blobs = {
            path: entry
            for path, entry in changes.items()
            if entry is not None and entry.mode is not Mode.SUBMODULE
        }
        files = await self.git.read_files(url, blobs)
        return UnsignedCommit(commit.id, commit.parents, commit.message, commit.tree, base, changes, files)
