"""The second walk: after the merge every step is walked again, and what was approved is done.

Steps before the cut keep what the preview found, since their bytes are in the merged tree; the rest runs for real, is
journaled before and after, and is compared with what was approved (section 8 of the review gate). The walk can be
begun again at any time: work trees are made anew, finished effects are not repeated.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.domain.files import CommitId
from bot.domain.keeping import kept_paths
from bot.domain.model import Step
from bot.domain.promotion import Promotion, State, StepRun, StepStatus, Stop
from bot.domain.review import CommitRecord, Pin, Preview, PublishRecord, StepReport
from bot.domain.review_policy import ReviewPolicy
from bot.domain.step_kinds import StepClass
from bot.domain.storing import storable_run
from bot.domain.values import Value, has_empty_secret
from bot.ports import Clock, Store, TerminalError, TransientError, Vault
from bot.steps.contract import StepContext, StepResult
from bot.steps.worktree import Sentinels, WorkTree
from bot.workflow.benches import Bench, Benches
from bot.workflow.comparing import Comparison
from bot.workflow.crossing import Ahead, as_merged, counting_runs, cross, find_pushed
from bot.workflow.evaluation import Evaluator, Progress
from bot.workflow.merges import find_lost_change
from bot.workflow.outcomes import Finished, Mergeable, Moved, Stopped, Waiting
from bot.workflow.prepared import Prepared
from bot.workflow.published import find_public, note_push, stand_at

_MADE_ANEW = (StepClass.EDIT, StepClass.PURE, StepClass.COMMIT)
_BAD = (StepStatus.FAILED, StepStatus.ERRORED, StepStatus.ABORTED)
_ERROR_PAUSE = 5.0


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be fulfilled: the Promotion, its approved preview, and the commit that the merge left.

    Without a merge (nothing to review) the walk stands on the commits that the preview pinned.
    """

    promotion: Promotion
    policy: ReviewPolicy
    preview: Preview
    merge: CommitId | None
    author: tuple[str, str]
    sign: Callable[[Sequence[StepReport]], Awaitable[str]] | None = None
    """Makes the machine block for the last trailer of the task's commits, after these steps."""
    ahead: Ahead | None = None
    """Where its walk begins before the merge; `merge` is then None until the pull request is merged."""


@dataclass(frozen=True, slots=True)
class Fulfiller:
    """Walks merged promotions."""

    benches: Benches
    store: Store
    vault: Vault
    clock: Clock

    async def fulfil(self, task: Task, evaluator: Evaluator) -> Finished | Waiting | Stopped | Mergeable:
        """Walk until the end, a wait, a stop or the merge to come; if the branch moves, again on its new tip."""
        base = task.merge
        for _ in range(10):
            runs = counting_runs(await self.store.list_steps(task.promotion.id), task.promotion, task.ahead)
            sentinels = Sentinels(self.vault.digest(task.promotion.id.encode())[:8])
            bench = self.benches(task.promotion.project)
            walk = _Walk(self, bench, task, evaluator, WorkTree(bench.git, sentinels), runs, base)
            outcome = await walk.run()
            if not isinstance(outcome, Moved):
                return outcome
            lost = await find_lost_change(bench.git, task.preview, outcome.tip)
            if lost:
                return Stopped(Stop(f"merge reverted: {lost}", digest=""))
            base = outcome.tip
        return Waiting("", "the branch moves faster than we can push", 30.0)


@dataclass(slots=True)
class _Walk:
    """One pass over the steps."""

    fulfiller: Fulfiller
    bench: Bench
    task: Task
    evaluator: Evaluator
    tree: WorkTree
    runs: dict[str, StepRun]
    base: CommitId | None
    progress: Progress = field(default_factory=Progress)
    reports: list[StepReport] = field(default_factory=list)
    worst: StepStatus = StepStatus.SUCCEEDED
    reason: str = ""
    released: CommitId | None = None
    crossed: bool = False
    """Whether a walk that began before the merge is behind it."""

    async def run(self) -> Finished | Waiting | Stopped | Moved | Mergeable:
        """Walk every step in order, up to the merge where that is still to come."""
        for index, step in enumerate(self.task.promotion.steps):
            if self._is_at_merge(index):
                if self.task.merge is None:
                    return Mergeable(find_pushed(self.reports, self.task.preview, self.task.ahead))
                await self._cross()
            approved = self.task.preview.steps[index]
            outcome = await self._step(step, approved)
            if not isinstance(outcome, StepReport):
                return outcome
            self.reports.append(outcome)
            self.progress.record(step, outcome.status, dict(outcome.output))
            self._weigh(step, outcome)
            await self._note_push(outcome)
        state = State(self.worst.value) if self.worst in _BAD else State.SUCCEEDED
        if self._is_ahead:
            pushed = find_pushed(self.reports, self.task.preview, self.task.ahead)
            ready = state is State.SUCCEEDED and self.task.merge is None
            return Mergeable(pushed) if ready else Finished(state, self.reason, pushed)
        return Finished(state, self.reason, self.released)

    @property
    def _is_ahead(self) -> bool:
        """Whether the walk began before the merge and is not behind it yet."""
        return self.task.ahead is not None and not self.crossed

    @property
    def _merge(self) -> CommitId | None:
        """What the walk takes for the merge: before there is one, what it will leave."""
        return self.task.ahead.standing if self.task.ahead and not self.crossed else self.task.merge

    def _is_at_merge(self, index: int) -> bool:
        """Whether what follows stands behind the merge; a walk that failed does not get there."""
        ahead = self.task.ahead if not self.crossed else None
        return ahead is not None and index >= ahead.point and self.worst not in _BAD

    async def _cross(self) -> None:
        """Stand on the merge from here on: what was committed before it is in it."""
        self.crossed = True
        merge = self.base or self.task.merge
        if merge is None:
            return
        await cross(self.tree, self.task.preview, merge)
        self.reports = as_merged(self.reports, self.task.preview, merge)
        for step, report in zip(self.task.promotion.steps, self.reports, strict=False):
            self.progress.record(step, report.status, dict(report.output))

    async def _step(self, step: Step, approved: StepReport) -> StepReport | Waiting | Stopped | Moved:
        prepared = Prepared(self.task.preview, self.tree, self._merge)
        kept = await prepared.report(step, approved)
        if kept is not None:
            return kept
        # Before the merge nothing is public: what was pushed there is looked at again, and made anew if need be.
        public = None if self._is_ahead else find_public(approved, self.task.preview.steps, self.runs)
        if public is not None and isinstance(approved.record, CommitRecord):
            await stand_at(self.bench.git, self.tree, approved.record.checkout, public)
            if approved.record.checkout in self.task.preview.checkouts:
                self.released = public
            return replace(
                approved, status=StepStatus.SUCCEEDED, output={**approved.output, "commit": public}
            )
        run = self.runs.get(step.alias)
        if run is not None and self._is_kept(step, approved, run):
            return replace(approved, status=run.status, output=run.output, message=run.message)
        try:
            if self.evaluator.condition(step, self.progress) is not True:
                return replace(approved, status=StepStatus.SKIPPED, output={}, message="", changes=())
            config = self.evaluator.config(step, self.progress)
        except TerminalError as error:
            return await self._close(step, approved, StepResult(StepStatus.ERRORED, message=str(error)))
        stop = await self._comparison().find_stop(step, approved)
        if stop is not None:
            return Stopped(stop)
        return await self._execute(step, approved, config)

    # -- the deferred zone -----------------------------------------------------------------------------------------

    def _is_kept(self, step: Step, approved: StepReport, run: StepRun) -> bool:
        """Whether the journal's answer stands: edits and clones are made anew, a handler runs once per attempt."""
        if run.finished_at is None or run.status not in (StepStatus.SUCCEEDED, StepStatus.SKIPPED, *_BAD):
            return False
        if approved.step_class in _MADE_ANEW or step.uses == "git-clone" or approved.wrote:
            return False
        if has_empty_secret(dict(run.output)):
            return False
        if run.detail.get("onto") and self.task.merge is None:
            # The promotion branch that it went onto may have moved since.
            return False
        handler = "failure(" in step.condition or "always(" in step.condition
        same_attempt = run.attempt == self.task.promotion.attempt
        return same_attempt if handler or run.status in _BAD else True

    def _comparison(self) -> Comparison:
        task, reports, vault = self.task, tuple(self.reports), self.fulfiller.vault
        # Before the merge the walk stands on what it will leave: the prepared change is in it.
        base = self._merge if self._is_ahead else self.base
        return Comparison(task.promotion, task.preview, self.tree, reports, vault, self._merge, base)

    async def _execute(
        self, step: Step, approved: StepReport, config: Value
    ) -> StepReport | Waiting | Stopped | Moved:
        # A clone takes no effect, and without it nothing could be said of the steps that are done already.
        if step.uses != "git-clone" and await self._is_cancelled():
            return await self._close(
                step, approved, StepResult(StepStatus.ABORTED, message="cancelled by a person")
            )
        runner = self.bench.steps[step.uses]
        now = self.fulfiller.clock.now()
        before = self.runs.get(step.alias)
        begun = self._begin(step, before, now)
        await self.fulfiller.store.begin_step(self.task.promotion.id, begun)
        self.runs[step.alias] = begun
        self.tree.begin()
        try:
            result = await runner.fulfil(
                config if isinstance(config, dict) else {}, await self._context(step, approved, before, now)
            )
        except TransientError as error:
            return await self._again(step, approved, begun, str(error), error.retry_after)
        except TerminalError as error:
            result = StepResult(StepStatus.ERRORED, message=str(error))
        if result.stop is not None:
            await self._finish(
                replace(begun, status=StepStatus.RUNNING, message=result.stop.reason, detail=result.detail)
            )
            return Stopped(result.stop)
        if result.rebase_on is not None:
            return Moved(result.rebase_on)
        if result.status is StepStatus.RUNNING:
            return await self._running(step, approved, begun, result)
        if result.status is StepStatus.ERRORED and begun.errors + 1 < self._threshold(step):
            return await self._again(step, approved, begun, result.message, None)
        return await self._close(step, approved, result)

    async def _is_cancelled(self) -> bool:
        """Whether somebody asked for the end meanwhile; what runs is never torn down, the next step does not begin."""
        newest = await self.fulfiller.store.get_promotion(self.task.promotion.id)
        return newest is not None and newest.cancel_requested

    def _begin(self, step: Step, before: StepRun | None, now: datetime) -> StepRun:
        attempt = self.task.promotion.attempt
        # What was done and is made anew begins now; what was not done yet has begun when it first did. The date of a
        # commit is when it was first made, in whichever attempt, or else its SHA would not be the one that was pushed.
        if before is not None and self.bench.steps[step.uses].kind.step_class is StepClass.COMMIT:
            return StepRun(
                step.alias, step.uses, attempt, StepStatus.RUNNING, begun_at=before.begun_at or now
            )
        if before is not None and before.attempt == attempt:
            begun_at = before.begun_at if before.status is StepStatus.RUNNING else None
            return replace(before, status=StepStatus.RUNNING, begun_at=begun_at or now, finished_at=None)
        return StepRun(step.alias, step.uses, attempt, StepStatus.RUNNING, begun_at=now)

    async def _context(
        self, step: Step, approved: StepReport, before: StepRun | None, now: datetime
    ) -> StepContext:
        sign = self.task.sign if approved.step_class is StepClass.COMMIT else None
        # The first run of a step has no journal to read; its time is the one that later runs find there.
        return StepContext(
            promotion=self.task.promotion,
            policy=self.task.policy,
            alias=step.alias,
            tree=self.tree,
            now=now,
            earlier=tuple(self.reports),
            approved=approved,
            run=before,
            attempt=self.task.promotion.attempt,
            merge=self._merge,
            onto=self.task.ahead.onto if self.task.ahead is not None and not self.crossed else None,
            pins=self._pins(),
            author=self.task.author,
            marker=await sign(self.reports) if sign is not None else "",
            deferred=self.task.preview.split.deferred.changes,
            origins=self.task.preview.origins,
        )

    def _pins(self) -> Mapping[str, Pin]:
        """Published branches where they are now, everything else where the preview pinned it."""
        preview = self.task.preview
        pins = {pin.path: pin for pin in preview.pins}
        base = self._merge if self._is_ahead else self.base
        if base is not None:
            ours = [pins[place] for place in preview.checkouts if place in pins]
            pins |= {pin.path: replace(pin, commit=base, created=False) for pin in ours}
        return pins

    async def _running(
        self, step: Step, approved: StepReport, begun: StepRun, result: StepResult
    ) -> StepReport | Waiting:
        now = self.fulfiller.clock.now()
        limit = (
            step.retry.timeout if step.retry.timeout is not None else self.bench.steps[step.uses].kind.timeout
        )
        started = begun.begun_at or now
        if limit and now - started > timedelta(seconds=limit):
            message = f"{step.alias} did not finish within {limit:.0f} s: {result.message}"
            return await self._close(
                step, approved, replace(result, status=StepStatus.ERRORED, message=message)
            )
        await self._finish(
            replace(begun, status=StepStatus.RUNNING, message=result.message, detail=result.detail, errors=0)
        )
        return Waiting(
            step.alias, result.message, result.retry_after if result.retry_after is not None else 10.0
        )

    async def _again(
        self, step: Step, approved: StepReport, begun: StepRun, message: str, retry_after: float | None
    ) -> StepReport | Waiting:
        """The world may answer later: ask again, up to the step's time limit or an hour."""
        now = self.fulfiller.clock.now()
        limit = step.retry.timeout or self.bench.steps[step.uses].kind.timeout or 3600.0
        if now - (begun.begun_at or now) > timedelta(seconds=limit):
            return await self._close(step, approved, StepResult(StepStatus.ERRORED, message=message))
        await self._finish(
            replace(begun, status=StepStatus.RUNNING, message=message, errors=begun.errors + 1)
        )
        pause = min(_ERROR_PAUSE * 2 ** min(begun.errors, 6), 300.0)
        return Waiting(step.alias, message, retry_after if retry_after is not None else pause)

    def _threshold(self, step: Step) -> int:
        if step.retry.error_threshold is not None:
            return step.retry.error_threshold
        return self.bench.steps[step.uses].kind.error_threshold

    async def _close(self, step: Step, approved: StepReport, result: StepResult) -> StepReport:
        """Journal a step's end."""
        before = self.runs.get(step.alias)
        begun = self._begin(step, before, self.fulfiller.clock.now())
        if approved.step_class is StepClass.EDIT:
            self.tree.undo(kept_paths(self.task.preview.steps))
        access = await self.tree.end()
        status = result.status or StepStatus.SUCCEEDED
        log = result.problem.log if result.problem is not None else ""
        detail: Mapping[str, Value] = {**result.detail, "log": log} if log else result.detail
        await self._finish(
            replace(
                begun, status=status, message=result.message, output=result.output, detail=detail, errors=0
            )
        )
        return replace(
            approved,
            status=status,
            output=result.output,
            message=result.message,
            changes=access.changes,
            record=result.record or approved.record,
        )

    async def _finish(self, run: StepRun) -> None:
        finished = storable_run(replace(run, finished_at=self.fulfiller.clock.now()))
        self.runs[run.alias] = finished
        await self.fulfiller.store.finish_step(self.task.promotion.id, finished)

    def _weigh(self, step: Step, report: StepReport) -> None:
        order = [
            StepStatus.SUCCEEDED,
            StepStatus.SKIPPED,
            StepStatus.ABORTED,
            StepStatus.FAILED,
            StepStatus.ERRORED,
        ]
        status = report.status or StepStatus.SUCCEEDED
        if not step.continue_on_error and order.index(status) > order.index(self.worst):
            self.worst = status
            if status in _BAD:
                self.reason = f"{step.alias}: {report.message}"

    async def _note_push(self, report: StepReport) -> None:
        """What was published counts from here on as what was committed; of the target's branch it is the release."""
        record = report.record
        if self._is_ahead:
            return
        standing = await note_push(self.bench.git, self.tree, self.reports)
        if not isinstance(record, PublishRecord):
            return
        if standing is None:
            self._note_release(report, record)
            return
        for index, stands in standing.items():
            self.reports[index] = stands
            self.progress.record(self.task.promotion.steps[index], stands.status, dict(stands.output))
        if record.checkout in self.task.preview.checkouts:
            self.released = self.tree.checkout_at(record.checkout).head

    def _note_release(self, report: StepReport, record: PublishRecord) -> None:
        """What a checkout of another branch left on the target's."""
        preview, commit = self.task.preview, report.output.get("commit")
        is_target = record.checkout in preview.checkouts and record.branch == preview.target.branch
        is_other = record.branch != self.tree.checkout_at(record.checkout).pin.branch
        done = report.status is StepStatus.SUCCEEDED and bool(record.commits)
        if done and is_target and is_other and isinstance(commit, str) and commit != self.task.merge:
            self.released = CommitId(commit)
