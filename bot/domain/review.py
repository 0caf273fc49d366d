"""What the preview of a Promotion found, step by step, and what follows for its pull request.

The words are those of the review gate: *G* is the repository and branch that the pull request targets, *B* its tip,
*N* the tree after the merge, the *cut* the first step that may not be anticipated, *prepared* what the pull request's
diff holds, *deferred* what is committed only after the cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from bot.domain.files import Change, CommitId, Entry, TreeId
from bot.domain.promotion import StepStatus, Target
from bot.domain.step_kinds import StepClass
from bot.domain.terraform import Lock, Plan
from bot.domain.urls import normalize_git_url
from bot.domain.values import Json, Value

# -- what steps record ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pin:
    """A checkout of `git-clone`: where it lies in the work tree and which commit it is pinned to.

    `branch` is empty for a checkout by tag or commit; `created` tells that the branch does not exist yet.
    """

    path: str
    url: str
    branch: str
    commit: CommitId | None
    created: bool = False


class ApplyKind(StrEnum):
    """What the preview knows of a `tf-apply` (section 3.3 of the review gate)."""

    UNCHANGED = "unchanged"
    """Inputs equal those of the last successful apply: not planned."""
    EMPTY = "empty"
    OUTPUTS_ONLY = "outputs-only"
    CHANGES = "changes"
    PROVISIONAL = "provisional"
    """An earlier apply of the task has changes: planned on today's state."""
    UNKNOWABLE = "unknowable"
    """An unknown value reaches its inputs, or an earlier apply changes the same state."""
    KEPT = "kept"
    """A rollback that keeps the infrastructure: neither planned nor applied."""

    @property
    def does_nothing(self) -> bool:
        """Whether it is known that it changes nothing."""
        return self in (ApplyKind.UNCHANGED, ApplyKind.EMPTY, ApplyKind.KEPT)

    @property
    def is_barrier(self) -> bool:
        """Whether it may not be anticipated."""
        return self in (ApplyKind.CHANGES, ApplyKind.PROVISIONAL, ApplyKind.UNKNOWABLE)


@dataclass(frozen=True, slots=True)
class ApplyRecord:
    """What `tf-apply` would do. `state` names the Terraform state; paths lie in the work tree.

    `inputs` is the digest of everything the plan depends on; `bundle` the name under which the saved plan is kept;
    `applied_at` the commit whose apply had equal inputs, for `UNCHANGED`. `pending` holds addresses whose change comes
    from inputs that the base has already, but that were never applied.
    """

    state: str
    directory: str
    kind: ApplyKind
    inputs: str
    input_paths: frozenset[str]
    plan: Plan | None = None
    text: str = ""
    bundle: str = ""
    applied_at: str = ""
    pending: frozenset[str] = frozenset()
    previous_failed: bool = False
    boundary: tuple[str, ...] = ()
    """Addresses of resources that deploy into a cluster, with file and line."""
    state_files: frozenset[str] = frozenset()
    """Paths in the work tree at which the state itself is kept (`stateInGit`): an apply changes them."""


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """A `tf-plan` that is not made, since a rollback keeps the infrastructure; `input_paths` lie in the work tree."""

    directory: str
    input_paths: frozenset[str]


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """What `git-commit` would commit. `changes` are against the checkout's last commit, paths inside the checkout."""

    checkout: str
    message: Value
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class PublishRecord:
    """What `git-push` would push: commits of a checkout to a branch, or a tag."""

    checkout: str
    url: str
    branch: str
    commits: int
    tag: str = ""
    generated: bool = False
    force: bool = False
    """Whether what the branch holds is replaced."""


@dataclass(frozen=True, slots=True)
class EffectRecord:
    """An effect on the outside world, as a reviewer sees it. `quiet` changes no source."""

    title: str
    address: str
    details: tuple[tuple[str, Value], ...] = ()
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class GateRecord:
    """A wait of the task: what it waits for and whether it holds now."""

    subject: str
    open: bool
    reason: str = ""
    asks: bool = False
    """Whether only a person's answer opens it: then it is not looked at again by itself."""
    fingerprint: str = ""
    """A hash of the answer that is frozen, empty for none."""


@dataclass(frozen=True, slots=True)
class FrozenRecord:
    """An answer of the outside world that is kept: what was asked, and a fingerprint of the answer."""

    question: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class PinRecord:
    """The checkouts that a clone made."""

    pins: tuple[Pin, ...]


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """The pull request that a task opens itself: from the branch that `checkout` is pushed to, to that it was made of.

    `url` is the repository as the checkout names it; title and description may hold marks.
    """

    checkout: str
    url: str
    source: str
    target: str
    title: Value = None
    description: Value = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeRecord:
    """A merge that the task asks for once every gate is open; `method` is GitHub's word for it."""

    method: str


Record = (
    ApplyRecord
    | KeptRecord
    | CommitRecord
    | PublishRecord
    | EffectRecord
    | GateRecord
    | FrozenRecord
    | PinRecord
    | RequestRecord
    | MergeRecord
)


class Presence(StrEnum):
    """Whether a step will run, as far as the preview knows."""

    CERTAIN = "certain"
    CONDITIONAL = "conditional"
    """Its `if` depends on a value that is not known yet."""
    SKIPPED = "skipped"
    ON_FAILURE = "on-failure"
    """It runs only if something fails."""
    NOT_REACHED = "not-reached"
    """The preview failed before it."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """One step of the preview. `status` is None if its outcome is not known before the merge.

    `changes` are of paths in the work tree; `wrote` are the paths that it addresses, changed or not;
    `tainted` tells that an unknown value is in its content or request, `condition` what an `if` that is not known yet
    waits for.
    """

    index: int
    alias: str
    kind: str
    step_class: StepClass
    presence: Presence
    status: StepStatus | None
    output: Mapping[str, Value] = field(default_factory=dict)
    message: str = ""
    config: Value = None
    changes: tuple[Change, ...] = ()
    wrote: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    tainted: bool = False
    continue_on_error: bool = False
    record: Record | None = None
    condition: str = ""
    left_out: tuple[str, ...] = ()
    """Paths in the work tree that it would change, were the infrastructure not kept as it is."""

    @property
    def may_stop(self) -> bool:
        """Whether it ends the promotion if its condition, which is not known yet, turns out to hold."""
        return self.kind == "fail" and self.presence is Presence.CONDITIONAL


# -- the preview as a whole ----------------------------------------------------------------------------------


class Lane(StrEnum):
    """What kind of pull request it is (section 6 of the review gate)."""

    NO_OP = "no-op"
    COMPLETE = "complete"
    EFFECTS = "effects"
    INFRA_ONLY = "infra-only"
    COORDINATED = "coordinated"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a preview is red. `transient` ones are tried again by themselves; `lock` tells who holds a state."""

    alias: str
    message: str
    prepared: bool = False
    transient: bool = False
    lock: Lock | None = None
    log: str = ""
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class PreparedCommit:
    """One commit of the promotion branch: message and the paths (inside G's checkout) that it writes."""

    message: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Patch:
    """What will be committed later to one branch; `after` texts may hold sentinels, `origins` tells what they mean."""

    target: Target
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """What the pull request holds and what waits. `cut` is the index of the cut, or the number of steps."""

    cut: int
    prepared: tuple[PreparedCommit, ...]
    deferred: Patch
    others: tuple[Patch, ...] = ()
    scratch: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """Everything that one preview found; the same value is rendered, digested, stored and compared later.

    `differences` are those of *N* from *B*; `touched` all paths (inside G's checkout) that it read or wrote;
    `origins` maps a sentinel to the text of the unknown value that it stands for.
    """

    target: Target
    checkout: str
    base: CommitId
    tree: TreeId
    steps: tuple[StepReport, ...]
    split: Split
    lane: Lane
    lane_reason: str
    differences: Mapping[str, Entry | None]
    touched: frozenset[str]
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    origins: Mapping[str, str]
    digest: str
    made_at: datetime
    pins: tuple[Pin, ...] = ()
    answers: Mapping[str, Json] = field(default_factory=dict)
    held: str = ""
    """Why the branch does not hold the prepared change (people's commits), empty if it does."""
    source: str = ""
    """The head branch that the task itself names for its pull request, empty where Lockstep does."""
    write_back: str = ""
    """The rules of the target's branch that refuse the App's push of what is deferred, empty if none is known to."""
    record_file: str = ""
    """The file that is in the diff only so that there is one (`recordFile`), empty for none."""

    @property
    def changes_anything(self) -> bool:
        """Whether the merge brings more than the policy's record file."""
        return bool(self.differences.keys() - {self.record_file})

    @property
    def checkouts(self) -> tuple[str, ...]:
        """The checkouts of the target's branch, first that of the prepared change: a path in any is the same file."""
        return checkouts_of(self.target, self.checkout, self.pins)

    @property
    def request(self) -> RequestRecord | None:
        """What the task's own `git-open-pr` asks for, None if the pull request is not of its making."""
        return find_request(self.steps) if self.source else None

    @property
    def merge_method(self) -> str:
        """How the task itself wants its pull request merged, empty if it leaves the merge to others."""
        return next((s.record.method for s in self.steps if isinstance(s.record, MergeRecord)), "")

    @property
    def applies(self) -> tuple[ApplyRecord, ...]:
        """The applies of the task, in order."""
        return tuple(s.record for s in self.steps if isinstance(s.record, ApplyRecord))

    @property
    def is_red(self) -> bool:
        """Whether it may not be merged as it is."""
        return bool(self.problems) or bool(self.held)

    @property
    def destroys(self) -> bool:
        """Whether a plan deletes or replaces something."""
        return any(a.plan is not None and a.plan.destroys for a in self.applies)

    @property
    def is_passing(self) -> bool:
        """Whether time alone may change it: a passing trouble, or something awaited that the world brings about."""
        awaited = any(not wait.open and not wait.asks for wait in self.waits)
        return awaited or any(problem.transient for problem in self.problems)

    @property
    def waits(self) -> tuple[GateRecord, ...]:
        """The waits before the cut: they gate the merge."""
        before = self.steps[: self.split.cut]
        return tuple(s.record for s in before if isinstance(s.record, GateRecord))


def checkouts_of(target: Target, checkout: str, pins: Iterable[Pin]) -> tuple[str, ...]:
    """The checkouts that stand for a target's branch, `checkout` first."""
    url = normalize_git_url(target.url)
    others = (p.path for p in pins if p.branch == target.branch and normalize_git_url(p.url) == url)
    return tuple(dict.fromkeys((checkout, *others)))


def find_request(steps: Sequence[StepReport]) -> RequestRecord | None:
    """What the task's own `git-open-pr` asks for, None if it has none or would find nothing to review."""
    records = (step.record for step in steps if step.status is not StepStatus.SKIPPED)
    return next((record for record in records if isinstance(record, RequestRecord)), None)
