"""`lockstep preview`: what a promotion's pull request would say, without a promotion."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.domain.actions import Snapshot
from bot.domain.availability import KnownFreight, available_freight, index_freight
from bot.domain.freight import Freight
from bot.domain.model import Stage
from bot.domain.promotion import Promotion
from bot.domain.tasks import TaskError
from bot.ports import TerminalError
from bot.reports.body import render_body, render_title
from bot.workflow.configuration import find_stage
from bot.workflow.discovery import Discoverer
from bot.workflow.segments import Worker


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Previews by hand."""

    worker: Worker
    discoverer: Discoverer

    async def preview(self, name: str, freight: str) -> str:
        """Title and body, as Markdown. Raises TerminalError if there is no such Stage or Freight."""
        configuration = self.worker.configuration
        stage = find_stage(configuration, name)
        problem = configuration.problem_of(stage.metadata.namespace, stage.metadata.name)
        if problem:
            raise TerminalError(problem)
        promotion = self._promotion(stage, await self._freight(stage, freight))
        policy = configuration.policy(stage)
        evaluator = await self.worker.evaluator(promotion)
        try:
            preview = await self.worker.previewer.preview(promotion, policy, evaluator)
            preview = await self.worker.follow_ups.with_obstacle(preview, policy)
        finally:
            await self.worker.store.drop_bundles(promotion.id)
        promotion = replace(promotion, digest=preview.digest, target=preview.target)
        seen = Snapshot(
            now=self.worker.clock.now(),
            project=promotion.project,
            stage=stage,
            policy=policy,
            promotion=promotion,
            preview=preview,
        )
        view = await self.worker.reporter.view(promotion, preview, "", seen)
        view = replace(view, marker="", page="")
        return f"# {render_title(view)}\n\n{render_body(view)}"

    async def _freight(self, stage: Stage, named: str) -> Freight:
        """The Freight that is named, or the newest available; a Warehouse that was never looked at is looked at."""
        project, store = stage.metadata.namespace, self.worker.store
        for request in stage.requested_freight:
            warehouse = self.worker.configuration.pipeline.warehouses.get((project, request.origin.name))
            if warehouse is not None and not await store.list_freight(project):
                await self.discoverer.look(warehouse)
        if named:
            found = await store.get_freight(project, named)
            if found is None:
                raise TerminalError(
                    f"there is no Freight {named} in {project}; name an alias, or a hash of 7 digits or more"
                )
            return found[0]
        known = [KnownFreight(freight, status) for freight, status in await store.list_freight(project)]
        now = self.worker.clock.now()
        available = available_freight(stage, index_freight(known), now)
        if available:
            return max(available, key=lambda item: item.freight.discovered_at).freight
        if known:
            # Nothing has come this far yet: the newest of all shows what it would be like.
            return max(known, key=lambda item: item.freight.discovered_at).freight
        raise TerminalError(f"{project} has no Freight yet; publish what its Warehouses watch")

    def _promotion(self, stage: Stage, freight: Freight) -> Promotion:
        try:
            return self.worker.gatherer.draft(stage, freight)
        except TaskError as error:
            raise TerminalError(str(error)) from error
