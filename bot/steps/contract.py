"""The contract between a step and the walk that runs it.

A step has two entries. `preview` says what the step would do and changes nothing outside the work tree (but a state
lock, taken and released); `fulfil` does it. For edits, reads and pure steps both are the same work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bot.domain.files import Change, CommitId, File
from bot.domain.promotion import Promotion, StepRun, StepStatus, Stop, Target
from bot.domain.review import Pin, Problem, Record, StepReport
from bot.domain.review_policy import ReviewPolicy
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Value
from bot.steps.worktree import WorkTree


@dataclass(frozen=True, slots=True)
class MergedBranch:
    """A branch as the merge of the promotion's pull request will leave it: what it is now, with these files changed."""

    target: Target
    commit: CommitId
    files: Mapping[str, File | None]


@dataclass(frozen=True, slots=True)
class Onto:
    """Where pushes to the target's branch go while the pull request is not merged: its own branch.

    `heads` are the commits that it may be at: the approved head, and what this walk put on top of it.
    """

    branch: str
    heads: tuple[CommitId, ...]


@dataclass(frozen=True, slots=True)
class StepContext:
    """What a step may know besides its config.

    `earlier` are the reports of the steps before it in this walk, `approved` is this step's report in the preview that
    was approved (fulfil only), `run` what the journal said of it before this pass began, None if it never began (fulfil
    only): every pass is journaled as begun at `now` without `finished_at`, every answer, RUNNING too, with it.
    `merge` is the commit that the merge left on the target branch (fulfil only). `pins` maps the place of a checkout to
    the commit that `git-clone` must use there. `author` is the bot's name and e-mail for commits. `plan_environment`
    replaces the `env` of plans in a preview of code that nobody entitled has reviewed. `marker` is the signed block
    that the last trailer of a commit holds, empty for none. `merged` is the target's branch for checkouts that a
    preview makes behind the step that waits for the merge, None before it. `deferred` is what was approved to be
    committed after the merge, and `origins` says what the stand-ins in it stand for (fulfil only). `onto` takes what
    is pushed to the target's branch, where the walk runs before the merge; None after it.
    """

    promotion: Promotion
    policy: ReviewPolicy
    alias: str
    tree: WorkTree
    now: datetime
    earlier: tuple[StepReport, ...] = ()
    approved: StepReport | None = None
    run: StepRun | None = None
    attempt: int = 1
    merge: CommitId | None = None
    pins: Mapping[str, Pin] = field(default_factory=dict)
    author: tuple[str, str] = ("lockstep", "lockstep@localhost")
    plan_environment: Mapping[str, Value] | None = None
    marker: str = ""
    merged: MergedBranch | None = None
    deferred: tuple[Change, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    onto: Onto | None = None

    @property
    def outcome_unknown(self) -> bool:
        """Whether an earlier pass of this attempt began and left no answer: its effect may have happened."""
        run = self.run
        return run is not None and run.attempt == self.attempt and run.finished_at is None

    @property
    def detail(self) -> Mapping[str, Value]:
        """What the last answered pass of this attempt kept for this one."""
        run = self.run
        return run.detail if run is not None and run.attempt == self.attempt else {}


@dataclass(frozen=True, slots=True)
class StepResult:
    """What came of a step.

    `status` is None in a preview when the outcome is not known before the merge; RUNNING comes with `retry_after`
    (seconds). FAILED and ERRORED carry a `message`, and `problem` where there is more to show. `detail` is kept in the
    journal for the step's own second run. `stop` ends the walk before an effect that nobody approved; `rebase_on` asks
    the walk to begin again on a branch that moved. `step_class` is the class that follows from the config, where the
    kind's does not fit (an `http` step that only reads).
    """

    status: StepStatus | None = StepStatus.SUCCEEDED
    output: Mapping[str, Value] = field(default_factory=dict)
    message: str = ""
    retry_after: float | None = None
    record: Record | None = None
    problem: Problem | None = None
    detail: Mapping[str, Value] = field(default_factory=dict)
    stop: Stop | None = None
    rebase_on: CommitId | None = None
    step_class: StepClass | None = None


Config = Mapping[str, Value]
"""A step's config after evaluation; it fits the step's schema as far as it is known."""


class Step(Protocol):
    """One step kind, holding the ports that it declares."""

    @property
    def kind(self) -> StepKind:
        """Name, class and defaults."""

    async def preview(self, config: Config, context: StepContext) -> StepResult:
        """What it would do. Raises TransientError and TerminalError."""

    async def fulfil(self, config: Config, context: StepContext) -> StepResult:
        """Do it, once or again. Raises TransientError and TerminalError."""


def failed(alias: str, message: str, *, log: str = "", path: str = "", line: int = 0) -> StepResult:
    """A step that says no, with what a person needs to mend it."""
    problem = Problem(alias=alias, message=message, log=log, path=path, line=line)
    return StepResult(status=StepStatus.FAILED, message=message, problem=problem)
