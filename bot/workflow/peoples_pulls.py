"""People's own pull requests: previewed for every Stage whose Terraform reads what they change, and checked.

A preview here is that of the Stage's own Freight on the tree that the merge would leave, with `planEnv` alone, since
nobody entitled has read the code. Of a fork nothing is run until somebody with the right has named its head.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from bot.domain.files import CommitId
from bot.domain.freight import Freight
from bot.domain.github import CheckRun, Permission, PullNumber, PullRequest, Repository
from bot.domain.model import Stage
from bot.domain.peoples_pulls import (
    PeoplesPull,
    PlannedStage,
    Standpoint,
    foreign_branch,
    next_preview,
    plan_stage,
    why_preview,
)
from bot.domain.promotion import Promotion, State
from bot.domain.review import Preview
from bot.domain.splitting import Place
from bot.domain.tasks import TaskError
from bot.domain.territory import sources_of
from bot.ports import Conflicted, Look, TerminalError
from bot.workflow.branches import merge_for_preview
from bot.workflow.bystanders import Bystanders, Touching
from bot.workflow.evaluation import Evaluator
from bot.workflow.preview import Previewer
from bot.workflow.pull_reports import PullReports
from bot.workflow.snapshots import Gatherer
from bot.workflow.walk import Base

_AT_ONCE = 2
_RECENT = 10
_MOST_SEEN = 10_000


@dataclass(frozen=True, slots=True)
class Site:
    """A Stage that a person's pull request concerns: its last preview tells where, its Freight what."""

    stage: Stage
    last: Preview
    freight: Freight
    collection: tuple[Freight, ...]


@dataclass(frozen=True, slots=True)
class PeoplesPulls:
    """Previews and checks people's pull requests. `evaluator` makes the expressions of one Promotion."""

    gatherer: Gatherer
    bystanders: Bystanders
    previewer: Previewer
    shown: PullReports
    evaluator: Callable[[Promotion], Awaitable[Evaluator]]
    seen: dict[tuple[Repository, PullNumber], CommitId] = field(default_factory=dict)
    """The head at which this process last looked at a pull request."""
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def look(self, pull: PullRequest) -> None:
        """Show what is known of an open pull request, make what previews are due, and show those."""
        if len(self.seen) >= _MOST_SEEN:
            self.seen.clear()
        self.seen[(pull.repository, pull.number)] = pull.head
        touching = await self.bystanders.look_at(pull)
        if not await self._is_newest(pull):
            # GitHub lists the files of whatever head there was just then, and a check would speak of another one.
            return
        sites = await self.find_sites(pull, touching)
        row = await self._row(pull, sites)
        if row is None:
            await self.shown.reporter.post_check(
                pull.repository, await self.shown.plain_check(pull, touching, pull.head)
            )
            return
        why = await self.why_not_allowed(pull, row)
        due = [] if why else await self._due(pull, row, sites)
        await self.shown.post(pull, touching, row, why, [site.stage for site in due])
        for site in due:
            if not await self._is_newest(pull):
                # Its own event asks for another look: only the newest head is planned.
                return
            row = await self._preview(pull, row, site)
        if due:
            row = await self._change(pull, lambda found: replace(found, wanted=""))
            await self.shown.post(pull, touching, row, why, [])
        await self._look_again(pull, row)

    def has_seen(self, pull: PullRequest) -> bool:
        """Whether this process has looked at the present head."""
        return self.seen.get((pull.repository, pull.number)) == pull.head

    async def judge(self, pull: PullRequest, head: CommitId) -> CheckRun:
        """The required check as it is now, to be shown on `head` (its own, or its merge group's)."""
        touching = await self.bystanders.look_at(pull)
        row = await self.gatherer.store.get_peoples_pull(self._url(pull), pull.number)
        if row is None:
            return await self.shown.plain_check(pull, touching, head)
        why = await self.why_not_allowed(pull, row)
        return replace(await self.shown.check(pull, touching, row, why), head=head)

    # -- whom it concerns ------------------------------------------------------------------------------------------

    async def find_sites(self, pull: PullRequest, touching: Touching) -> list[Site]:
        """The Stages with Freight whose Terraform reads what the pull request changes, in pipeline order."""
        found = []
        for stage in self._in_order([stage for stage, _ in touching.stages]):
            last = await self.bystanders.last_preview(stage, pull.repository)
            if last is None or last.target.branch != pull.base_branch or not last.applies:
                continue
            sources = sources_of(last)
            if touching.all_listed and not sources.find(touching.paths):
                continue
            site = await self.site_of(stage, last)
            if site is not None:
                found.append(site)
        return found

    async def site_of(self, stage: Stage, last: Preview) -> Site | None:
        """The Stage with the Freight that it has; None if it has none, or its last Promotion failed on the way.

        There the files are those of the Freight that failed, and `/retry` applies them.
        """
        project, name = stage.metadata.namespace, stage.metadata.name
        store = self.gatherer.store
        record = await store.get_stage(project, name)
        recent = await store.list_promotions(project, name, limit=_RECENT)
        ended = [promotion for promotion in recent if promotion.state.ended]
        if not record.history or (ended and ended[0].blocked):
            return None
        items = record.history[0].items
        known = {
            origin: found[0]
            for origin, freight in items.items()
            if (found := await store.get_freight(project, freight)) is not None
        }
        arrived = (p.freight.origin for p in ended if p.state is State.SUCCEEDED)
        origin = next((o for o in arrived if o in known), next(iter(known), None))
        if origin is None:
            return None
        freight = known[origin]
        others = tuple(other for key, other in known.items() if key != origin)
        return Site(stage, last, freight, (freight, *others))

    def _in_order(self, stages: Sequence[Stage]) -> list[Stage]:
        wanted = {(stage.metadata.namespace, stage.metadata.name) for stage in stages}
        projects = sorted({project for project, _ in wanted})
        configuration = self.gatherer.configuration
        return [
            stage
            for project in projects
            for stage in configuration.stages_in_order(project)
            if (project, stage.metadata.name) in wanted
        ]

    # -- what is remembered ----------------------------------------------------------------------------------------

    async def _row(self, pull: PullRequest, sites: Sequence[Site]) -> PeoplesPull | None:
        """What is remembered of the pull request; nothing if it concerns no Stage's Terraform."""
        url, store = self._url(pull), self.gatherer.store
        if not sites:
            await store.forget_peoples_pull(url, pull.number)
            return None
        kept = [_key(site.stage) for site in sites]
        head = "" if pull.from_fork else pull.head_branch
        return await self._change(
            pull, lambda row: replace(row.without(kept), branch=pull.base_branch, head_branch=head)
        )

    async def _change(self, pull: PullRequest, change: Callable[[PeoplesPull], PeoplesPull]) -> PeoplesPull:
        blank = PeoplesPull(self._url(pull), pull.number, pull.base_branch)
        return await self.gatherer.store.change_peoples_pull(blank, change)

    def _url(self, pull: PullRequest) -> str:
        return self.gatherer.github.clone_url(pull.repository)

    async def _look_again(self, pull: PullRequest, row: PeoplesPull) -> None:
        """Have it looked at when a plan is too old, or a passing trouble may be over."""
        times = []
        for plan in row.plans:
            stage = self.gatherer.configuration.stage(*plan.key)
            preview = await self.preview_of(plan)
            if stage is not None and preview is not None:
                times.append(next_preview(preview, self.gatherer.configuration.policy(stage).plan_max_age))
        soonest = min((at for at in times if at is not None), default=None)
        if soonest is not None:
            look = Look("pull", f"{pull.repository}#{pull.number}", "its plan is old")
            await self.gatherer.store.request_looks([look], at=soonest)

    # -- whether it may be planned ---------------------------------------------------------------------------------

    async def why_not_allowed(self, pull: PullRequest, row: PeoplesPull) -> str:
        """Why nothing of this head may be run, empty if it may be."""
        if row.vouched == pull.head:
            return ""
        by_hand = f"somebody who may plan reads it and types `/plan {pull.head}`"
        if pull.from_fork:
            return f"A fork is planned only when {by_hand}"
        author = pull.author
        if author.bot:
            return f"What a bot wrote is planned only when {by_hand}"
        permission = await self.gatherer.github.get_permission(pull.repository, author.login)
        if permission.rank < Permission.WRITE.rank:
            return f"{author.login} may not write here, so it is planned only when {by_hand}"
        return ""

    # -- previews --------------------------------------------------------------------------------------------------

    async def _due(self, pull: PullRequest, row: PeoplesPull, sites: Sequence[Site]) -> list[Site]:
        url, git = self._url(pull), self.gatherer.git
        await git.fetch(url, f"refs/pull/{pull.number}/head")
        tip = await git.resolve(url, f"refs/heads/{pull.base_branch}")
        if tip is None:
            return []
        due = []
        for site in sites:
            plan = row.plan_of(*_key(site.stage))
            preview = await self.preview_of(plan) if plan is not None else None
            moved: tuple[str, ...] = ()
            if preview is not None and preview.base != tip:
                moved = tuple(path for path, _, _ in await git.diff(url, preview.base, tip))
            try:
                promotion = self.draft(site)
            except TerminalError:
                # Its preview says what is wrong with the task.
                due.append(site)
                continue
            now = Standpoint(pull.head, tip, site.freight.name, promotion, moved)
            max_age = self.gatherer.configuration.policy(site.stage).plan_max_age
            if row.wanted or why_preview(plan, preview, now, self.gatherer.clock.now(), max_age):
                due.append(site)
        return due

    async def preview_of(self, plan: PlannedStage) -> Preview | None:
        """The preview of a plan, None if it was never made or is forgotten."""
        return await self.gatherer.store.get_preview(plan.promotion.id, plan.promotion.preview)

    def draft(self, site: Site) -> Promotion:
        """The re-promotion as it would be made now; TerminalError if the Stage's task is wrong."""
        try:
            draft = self.gatherer.draft(site.stage, site.freight)
        except TaskError as error:
            raise TerminalError(f"the task of {site.stage.metadata.name} is wrong: {error}") from error
        return replace(draft, collection=site.collection, actor="")

    async def _preview(self, pull: PullRequest, row: PeoplesPull, site: Site) -> PeoplesPull:
        """Preview one Stage on the tree that the merge would leave, and remember it."""
        url, git = self._url(pull), self.gatherer.git
        key = _key(site.stage)
        tip = await git.resolve(url, f"refs/heads/{pull.base_branch}")
        if tip is None:
            return await self._without_plan(pull, row, key, "its base branch is gone")
        merged = await merge_for_preview(git, url, tip, pull.head, self.gatherer.clock.now())
        if isinstance(merged, Conflicted):
            where = f" in {', '.join(merged.paths[:5])}" if merged.paths else ""
            return await self._without_plan(pull, row, key, f"it conflicts with {pull.base_branch}{where}")
        try:
            plan = await self.make(pull, site, row.plan_of(*key), tip, merged)
        except TerminalError as error:
            return await self._without_plan(pull, row, key, str(error))
        order = [_key(stage) for stage in self._in_order([site.stage, *self._stages_of(row)])]
        return await self._change(pull, lambda found: found.with_plan(plan, order))

    async def _without_plan(
        self, pull: PullRequest, row: PeoplesPull, key: tuple[str, str], why: str
    ) -> PeoplesPull:
        """Note why a Stage cannot be previewed; what was shown of it before no longer holds."""
        waits = {**row.waits, "/".join(key): why}
        plans = tuple(plan for plan in row.plans if plan.key != key)
        return await self._change(pull, lambda found: replace(found, waits=waits, plans=plans))

    async def make(
        self, pull: PullRequest, site: Site, before: PlannedStage | None, tip: CommitId, merged: CommitId
    ) -> PlannedStage:
        """Preview one Stage on `merged`, what becomes of `tip`; an earlier preview of the same Freight is replaced.

        Raises TransientError and TerminalError of the world.
        """
        store = self.gatherer.store
        promotion = self.draft(site)
        if before is not None and before.promotion.freight.name == site.freight.name:
            old = before.promotion
            promotion = replace(promotion, id=old.id, preview=old.preview, created_at=old.created_at)
            await store.drop_bundles(old.id)
        elif before is not None:
            await store.drop_unbegun(before.promotion.id)
        promotion = replace(
            promotion,
            actor=pull.author.login,
            actor_id=pull.author.id,
            target=site.last.target,
            base=tip,
            head=pull.head,
            # It is no branch of ours, whatever its name is, and is never deleted.
            source=foreign_branch(pull),
            preview=promotion.preview + 1,
        )
        policy = self.gatherer.configuration.policy(site.stage)
        place = Place(site.last.target, site.last.checkout, site.last.source)
        async with self.places:
            preview = await self.previewer.preview(
                promotion, policy, await self.evaluator(promotion), Base(place, tip, merged)
            )
        await store.save_preview(promotion.id, promotion.preview, preview)
        return plan_stage(promotion, preview, before, pull.number, self.gatherer.clock.now())

    def _stages_of(self, row: PeoplesPull) -> list[Stage]:
        found = (self.gatherer.configuration.stage(*plan.key) for plan in row.plans)
        return [stage for stage in found if stage is not None]

    async def _is_newest(self, pull: PullRequest) -> bool:
        newest = await self.gatherer.github.get_pull_request(pull.repository, pull.number)
        return newest.open and newest.head == pull.head


def _key(stage: Stage) -> tuple[str, str]:
    return stage.metadata.namespace, stage.metadata.name
