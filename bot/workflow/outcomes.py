"""How a pass over the steps that are done for real may end."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.files import CommitId
from bot.domain.promotion import State, Stop


@dataclass(frozen=True, slots=True)
class Finished:
    """Every step has ended; `state` is the worst of them."""

    state: State
    reason: str
    release_commit: CommitId | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A step is not done yet; ask again after `retry_after` seconds."""

    alias: str
    reason: str
    retry_after: float


@dataclass(frozen=True, slots=True)
class Stopped:
    """What would be done is not what was approved; nothing later has run."""

    stop: Stop


@dataclass(frozen=True, slots=True)
class Mergeable:
    """All that runs before the merge is done; `head` is what the walk pushed onto the branch, None if nothing."""

    head: CommitId | None


@dataclass(frozen=True, slots=True)
class Moved:
    """The target branch moved to this commit: walk again on it."""

    tip: CommitId
