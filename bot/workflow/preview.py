"""The first walk over a task: everything is looked at, nothing outside is changed.

The answer is one `Preview`: what the pull request holds, what waits until after the merge, and the digest that binds
both. Sections 1 to 7 of the review gate say what it must be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from bot.domain.digest import preview_digest
from bot.domain.files import CommitId, Entry, File, TreeId
from bot.domain.guarding import find_unguarded
from bot.domain.keeping import kept_paths
from bot.domain.promotion import Promotion, Target
from bot.domain.review import (
    ApplyRecord,
    Pin,
    Preview,
    Problem,
    Split,
    StepReport,
    checkouts_of,
)
from bot.domain.review_policy import ReviewPolicy
from bot.domain.splitting import Place, choose_lane, choose_place, split_task
from bot.domain.step_kinds import StepClass
from bot.domain.storing import storable_preview
from bot.ports import Clock, TerminalError, TransientError, Vault
from bot.steps.worktree import Sentinels, WorkTree, inside_path
from bot.workflow.benches import Benches
from bot.workflow.evaluation import Evaluator
from bot.workflow.holding import Zone, find_zone, why_not_held
from bot.workflow.record_file import choose_record_file, with_record
from bot.workflow.targets import find_root, find_tip
from bot.workflow.walk import Base, Walk

_MOST_WALKS = 4
"""Walks of one preview; more than one are needed only where a rollback keeps the infrastructure."""


@dataclass(frozen=True, slots=True)
class Previewer:
    """Makes previews."""

    benches: Benches
    vault: Vault
    clock: Clock
    author: tuple[str, str] = ("lockstep", "lockstep@localhost")
    """Name and e-mail in the first commit of a branch that is made for a pull request."""

    async def preview(
        self, promotion: Promotion, policy: ReviewPolicy, evaluator: Evaluator, base: Base | None = None
    ) -> Preview:
        """Walk the whole task; raises TerminalError if it has no place for its pull request.

        The answer may be stored: of secrets it holds the names.
        """
        sentinels = Sentinels(self.vault.digest(promotion.id.encode())[:8])
        bench = self.benches(promotion.project)

        def begin(on: Base | None, zone: Zone | None, kept: frozenset[str]) -> Walk:
            walk = Walk(self.clock, bench, promotion, policy, evaluator, WorkTree(bench.git, sentinels), on)
            if on is not None and on.merged is not None and not on.reviewed:
                # People's commits are in what is planned, and nobody entitled has read them yet.
                walk.plan_environment = evaluator.environment(policy.plan_env)
            walk.zone, walk.kept = zone, kept
            return walk

        zone: Zone | None = None
        if base is not None and base.merged is not None and base.ours:
            first = await self._settled(partial(begin, replace(base, merged=None), None))
            zone = await self._zone(first, base.place, base.merged)
        return await self._conclude(await self._settled(partial(begin, base, zone)))

    async def _settled(self, begin: Callable[[frozenset[str]], Walk]) -> Walk:
        """Walk until what a rollback keeps is known: that is told by the step that reads it, and edits come before it.

        Raises TerminalError if it never is.
        """
        kept: frozenset[str] = frozenset()
        for _ in range(_MOST_WALKS):
            walk = begin(kept)
            await walk.run()
            found = kept_paths(walk.reports)
            if found <= kept:
                return walk
            kept |= found
        raise TerminalError(
            f"what Terraform reads in {walk.promotion.stage} changes with every look, so it cannot be kept as it is; "
            "set rollback.infra: WithFreight"
        )

    async def _zone(self, walk: Walk, place: Place, merged: CommitId) -> Zone | None:
        """What the prepared zone did on the base, None if the merge does not hold all of it.

        Raises TransientError if the zone could not be run there now.
        """
        if place.checkout not in walk.tree.checkouts:
            return None
        split = split_task(walk.reports, walk.pins(), place, _title(walk.promotion))
        for problem in _zoned(walk.problems, walk.reports, split.cut):
            if problem.prepared and problem.transient:
                raise TransientError(problem.message)
            if problem.prepared:
                return None
        return await find_zone(walk.bench.git, place, split, (walk.reports, walk.tree), merged)

    async def survey(
        self, promotion: Promotion, policy: ReviewPolicy, evaluator: Evaluator, kept: frozenset[str]
    ) -> tuple[Problem, ...]:
        """Walk a task on the branches as they are now, with read-only credentials alone; the answer is what went wrong.

        What the steps find they keep themselves; `kept` are paths that edits leave as they are. Raises TerminalError
        for a `planEnv` that cannot be evaluated.
        """
        bench = self.benches(promotion.project)
        tree = WorkTree(bench.git, Sentinels(self.vault.digest(promotion.id.encode())[:8]))
        walk = Walk(self.clock, bench, promotion, policy, evaluator, tree, None, kept=kept)
        walk.plan_environment = evaluator.environment(policy.plan_env)
        await walk.run()
        return tuple(walk.problems)

    async def _conclude(self, walk: Walk) -> Preview:
        promotion, policy = walk.promotion, walk.policy
        pins = walk.pins()
        place = walk.base.place if walk.base else choose_place(walk.reports, pins, policy.review_in)
        if place is None:
            place = _place_of_failure(walk, pins)
        tip = (
            walk.base.tip
            if walk.base is not None
            else await find_tip(walk.bench.git, place, pins, promotion, self.author)
        )
        split = split_task(walk.reports, pins, place, _title(promotion))
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

    async def _tree(
        self, walk: Walk, place: Place, tip: CommitId, split: Split
    ) -> tuple[TreeId, Mapping[str, Entry | None], str]:
        """The tree after the merge, its differences from the base, and why people's commits are not held."""
        url, git = place.target.url, walk.bench.git
        written: dict[str, File | None] = {}
        for commit in split.prepared:
            written |= {change.path: change.after for change in commit.changes}
        merged = walk.base.merged if walk.base is not None else None
        tree = (
            await git.write_tree(url, await find_root(git, place, walk.pins(), walk.reports, tip), written)
            if merged is None
            else (await git.read_commit(url, merged)).tree
        )
        differences = {path: after for path, _, after in await git.diff(url, tip, tree)}
        held = "" if merged is None else why_not_held(written, await git.list_files(url, merged))
        if not held and walk.zone is not None:
            held = walk.zone.why_not_held(split)
        return tree, differences, held


def _place_of_failure(walk: Walk, pins: tuple[Pin, ...]) -> Place:
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


def _title(promotion: Promotion) -> str:
    return f"prepare {promotion.stage} {promotion.freight.alias}"
