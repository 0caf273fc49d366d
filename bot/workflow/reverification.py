"""Verifying anew because somebody asks, and aborting what is under way: Kargo's reverify and abort."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from bot.domain.analysis import AnalysisRun, describe_run
from bot.domain.availability import verify_in_stage
from bot.domain.history import FreightCollection
from bot.domain.model import Stage
from bot.domain.promotion import State
from bot.ports import Look, Store
from bot.workflow.buttons import Refusal
from bot.workflow.verification import Verifier


@dataclass(frozen=True, slots=True)
class Reverification:
    """Answers `/verify`."""

    store: Store
    verifier: Verifier

    async def ask(self, stage: Stage, actor: str, *, abort: bool) -> str:
        """Do what somebody asks for; the answer is the reply. Raises Refusal."""
        project, name = stage.metadata.namespace, stage.metadata.name
        runs = await self.store.list_runs(project, name, limit=1)
        run = runs[0] if runs and not runs[0].phase.ended else None
        if abort:
            return await self._abort(name, run, actor)
        if run is not None:
            raise Refusal(f"{name} {describe_run(run)}. `/verify {name} abort` ends it")
        return await self._again(stage, actor)

    async def _abort(self, name: str, run: AnalysisRun | None, actor: str) -> str:
        if run is None or not await self.verifier.abort(run, actor):
            raise Refusal(f"no verification of {name} is under way")
        return f"the verification of {name} is aborted"

    async def _again(self, stage: Stage, actor: str) -> str:
        project, name = stage.metadata.namespace, stage.metadata.name
        if stage.is_control_flow:
            raise Refusal(
                f"{name} is a control-flow Stage: what is available to it is verified there at once"
            )
        current = await self.store.find_current_promotion(project, name)
        if current is not None and current.effects_begun:
            raise Refusal(f"a promotion of {current.freight.alias} to {name} is under way")
        record = await self.store.get_stage(project, name)
        ended = [p for p in await self.store.list_promotions(project, name) if p.state.ended]
        last = next((p for p in ended if p.state is State.SUCCEEDED), None)
        if not record.history or last is None:
            raise Refusal(f"{name} has no Freight yet")
        broken = next((p for p in ended if p.blocked), None)
        if broken is not None:
            raise Refusal(
                f"the last promotion of {name} failed: {broken.reason}. `/retry` or `/rollback` first"
            )
        if stage.verification is None:
            await self._verify_at_once(stage, record.history[0])
            return f"{name} has no verification of its own, so what it has counts as verified"
        await self.verifier.begin_again(last, record.history[0], actor)
        return f"what {name} has is verified anew"

    async def _verify_at_once(self, stage: Stage, collection: FreightCollection) -> None:
        project, name = stage.metadata.namespace, stage.metadata.name
        verify = partial(verify_in_stage, stage=name, at=self.verifier.clock.now())
        for freight in collection.items.values():
            await self.store.change_freight_status(project, freight, verify)
        stages = self.verifier.configuration.stages_in_order(project)
        await self.store.request_looks(
            [Look("stage", f"{project}/{item.metadata.name}", "Freight moved on") for item in stages]
        )
