"""Commits that GitHub makes and signs itself, so that it shows them as verified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.files import CommitId, Entry, File, TreeId
from bot.domain.github import Repository
from bot.ports.git import PushOutcome


@dataclass(frozen=True, slots=True)
class UnsignedCommit:
    """A commit to be made again by GitHub: what it changes against `base` (None: nothing was there), and its tree.

    `changes` has the entry at each path, None for a removed one; `files` the contents of those that are blobs.
    """

    id: CommitId
    parents: tuple[CommitId, ...]
    message: str
    tree: TreeId
    base: TreeId | None
    changes: Mapping[str, Entry | None]
    files: Mapping[str, File]


@dataclass(frozen=True, slots=True)
class SignedPushed:
    """What came of a push, and the commit that the branch was to get."""

    outcome: PushOutcome
    commit: CommitId


class SignedPush(Protocol):
    """Raises TransientError and TerminalError."""

    async def push_signed(
        self,
        repository: Repository,
        branch: str,
        commits: Sequence[UnsignedCommit],
        *,
        expected: CommitId | None,
        force: bool,
    ) -> SignedPushed:
        """Make the commits (oldest first) and move the branch to the last one, if it is where it is expected.

        Without `force` GitHub itself refuses to move a branch that somebody else moved meanwhile.
        """
