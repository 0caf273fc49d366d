"""One walk over a task that changes nothing outside: every step in order, on what those before it left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bot.domain.files import CommitId
from bot.domain.guarding import opens_nothing
from bot.domain.model import Step
from bot.domain.promotion import Promotion, StepStatus, Target
from bot.domain.review import Pin, Presence, Problem, StepReport
from bot.domain.review_policy import ReviewPolicy
from bot.domain.splitting import Place, choose_place, find_cut, find_published
from bot.domain.step_kinds import AWAITS_MERGE, StepClass
from bot.domain.values import Unknown, Value, is_tainted
from bot.ports import Clock, TerminalError, TransientError
from bot.steps.contract import MergedBranch, StepContext, StepResult
from bot.steps.worktree import WorkTree
from bot.workflow.benches import Bench
from bot.workflow.evaluation import Evaluator, Progress
from bot.workflow.holding import Zone

_TAINTABLE = (StepClass.EDIT, StepClass.READ, StepClass.WAIT)
_NOWHERE = Place(Target("", ""), "")


@dataclass(frozen=True, slots=True)
class Base:
    """What the target's checkout stands on: the tip *B*, and the merge *N* if people's commits are in it.

    Without `merged` the walk stands on `tip` and *N* is what the prepared change makes of it.
    """

    place: Place
    tip: CommitId
    merged: CommitId | None = None
    reviewed: bool = False
    """Whether people's commits in `merged` were approved: then plans get the task's own `env`."""
    ours: bool = False
    """Whether `merged` has the promotion's own branch in it, which may hold what the task writes from `tip`."""


@dataclass(slots=True)
class Walk:
    """One walk in progress."""

    clock: Clock
    bench: Bench
    promotion: Promotion
    policy: ReviewPolicy
    evaluator: Evaluator
    tree: WorkTree
    base: Base | None
    plan_environment: Mapping[str, Value] | None = None
    kept: frozenset[str] = frozenset()
    """Paths of the work tree that edits leave as they are, since a rollback keeps the infrastructure."""
    zone: Zone | None = None
    """What the prepared zone did from the base, where the branch holds that: it is not done again on top of itself."""
    merged: MergedBranch | None = None
    """The target's branch as the merge will leave it, once a step of the task's own has waited for that."""
    reports: list[StepReport] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    progress: Progress = field(default_factory=Progress)
    stopped: bool = False

    async def run(self) -> None:
        """Walk every step in order; after a failure of the prepared zone the rest is not reached."""
        for index, step in enumerate(self.promotion.steps):
            report = await self._report(index, step)
            self.reports.append(report)
            # A failure that is shown beside the rest is walked on from as if it were mended.
            status = (
                None if report.status is StepStatus.FAILED and not report.continue_on_error else report.status
            )
            conditional = report.presence is Presence.CONDITIONAL
            self.progress.record(step, status, _outputs(report), uncertain=conditional)
            if step.uses in AWAITS_MERGE and report.presence is Presence.CERTAIN and self.merged is None:
                self.merged = self._merge()

    async def _report(self, index: int, step: Step) -> StepReport:
        blank = self._blank(index, step)
        if self.stopped:
            return blank
        recalled = await self.zone.recall(index, self.reports, self.tree) if self.zone is not None else None
        if recalled is not None:
            return recalled
        if step.uses in AWAITS_MERGE and opens_nothing(self.reports):
            # Kargo would fail here for want of a number; there is nothing to wait for.
            return replace(blank, presence=Presence.SKIPPED, status=StepStatus.SKIPPED)
        try:
            wanted = self.evaluator.condition(step, self.progress)
            if wanted is False:
                on_failure = "failure(" in step.condition
                presence = Presence.ON_FAILURE if on_failure else Presence.SKIPPED
                return replace(blank, presence=presence, status=StepStatus.SKIPPED)
            conditional = isinstance(wanted, Unknown)
            waits_for = wanted.origin if isinstance(wanted, Unknown) else ""
            if conditional and blank.step_class is StepClass.REVIEW:
                raise TerminalError(
                    f"{step.uses}: whether there is a pull request must be known before there is one"
                )
            config = self.evaluator.config(step, self.progress)
        except TerminalError as error:
            return self._failed(blank, Problem(step.alias, str(error)))
        report = replace(
            blank,
            presence=Presence.CONDITIONAL if conditional else Presence.CERTAIN,
            config=config,
            condition=waits_for,
        )
        return await self._run(report, step, config)

    async def _run(self, report: StepReport, step: Step, config: Value) -> StepReport:
        if self._waits_for_a_plan(report):
            return replace(report, status=None)
        runner = self.bench.steps[step.uses]
        self.tree.begin()
        try:
            result = await runner.preview(config if isinstance(config, dict) else {}, self._context(step))
        except TransientError as error:
            return self._failed(report, Problem(step.alias, str(error), transient=True))
        except TerminalError as error:
            return self._failed(report, Problem(step.alias, str(error)))
        step_class = result.step_class or report.step_class
        left_out = self.tree.undo(self.kept) if step_class is StepClass.EDIT else ()
        access = await self.tree.end()
        report = replace(
            report,
            step_class=step_class,
            tainted=is_tainted(config) and step_class in _TAINTABLE,
            status=None if report.presence is Presence.CONDITIONAL else result.status,
            output=result.output,
            message=result.message,
            changes=access.changes,
            wrote=access.wrote,
            reads=access.reads,
            record=result.record,
            left_out=left_out,
        )
        if result.status in (StepStatus.FAILED, StepStatus.ERRORED):
            return self._refused(report, result)
        return report

    def _refused(self, report: StepReport, result: StepResult) -> StepReport:
        if report.continue_on_error or report.may_stop:
            return report
        return self._failed(report, result.problem or Problem(report.alias, result.message))

    def _failed(self, report: StepReport, problem: Problem) -> StepReport:
        """Note the problem; what may still be shown behind it is walked as if the step will succeed one day."""
        self.problems.append(problem)
        place = choose_place(self.reports, self.pins(), self.policy.review_in) or _NOWHERE
        behind = report.step_class is StepClass.INFRA or find_cut(self.reports, place) < len(self.reports)
        # Without a pull request of its own the rest of such a task is not to be imagined.
        self.stopped = not behind or report.step_class is StepClass.REVIEW
        return replace(report, status=StepStatus.FAILED, message=problem.message)

    def _waits_for_a_plan(self, report: StepReport) -> bool:
        """Whether it reads what a failed plan would have told: its answer is not known, and not asked for."""
        failed = any(r.step_class is StepClass.INFRA and r.status is StepStatus.FAILED for r in self.reports)
        return failed and report.step_class is StepClass.INFRA

    def _context(self, step: Step) -> StepContext:
        return StepContext(
            promotion=self.promotion,
            policy=self.policy,
            alias=step.alias,
            tree=self.tree,
            now=self.clock.now(),
            earlier=tuple(self.reports),
            attempt=self.promotion.attempt,
            pins=self._wanted_pins(),
            plan_environment=self.plan_environment,
            merged=self.merged,
        )

    def _wanted_pins(self) -> Mapping[str, Pin]:
        if self.base is None:
            return {}
        place = self.base.place
        commit = self.base.merged or self.base.tip
        return {place.checkout: Pin(place.checkout, place.target.url, place.target.branch, commit)}

    def _merge(self) -> MergedBranch | None:
        """What the merge will leave, as far as this walk has come; None where nothing goes by a pull request."""
        place = choose_place(self.reports, self.pins(), self.policy.review_in)
        checkout = self.tree.checkouts.get(place.checkout) if place is not None and place.source else None
        if place is None or checkout is None or checkout.pin.commit is None:
            return None
        commits = find_published(self.reports, place)
        files = {change.path: change.after for commit in commits for change in commit.changes}
        return MergedBranch(place.target, checkout.pin.commit, files)

    def pins(self) -> tuple[Pin, ...]:
        """The checkouts of the walk so far."""
        return tuple(checkout.pin for checkout in self.tree.checkouts.values())

    def _blank(self, index: int, step: Step) -> StepReport:
        return StepReport(
            index=index,
            alias=step.alias,
            kind=step.uses,
            step_class=self.bench.steps[step.uses].kind.step_class,
            presence=Presence.NOT_REACHED,
            status=None,
            continue_on_error=step.continue_on_error,
        )


def _outputs(report: StepReport) -> Value:
    """What later expressions see: nothing is known of a step whose outcome is not known."""
    if report.presence is Presence.CONDITIONAL or (
        report.status is StepStatus.FAILED and not report.continue_on_error
    ):
        return Unknown(f"known after step: {report.alias}")
    if report.status is None and not report.output:
        return Unknown(f"known after step: {report.alias}")
    return dict(report.output)
