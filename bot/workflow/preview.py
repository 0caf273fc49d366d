"""The first walk over a task: everything is looked at, nothing outside is changed.

The answer is one `Preview`: what the pull request holds, what waits until after the merge, and the digest that binds
both. Sections 1 to 7 of the review gate say what it must be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bot.domain.digest import preview_digest
from bot.domain.files import CommitId, Entry, File, TreeId
from bot.domain.guarding import find_unguarded, opens_nothing
from bot.domain.keeping import kept_paths
from bot.domain.model import Step
from bot.domain.promotion import Promotion, StepStatus, Target
from bot.domain.review import (
    ApplyRecord,
    Pin,
    Presence,
    Preview,
    Problem,
    Split,
    StepReport,
    checkouts_of,
)
from bot.domain.review_policy import ReviewPolicy
from bot.domain.splitting import Place, choose_lane, choose_place, find_cut, find_published, split_task
from bot.domain.step_kinds import AWAITS_MERGE, StepClass
from bot.domain.storing import storable_preview
from bot.domain.values import Unknown, Value, is_tainted
from bot.ports import Clock, TerminalError, TransientError, Vault
from bot.steps.contract import MergedBranch, StepContext, StepResult
from bot.steps.worktree import Sentinels, WorkTree, inside_path
from bot.workflow.benches import Bench, Benches
from bot.workflow.evaluation import Evaluator, Progress
from bot.workflow.record_file import choose_record_file, with_record

_TAINTABLE = (StepClass.EDIT, StepClass.READ, StepClass.WAIT)
_MOST_WALKS = 4
"""Walks of one preview; more than one are needed only where a rollback keeps the infrastructure."""
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


@dataclass(frozen=True, slots=True)
class Previewer:
    """Makes previews."""

    benches: Benches
    vault: Vault
    clock: Clock

    async def preview(
        self, promotion: Promotion, policy: ReviewPolicy, evaluator: Evaluator, base: Base | None = None
    ) -> Preview:
        """Walk the whole task; raises TerminalError if it has no place for its pull request.

        The answer may be stored: of secrets it holds the names.
        """
        sentinels = Sentinels(self.vault.digest(promotion.id.encode())[:8])
        bench = self.benches(promotion.project)
        environment: Mapping[str, Value] | None = None
        if base is not None and base.merged is not None and not base.reviewed:
            # People's commits are in what is planned, and nobody entitled has read them yet.
            environment = evaluator.environment(policy.plan_env)
        kept: frozenset[str] = frozenset()
        for _ in range(_MOST_WALKS):
            tree = WorkTree(bench.git, sentinels)
            walk = _Walk(self, bench, promotion, policy, evaluator, tree, base, environment, kept)
            await walk.run()
            # Which files are kept is known only at the step that reads them, and edits come before it.
            found = kept_paths(walk.reports)
            if found <= kept:
                return await self._conclude(walk)
            kept |= found
        raise TerminalError(
            f"what Terraform reads in {promotion.stage} changes with every look, so it cannot be kept as it is; "
            "set rollback.infra: WithFreight"
        )

    async def survey(
        self, promotion: Promotion, policy: ReviewPolicy, evaluator: Evaluator, kept: frozenset[str]
    ) -> tuple[Problem, ...]:
        """Walk a task on the branches as they are now, with read-only credentials alone; the answer is what went wrong.

        What the steps find they keep themselves; `kept` are paths that edits leave as they are. Raises TerminalError
        for a `planEnv` that cannot be evaluated.
        """
        bench = self.benches(promotion.project)
        tree = WorkTree(bench.git, Sentinels(self.vault.digest(promotion.id.encode())[:8]))
        walk = _Walk(self, bench, promotion, policy, evaluator, tree, None, kept=kept)
        walk.plan_environment = evaluator.environment(policy.plan_env)
        await walk.run()
        return tuple(walk.problems)

    async def _conclude(self, walk: _Walk) -> Preview:
        promotion, policy = walk.promotion, walk.policy
        pins = tuple(checkout.pin for checkout in walk.tree.checkouts.values())
        place = walk.base.place if walk.base else choose_place(walk.reports, pins, policy.review_in)
        if place is None:
            place = _place_of_failure(walk, pins)
        tip = await self._tip(walk, place, pins)
        title = f"prepare {promotion.stage} {promotion.freight.alias}"
        split = split_task(walk.reports, pins, place, title)
        problems = _zoned(walk.problems, walk.reports, split.cut)
        unguarded = find_unguarded(walk.reports, place, split.cut) if not problems else None
        tree, differences, held = await self._tree(walk, place, tip, split)
        lane, reason = choose_lane(walk.reports, split, has_diff=bool(differences))
        record = choose_record_file(policy, place, lane) if not differences and not walk.stopped else ""
        if record:
            try:
                split = await with_record(walk.bench.git, place.target.url, tip, split, promotion, record)
            except TerminalError as error:
                problems = (*problems, Problem("recordFile", str(error), prepared=True))
            tree, differences, held = await self._tree(walk, place, tip, split)
        preview = Preview(
            target=place.target,
            checkout=place.checkout,
            base=tip,
            tree=tree,
            steps=tuple(walk.reports),
            split=split,
            lane=lane,
            lane_reason=reason,
            differences=differences,
            touched=_touched(walk.reports, checkouts_of(place.target, place.checkout, pins))
            | ({record} if record else frozenset()),
            problems=(unguarded,) if unguarded is not None else problems,
            warnings=split.warnings,
            origins=dict(walk.tree.sentinels.origins),
            digest="",
            made_at=self.clock.now(),
            pins=pins,
            held=held,
            source=place.source,
            record_file=record,
        )
        return storable_preview(
            replace(preview, digest=preview_digest(preview, promotion, self.vault.digest))
        )

    async def _tip(self, walk: _Walk, place: Place, pins: tuple[Pin, ...]) -> CommitId:
        if walk.base is not None:
            return walk.base.tip
        pin = next((p for p in pins if p.path == place.checkout), None)
        if pin is not None and pin.commit is not None:
            return pin.commit
        await walk.bench.git.fetch(place.target.url)
        tip = await walk.bench.git.resolve(place.target.url, f"refs/heads/{place.target.branch}")
        if tip is None:
            raise TerminalError(
                f"the branch {place.target.branch} of {place.target.url} does not exist; create it, or set `reviewIn`"
            )
        return tip

    async def _tree(
        self, walk: _Walk, place: Place, tip: CommitId, split: Split
    ) -> tuple[TreeId, Mapping[str, Entry | None], str]:
        """The tree after the merge, its differences from the base, and why people's commits are not held."""
        url, git = place.target.url, walk.bench.git
        written: dict[str, File | None] = {}
        for commit in split.prepared:
            written |= {change.path: change.after for change in commit.changes}
        merged = walk.base.merged if walk.base is not None else None
        tree = (
            await git.write_tree(url, tip, written)
            if merged is None
            else (await git.read_commit(url, merged)).tree
        )
        differences = {path: after for path, _, after in await git.diff(url, tip, tree)}
        held = _why_not_held(written) if merged is not None and written else ""
        return tree, differences, held


@dataclass(slots=True)
class _Walk:
    """One walk in progress."""

    previewer: Previewer
    bench: Bench
    promotion: Promotion
    policy: ReviewPolicy
    evaluator: Evaluator
    tree: WorkTree
    base: Base | None
    plan_environment: Mapping[str, Value] | None = None
    kept: frozenset[str] = frozenset()
    """Paths of the work tree that edits leave as they are, since a rollback keeps the infrastructure."""
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
        place = choose_place(self.reports, self._pins(), self.policy.review_in) or _NOWHERE
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
            now=self.previewer.clock.now(),
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
        place = choose_place(self.reports, self._pins(), self.policy.review_in)
        checkout = self.tree.checkouts.get(place.checkout) if place is not None and place.source else None
        if place is None or checkout is None or checkout.pin.commit is None:
            return None
        commits = find_published(self.reports, place)
        files = {change.path: change.after for commit in commits for change in commit.changes}
        return MergedBranch(place.target, checkout.pin.commit, files)

    def _pins(self) -> tuple[Pin, ...]:
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


def _place_of_failure(walk: _Walk, pins: tuple[Pin, ...]) -> Place:
    """Where a failure is told that came before any push: the first branch that the task checked out.

    Raises TransientError if the world may answer later, TerminalError if the task has no place at all.
    """
    first = next((pin for pin in pins if pin.branch), None)
    if first is not None and walk.stopped:
        return Place(Target(first.url, first.branch), first.path)
    stage = walk.promotion.stage
    passing = next((problem for problem in walk.problems if problem.transient), None)
    if passing is not None:
        raise TransientError(f"the task of {stage} cannot be previewed now: {passing.message}")
    why = walk.problems[0].message if walk.problems else "no step clones, edits and pushes a branch"
    raise TerminalError(f"the task of {stage} has no place for its pull request: {why}")


def _outputs(report: StepReport) -> Value:
    """What later expressions see: nothing is known of a step whose outcome is not known."""
    if report.presence is Presence.CONDITIONAL or (
        report.status is StepStatus.FAILED and not report.continue_on_error
    ):
        return Unknown(f"known after step: {report.alias}")
    if report.status is None and not report.output:
        return Unknown(f"known after step: {report.alias}")
    return dict(report.output)


def _touched(reports: list[StepReport], checkouts: tuple[str, ...]) -> frozenset[str]:
    """All paths inside the target's checkouts that the walk read or wrote, Terraform's inputs included."""
    paths: set[str] = set()
    for report in reports:
        paths |= report.reads | report.wrote
        if isinstance(report.record, ApplyRecord):
            paths |= report.record.input_paths
    inner = (inside_path(checkout, path) for checkout in checkouts for path in paths)
    return frozenset(path for path in inner if path is not None and path != ".")


def _zoned(problems: list[Problem], reports: list[StepReport], cut: int) -> tuple[Problem, ...]:
    """Problems with the zone that they stand in: one of the prepared zone leaves nothing to review."""
    found = {report.alias: report for report in reports}
    early = {a for a, r in found.items() if r.index < cut or r.step_class is StepClass.REVIEW}
    return tuple(replace(problem, prepared=problem.alias in early) for problem in problems)


def _why_not_held(written: Mapping[str, File | None]) -> str:
    names = ", ".join(sorted(written)[:3])
    return f"the branch does not hold what the task writes to {names}: set it back, or rebuild it with `/promote`"
