"""A Promotion: one attempt to bring Freight into a Stage, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NewType

from bot.domain.files import CommitId
from bot.domain.freight import Freight
from bot.domain.github import PullNumber
from bot.domain.model import Step, Variable
from bot.domain.values import Value

PromotionId = NewType("PromotionId", str)
"""Kargo's name of a Promotion: `<stage>.<ulid>.<first seven digits of the Freight>`."""


class StepStatus(StrEnum):
    """Kargo's status of a step."""

    SUCCEEDED = "Succeeded"
    SKIPPED = "Skipped"
    RUNNING = "Running"
    FAILED = "Failed"
    ERRORED = "Errored"
    ABORTED = "Aborted"


class State(StrEnum):
    """How far a Promotion is; the last four are ends."""

    QUEUED = "Queued"
    """Created; its preview has not been published yet."""
    REVIEW = "Review"
    """Its pull request is open, or it needs none and waits for a gate."""
    FULFILLING = "Fulfilling"
    """Merged (or allowed without a pull request); its steps run."""
    HELD = "Held"
    """Merged although a gate was closed: nothing runs until the gate opens."""
    STOPPED = "Stopped"
    """What would be done differs from what was approved: waits for `/apply DIGEST`, `/rollback` or a revert."""
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    ERRORED = "Errored"
    ABORTED = "Aborted"

    @property
    def ended(self) -> bool:
        """Whether nothing more happens by itself."""
        return self in (State.SUCCEEDED, State.FAILED, State.ERRORED, State.ABORTED)


@dataclass(frozen=True, slots=True)
class Target:
    """Repository (git address) and branch that the pull request goes to: *G* of the review gate."""

    url: str
    branch: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a Promotion stopped, and the digest that `/apply` would accept."""

    reason: str
    digest: str
    details: tuple[str, ...] = ()
    failed: bool = False
    """Whether a step failed before the merge: `/retry` tries it again."""


@dataclass(frozen=True, slots=True)
class EarlyApply:
    """How far an `apply: BeforeMerge` is: who asked for which digest, what it stands on and what it left.

    `head` is the approved head of the promotion branch and `base` the target's tip when it began; `commit` is what the
    walk stands on, the merge of the two. `ready` is the branch's head once the deferred commits are on it: what is left
    is the merge. All are None before it begins.
    """

    digest: str
    by: str
    head: CommitId | None = None
    base: CommitId | None = None
    commit: CommitId | None = None
    ready: CommitId | None = None


@dataclass(frozen=True, slots=True)
class Following:
    """The person's merged pull request that a re-promotion follows.

    `previewed_at` is the time that its steps take for now, in the preview and after the merge alike; `shown_at` is when
    what is approved there was first shown: approvals given before it do not count.
    """

    pull: PullNumber
    previewed_at: datetime
    shown_at: datetime


@dataclass(frozen=True, slots=True)
class Promotion:
    """One row. Steps, vars and Freight are frozen when it is made; the rest tells how far it is.

    `freight` is what is promoted; `collection` also holds the Freight of the other origins, inherited.
    `actor` is a login, or `lockstep` for auto-promotion. `blocked` is true when its failure holds the Stage.
    """

    id: PromotionId
    project: str
    stage: str
    freight: Freight
    collection: tuple[Freight, ...]
    steps: tuple[Step, ...]
    variables: tuple[Variable, ...]
    actor: str
    actor_id: int
    created_at: datetime
    rollback: bool = False
    corrects: bool = False
    """Whether it undoes drift: Terraform is planned although its inputs are those of the last apply."""
    why: str = ""
    """Why it was made, where no person asked for it and it is no new Freight's turn."""
    state: State = State.QUEUED
    reason: str = ""
    attempt: int = 1
    first_attempt: int = 1
    """The attempt that the preview in force began with: what the journal says of earlier ones is of another preview."""
    segment: int = 0
    """How many segments of work were begun; part of each segment's id."""
    running: str = ""
    """The segment in flight, `preview` or `fulfil`; empty if none is."""
    preview: int = 0
    """Sequence number of the preview that is in force; 0 before the first."""
    target: Target | None = None
    pull: PullNumber | None = None
    head: CommitId | None = None
    heads: tuple[CommitId, ...] = ()
    """Heads that carry the digest in force: an approval of any of them counts."""
    own_commits: tuple[CommitId, ...] = ()
    """Commits of the promotion branch that the App made; all others are people's."""
    pushers: tuple[int, ...] = ()
    """Account ids of people who pushed to the branch: what a commit says of its author, anybody can write."""
    base: CommitId | None = None
    digest: str = ""
    policy_revision: str = ""
    """The configuration's revision that the preview in force was made with."""
    preview_wanted: str = ""
    """Why a person or an event asked for a new preview; empty if nobody did."""
    merge_commit: CommitId | None = None
    effects_begun: bool = False
    """Whether anything outside was touched, after the merge (then gates no longer hold it) or by an apply before it."""
    early: EarlyApply | None = None
    """The apply before the merge, None where nobody asked for one; it stays when its pull request is merged."""
    accepted: tuple[str, ...] = ()
    """Digests that an approver accepted by `/apply`."""
    stop: Stop | None = None
    blocked: bool = False
    cancel_requested: bool = False
    wake_at: datetime | None = None
    finished_at: datetime | None = None
    superseded_by: str = ""
    release_commit: CommitId | None = None
    drop: CommitId | None = None
    """A tip of the promotion branch whose people's commits somebody asked to drop; later ones are kept."""
    source: str = ""
    """The head branch that the task itself names for its pull request, empty where Lockstep does."""
    woken: int = 0
    """How often a person said what a walk may wait for: it looks at once, whatever time it meant to wait."""
    follows: Following | None = None
    """Set for a re-promotion: the Stage's own Freight once more, after a person's pull request was merged."""

    @property
    def branch(self) -> str:
        """The head branch of its pull request."""
        return self.source or f"lockstep/{self.project}/{self.stage}"

    @property
    def is_begun(self) -> bool:
        """Whether it is past its review: merged, applied before its merge, or ended."""
        return self.merge_commit is not None or self.effects_begun or self.state.ended

    @property
    def is_ahead(self) -> bool:
        """Whether its steps run, or ran, before its pull request is merged."""
        begun = self.early is not None and self.early.head is not None
        return begun and self.merge_commit is None

    @property
    def has_begun_ahead(self) -> bool:
        """Whether something may have been applied before its pull request is merged."""
        return self.is_ahead and self.effects_begun

    @property
    def generated_branch(self) -> str:
        """Kargo's name of the branch that `generateTargetBranch` of `git-push` asks for."""
        return f"kargo/promotion/{self.id}"

    @property
    def owns_branch(self) -> bool:
        """Whether the head branch is there for this Promotion alone; one that an author named may outlive it."""
        return self.source in ("", self.generated_branch)


@dataclass(frozen=True, slots=True)
class StepRun:
    """What the journal says of one step of one Promotion; keyed by alias, the newest attempt wins.

    Begun without `finished_at`: the outcome is unknown.
    """

    alias: str
    kind: str
    attempt: int
    status: StepStatus
    message: str = ""
    output: Mapping[str, Value] = field(default_factory=dict)
    begun_at: datetime | None = None
    finished_at: datetime | None = None
    detail: Mapping[str, Value] = field(default_factory=dict)
    """What the step kind keeps for its own second run."""
    errors: int = 0
    """Errors in a row."""
