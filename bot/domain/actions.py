"""What a decision about a Stage rests on, and what it may be: values that planning takes and gives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from bot.domain.approvals import Tally
from bot.domain.files import CommitId
from bot.domain.freight import Freight
from bot.domain.github import PullRequest
from bot.domain.model import Stage
from bot.domain.promotion import Promotion, State, Stop
from bot.domain.review import Preview
from bot.domain.review_policy import ReviewPolicy


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition of the merge or the apply: whether it is open, and why (not), with a name or a time."""

    name: str
    open: bool
    reason: str
    opens_at: datetime | None = None


def first_opening(gates: Iterable[Gate]) -> datetime | None:
    """When time opens the first of some closed gates, None if it opens none."""
    return min((gate.opens_at for gate in gates if gate.opens_at is not None), default=None)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that a decision about one Stage rests on, read just now.

    `candidate` is the Freight that auto-promotion would take, with its reason; `candidate_at` is when time alone
    may bring one; `problem` why the Stage's configuration cannot be carried out. `base_changed` names touched paths
    that the base changed since the preview, `steps_changed` tells that the configuration's steps are not those of the
    Promotion. `lost` says what was merged and is no longer on the branch, of a Promotion that waits after its merge;
    `applied` that something was done since.
    `done` tells what was applied before the merge, of a Promotion that applies there.
    `verifying` says how far the verification of what the Stage has is, empty if none is under way.
    """

    now: datetime
    project: str
    stage: Stage
    policy: ReviewPolicy
    promotion: Promotion | None = None
    last: Promotion | None = None
    preview: Preview | None = None
    pull: PullRequest | None = None
    tally: Tally | None = None
    gates: tuple[Gate, ...] = ()
    candidate: Freight | None = None
    candidate_reason: str = ""
    candidate_at: datetime | None = None
    base_changed: tuple[str, ...] = ()
    steps_changed: bool = False
    people_commits: tuple[str, ...] = ()
    lost: str = ""
    applied: bool = False
    done: str = ""
    check_green: bool = False
    frozen: str = ""
    problem: str = ""
    verifying: str = ""
    back: Freight | None = None
    back_reason: str = ""
    retry_preview_at: datetime | None = None


# -- actions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartPromotion:
    """Create a Promotion of this Freight."""

    freight: Freight
    reason: str


@dataclass(frozen=True, slots=True)
class StartRollback:
    """Create a Promotion that goes back to this Freight, as the project's policy asks."""

    freight: Freight
    reason: str


@dataclass(frozen=True, slots=True)
class MakePreview:
    """Begin a segment that previews and publishes."""

    reason: str


@dataclass(frozen=True, slots=True)
class Merge:
    """Merge the pull request, with this head expected, by a method of GitHub's."""

    head: CommitId
    reason: str
    method: str = "merge"


@dataclass(frozen=True, slots=True)
class BeginFulfil:
    """Begin to fulfil what was merged; `merge` is None where there was nothing to merge."""

    merge: CommitId | None
    reason: str


@dataclass(frozen=True, slots=True)
class BeginApply:
    """Begin to fulfil an approved pull request before its merge (`apply: BeforeMerge`), on this head."""

    head: CommitId
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class ContinueFulfil:
    """Begin the next segment of a walk that waits; `merge` is set where the merge is what it waited for.

    `anew` has a walk before the merge stand on the target as it is now.
    """

    reason: str
    merge: CommitId | None = None
    anew: bool = False


@dataclass(frozen=True, slots=True)
class Halt:
    """Stop before the merge, with what was applied: people see why, and what to do."""

    stop: Stop


@dataclass(frozen=True, slots=True)
class EnsureSegment:
    """A segment is in flight: make sure that it is queued (it may have been lost between row and queue)."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Merged although a gate was closed: keep everything from running."""

    merge: CommitId
    reason: str


@dataclass(frozen=True, slots=True)
class End:
    """End the Promotion."""

    state: State
    reason: str
    superseded_by: Freight | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do until something happens, at the latest at `until`."""

    reason: str
    until: datetime | None = None


Act = (
    StartPromotion
    | StartRollback
    | MakePreview
    | Merge
    | BeginFulfil
    | BeginApply
    | ContinueFulfil
    | EnsureSegment
    | Hold
    | Halt
    | End
)
"""What is to be carried out."""

Action = Act | Wait
"""What planning answers."""
