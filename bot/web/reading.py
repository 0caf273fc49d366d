"""Reading what the pages show: few queries for a whole project, and gates looked at once for all who watch."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.domain.actions import Snapshot
from bot.domain.availability import KnownFreight, index_freight
from bot.domain.discovery import decode_discovery
from bot.domain.freight import Freight
from bot.domain.github import Repository
from bot.domain.promotion import Promotion, PromotionId, State
from bot.domain.view import PromotionView
from bot.ports import Clock, GitHub, PromotionLine, Store, TerminalError, TransientError
from bot.reports.gates import is_gated
from bot.web.overview import ProjectFacts
from bot.web.promotion_page import Links, PromotionFacts
from bot.workflow.author_links import find_links
from bot.workflow.configuration import Configuration
from bot.workflow.proofs import present_runs
from bot.workflow.snapshots import Gatherer

_PROJECT_KEPT = timedelta(seconds=1)
_REST = 10
_GATES_KEPT = timedelta(seconds=15)
_MOST_LOOKS = 200
_MOST_EVENTS = 200
_PROMOTIONS = 5
"""Promotions of a Stage that are read for the first page: the present one and what came before it."""


@dataclass(frozen=True, slots=True)
class _Look:
    """A look at a promotion's gates, under way or done; good for the row that it was made for."""

    at: datetime
    promotion: Promotion
    task: asyncio.Task[tuple[Snapshot | None, str]]


@dataclass(slots=True)
class Reading:
    """Reads for the pages. `own` is the repository of the configuration, None if it is a directory."""

    store: Store
    github: GitHub
    clock: Clock
    configuration: Configuration
    gatherer: Gatherer
    own: Repository | None = None
    projects: dict[str, tuple[datetime, ProjectFacts]] = field(default_factory=dict)
    looks: dict[PromotionId, _Look] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def project_names(self) -> tuple[str, ...]:
        """The projects of the configuration in force that have Stages."""
        return tuple(sorted({project for project, _ in self.configuration.pipeline.stages}))

    async def project(self, name: str) -> ProjectFacts:
        """Everything about a project, a second old at most; older where reading it takes more than a tenth of that."""
        async with self.lock:
            now = self.clock.now()
            until, known = self.projects.get(name, (now, None))
            if known is None or now >= until:
                begun = time.perf_counter()
                known = await self._read_project(name, now)
                # However many people watch a large project, most of the time is left for the bot's work.
                took = timedelta(seconds=time.perf_counter() - begun)
                self.projects[name] = now + max(_PROJECT_KEPT, took * _REST), known
            return known

    async def _read_project(self, name: str, now: datetime) -> ProjectFacts:
        listed = await self.store.list_freight(name)
        freight = tuple(KnownFreight(item, status) for item, status in listed)
        promotions: defaultdict[str, tuple[PromotionLine, ...]] = defaultdict(tuple)
        for line in await self.store.list_newest_promotions(name, _PROMOTIONS):
            promotions[line.stage] += (line,)
        records = await self.store.list_stages(name)
        freight_links, stage_links = self.configuration.links(name)
        return ProjectFacts(
            name=name,
            now=now,
            stages=self.configuration.stages_in_order(name),
            config=self.configuration.project_config(name),
            freight_links=freight_links,
            stage_links=stage_links,
            freight=freight,
            index=index_freight(freight),
            records={record.stage: record for record in records},
            promotions=dict(promotions),
            events=tuple(await self.store.list_events(project=name, limit=_MOST_EVENTS)),
            problem_of=lambda stage: self.configuration.problem_of(name, stage),
            discoveries={
                warehouse: (decode_discovery(found), at)
                for warehouse, (found, at) in (await self.store.list_discoveries(name)).items()
            },
            runs=present_runs(await self.store.list_newest_runs(name), records),
            drifts={record.stage: record for record in await self.store.list_drifts(name)},
        )

    # -- repositories --------------------------------------------------------------------------------------------------

    def repositories(self, facts: ProjectFacts) -> Mapping[str, frozenset[Repository]]:
        """By Stage the repositories that somebody must be able to read to see it; none means that nobody sees it.

        A Stage belongs to the repositories that its promotions go to. One that never had any belongs to the
        repository of the configuration, or else to those of the project's other Stages.
        """
        found = {name: self._targets(lines) for name, lines in facts.promotions.items()}
        everywhere = frozenset().union(*found.values()) if found else frozenset()
        otherwise = frozenset({self.own}) if self.own is not None else everywhere
        names = [stage.metadata.name for stage in facts.stages]
        return {name: found.get(name) or otherwise for name in names}

    def _targets(self, lines: Iterable[PromotionLine]) -> frozenset[Repository]:
        targets = {line.target.url for line in lines if line.target is not None}
        found = (self.github.repository_of(url) for url in targets)
        return frozenset(repository for repository in found if repository is not None)

    async def repositories_of(self, promotion: Promotion) -> frozenset[Repository]:
        """The repositories that somebody must be able to read to see a promotion."""
        if promotion.target is not None:
            repository = self.github.repository_of(promotion.target.url)
            return frozenset({repository}) if repository is not None else frozenset()
        facts = await self.project(promotion.project)
        return self.repositories(facts).get(promotion.stage, frozenset())

    # -- one promotion -------------------------------------------------------------------------------------------------

    async def promotion(self, promotion: Promotion) -> PromotionFacts:
        """Everything about one promotion."""
        preview = await self.store.get_preview(promotion.id, promotion.preview) if promotion.preview else None
        stage = self.configuration.stage(promotion.project, promotion.stage)
        view, problem = await self._view(promotion)
        return PromotionFacts(
            promotion=promotion,
            preview=preview,
            now=self.clock.now(),
            runs=await self.store.list_steps(promotion.id),
            current=await self._former(promotion),
            view=view,
            gates_problem=problem,
            events=tuple(await self.store.list_events(promotion=promotion.id, limit=_MOST_EVENTS)),
            links=self._links(promotion),
            author_links=find_links(self.configuration, promotion, stage),
            show_others=stage is not None and self.configuration.policy(stage).show_other_repositories,
            verifications=tuple(
                run
                for run in await self.store.list_runs(promotion.project, promotion.stage)
                if run.promotion == promotion.id
            ),
        )

    async def _view(self, promotion: Promotion) -> tuple[PromotionView | None, str]:
        """The gates as the reports know them, and why they cannot be told."""
        if not is_gated(promotion) or promotion.running or not promotion.preview:
            return None, ""
        seen, problem = await self._look_at_gates(promotion)
        if seen is None:
            return None, problem
        view = PromotionView(promotion, seen.preview, seen.now, seen.gates, seen.tally, seen.policy.approvals)
        return view, ""

    async def _look_at_gates(self, promotion: Promotion) -> tuple[Snapshot | None, str]:
        """Gates cost requests to GitHub and a fetch, so one look serves everybody who watches."""
        now = self.clock.now()
        known = self.looks.get(promotion.id)
        if known is None or known.promotion != promotion or now - known.at >= _GATES_KEPT:
            if len(self.looks) >= _MOST_LOOKS:
                self.looks = {key: look for key, look in self.looks.items() if not look.task.done()}
            known = _Look(now, promotion, asyncio.create_task(self._ask_for_gates(promotion)))
            self.looks[promotion.id] = known
        # Somebody who goes away does not take the look from the others.
        return await asyncio.shield(known.task)

    async def _ask_for_gates(self, promotion: Promotion) -> tuple[Snapshot | None, str]:
        stage = self.configuration.stage(promotion.project, promotion.stage)
        if stage is None:
            return None, "the Stage is not in the configuration any more"
        try:
            seen = await self.gatherer.gather(stage)
        except (TransientError, TerminalError) as error:
            return None, str(error)
        same = seen.promotion is not None and seen.promotion.id == promotion.id
        return (seen, "") if same else (None, "")

    async def _former(self, promotion: Promotion) -> Freight | None:
        """The Freight that the Stage has, or had before this promotion brought its own."""
        record = await self.store.get_stage(promotion.project, promotion.stage)
        history, origin = record.history, promotion.freight.origin
        if promotion.state is State.SUCCEEDED:
            names = [collection.items.get(origin) for collection in history]
            own = promotion.freight.name
            history = history[names.index(own) + 1 :] if own in names else ()
        elif promotion.state.ended and record.since is not None and record.since > promotion.created_at:
            # What the Stage has now came later; what it had then is not remembered.
            return None
        name = history[0].items.get(origin) if history else None
        found = await self.store.get_freight(promotion.project, name) if name is not None else None
        return found[0] if found is not None else None

    def _links(self, promotion: Promotion) -> Links:
        repository = self.github.repository_of(promotion.target.url) if promotion.target is not None else None
        if repository is None:
            return Links()
        web = self.pages_of(repository)
        return Links(
            pull=f"{web}/pull/{promotion.pull}" if promotion.pull is not None else "",
            merge=f"{web}/commit/{promotion.merge_commit}" if promotion.merge_commit else "",
            release=f"{web}/commit/{promotion.release_commit}" if promotion.release_commit else "",
        )

    def pages_of(self, repository: Repository) -> str:
        """The address of a repository's pages."""
        return self.github.clone_url(repository).removesuffix(".git")

    def pull_of(self, line: PromotionLine) -> str:
        """The address of a promotion's pull request, empty if it has none."""
        repository = self.github.repository_of(line.target.url) if line.target is not None else None
        return f"{self.pages_of(repository)}/pull/{line.pull}" if repository is not None and line.pull else ""
