"""After the merge of a person's own pull request: the Freight that each touched Stage has, once more.

A re-promotion is a Promotion like any other whose pull request is the merged one: the same gates, comparisons, stops,
journal and commands. Its id was chosen when it was previewed, so that one merge never begins it twice.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bot.domain.files import CommitId
from bot.domain.github import PullRequest
from bot.domain.model import Stage
from bot.domain.peoples_pulls import PeoplesPull, PlannedStage, choose_turn
from bot.domain.promotion import Following, PromotionId, State
from bot.ports import Event, Look, TerminalError
from bot.workflow.peoples_pulls import PeoplesPulls, Site

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Repromoter:
    """Begins re-promotions, in the pipeline's order."""

    people: PeoplesPulls

    async def settle(self, pull: PullRequest) -> None:
        """Note the end of a person's pull request: looks at its Stages carry a merge out, else it is forgotten."""
        url = self.people.gatherer.github.clone_url(pull.repository)
        store = self.people.gatherer.store
        row = await store.get_peoples_pull(url, pull.number)
        if row is not None and row.over:
            return
        if not pull.merged or pull.merge_commit is None:
            await store.forget_peoples_pull(url, pull.number)
            return
        if row is None or row.merge is None:
            row = await self._note_merge(pull, row, url)
        if row is not None:
            await store.request_looks([_look(plan, f"#{pull.number} was merged") for plan in row.plans])

    async def _note_merge(self, pull: PullRequest, row: PeoplesPull | None, url: str) -> PeoplesPull | None:
        merge = pull.merge_commit
        touching = await self.people.bystanders.look_at(pull)
        sites = await self.people.find_sites(pull, touching)
        if row is None:
            # It was never seen open: only what came after the Stage's own last Promotion is news.
            sites = [site for site in sites if not await self._contains(url, site, merge)]
        drafts = [self._draft(site, pull) for site in sites]
        if row is None and not drafts:
            return None
        order = [plan.key for plan in drafts if plan is not None]

        def merged(found: PeoplesPull) -> PeoplesPull:
            for plan in drafts:
                if plan is not None and found.plan_of(*plan.key) is None:
                    found = found.with_plan(plan, order)
            return replace(found, merge=merge, waits={})

        blank = PeoplesPull(url, pull.number, pull.base_branch)
        return await self.people.gatherer.store.change_peoples_pull(blank, merged)

    async def _contains(self, url: str, site: Site, merge: CommitId | None) -> bool:
        """Whether the Stage's last success had the merge below it already."""
        stage = site.stage.metadata
        recent = await self.people.gatherer.store.list_promotions(stage.namespace, stage.name, limit=10)
        last = next((p for p in recent if p.state is State.SUCCEEDED), None)
        left = (last.release_commit or last.merge_commit or last.base) if last is not None else None
        await self.people.gatherer.git.fetch(url)
        if left is None or merge is None:
            return False
        return await self.people.gatherer.git.is_ancestor(url, merge, left)

    def _draft(self, site: Site, pull: PullRequest) -> PlannedStage | None:
        """A plan without a preview: one is made before anything else is done. None if the Stage's task is wrong."""
        try:
            promotion = self.people.draft(site)
        except TerminalError as error:
            log.warning(
                "no re-promotion", extra={"pull": f"{pull.repository}#{pull.number}", "error": str(error)}
            )
            return None
        follows = Following(pull.number, promotion.created_at, promotion.created_at)
        return PlannedStage(replace(promotion, target=site.last.target, follows=follows))

    # -- beginning -------------------------------------------------------------------------------------------------

    async def begin(self, stage: Stage) -> None:
        """Begin the Stage's next re-promotion, if one is due here now and nothing else is unfinished."""
        key = (stage.metadata.namespace, stage.metadata.name)
        rows = [
            row
            for row in await self.people.gatherer.store.list_peoples_pulls(merged=True)
            if row.plan_of(*key) is not None
        ]
        for row in await self._in_merge_order(rows):
            known = await self._known(row)
            turn = choose_turn(row, known)
            if turn.over:
                await self._conclude(row)
            elif turn.plan is not None and self.people.gatherer.configuration.stage(*turn.plan.key) is None:
                await self._skip(row, turn.plan, "the pipeline has no such Stage any more")
            elif turn.plan is not None and turn.plan.key == key:
                await self._begin(stage, row, turn.plan)
                return
            elif turn.plan is not None:
                await self.people.gatherer.store.request_looks([_look(turn.plan, "its turn has come")])

    async def _in_merge_order(self, rows: Sequence[PeoplesPull]) -> list[PeoplesPull]:
        """Merges of one branch, the oldest first."""
        left, found, git = list(rows), [], self.people.gatherer.git
        while left:
            first = left[0]
            for other in left[1:]:
                same = (other.url, other.branch) == (first.url, first.branch)
                if same and first.merge is not None and other.merge is not None:
                    older = await git.is_ancestor(first.url, other.merge, first.merge)
                    first = other if older else first
            left.remove(first)
            found.append(first)
        return found

    async def _known(self, row: PeoplesPull) -> Mapping[PromotionId, bool]:
        found = [
            await self.people.gatherer.store.get_promotion(plan.promotion.id)
            for plan in row.plans
            if not plan.done
        ]
        return {promotion.id: promotion.state.ended for promotion in found if promotion is not None}

    async def _conclude(self, row: PeoplesPull) -> None:
        """All is done: what stays only tells that it was."""
        store = self.people.gatherer.store
        for plan in row.plans:
            await store.drop_unbegun(plan.promotion.id)
        await store.change_peoples_pull(row, lambda found: replace(found, plans=(), waits={}, over=True))

    async def _begin(self, stage: Stage, row: PeoplesPull, plan: PlannedStage) -> None:
        gatherer = self.people.gatherer
        project, name = plan.key
        busy = await gatherer.store.find_current_promotion(project, name)
        repository = gatherer.github.repository_of(row.url)
        if busy is not None or repository is None or gatherer.configuration.problem_of(project, name):
            # What is unfinished there stands on the merge, or is previewed again on it; its end asks for this look.
            return
        pull = await gatherer.github.get_pull_request(repository, row.pull)
        last = await self.people.bystanders.last_preview(stage, repository)
        site = await self.people.site_of(stage, last) if last is not None else None
        if site is None:
            await self._skip(
                row, plan, "its last promotion failed on the way: `/retry` applies what is there now"
            )
            return
        preview = await self.people.preview_of(plan)
        holds = (plan.promotion.head, plan.promotion.freight.name) == (pull.head, site.freight.name)
        former = plan.promotion.freight
        if preview is None or not holds:
            try:
                plan = await self._on_the_merge(row, pull, site, plan)
            except TerminalError as error:
                # The Stage must not stand still for it: its next promotion shows what is pending.
                await self._skip(row, plan, f"it cannot be previewed: {error}")
                return
        if plan.differs and site.freight.name != former.name:
            await self._skip(row, plan, f"{site.freight.alias}, which {name} has now, came on top of it")
        elif plan.differs:
            await self._skip(row, plan, f"nothing is applied: {plan.differs}")
        elif plan.idle:
            await self._skip(row, plan, "Terraform's inputs are those that are applied already")
        else:
            await self._create(row, plan)

    async def _on_the_merge(
        self, row: PeoplesPull, pull: PullRequest, site: Site, plan: PlannedStage
    ) -> PlannedStage:
        """Preview on what the merge has left what nobody has seen yet: approvals of something else do not count."""
        git, merge = self.people.gatherer.git, row.merge or CommitId("")
        await git.fetch(row.url)
        commit = await git.read_commit(row.url, merge)
        made = await self.people.make(pull, site, plan, commit.parents[0], merge)
        order = [item.key for item in row.plans]
        await self.people.gatherer.store.change_peoples_pull(row, lambda found: found.with_plan(made, order))
        return made

    async def _skip(self, row: PeoplesPull, plan: PlannedStage, why: str) -> None:
        """Note that there is nothing to re-promote in a Stage, and let the next one have its turn."""
        store = self.people.gatherer.store
        done = replace(plan, done=why)
        order = [item.key for item in row.plans]
        await store.change_peoples_pull(row, lambda found: found.with_plan(done, order))
        await self._tell(plan, f"no re-promotion of {plan.promotion.freight.alias} after #{row.pull}: {why}")
        await store.request_looks([_look(item, "its turn has come") for item in row.plans])

    async def _create(self, row: PeoplesPull, plan: PlannedStage) -> None:
        """The Promotion begins as merged, and is held until every gate is asked."""
        store, planned = self.people.gatherer.store, plan.promotion
        preview = await self.people.preview_of(plan)
        said = f"re-promotion of {planned.freight.alias} after #{row.pull}"
        red = f"merged while red: {preview.problems[0].message}" if preview and preview.problems else ""
        promotion = replace(
            planned,
            state=State.HELD,
            merge_commit=row.merge,
            pushers=row.pushers,
            created_at=self.people.gatherer.clock.now(),
            reason=red or said,
        )
        if await store.create_promotion(promotion):
            await self._tell(plan, said)

    async def _tell(self, plan: PlannedStage, message: str) -> None:
        promotion, now = plan.promotion, self.people.gatherer.clock.now()
        event = Event(now, promotion.project, promotion.stage, promotion.id, "promotion", message)
        await self.people.gatherer.store.add_event(event)


def _look(plan: PlannedStage, reason: str) -> Look:
    return Look("stage", "/".join(plan.key), reason)
