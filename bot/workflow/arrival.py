"""What it means for a Stage that a Promotion succeeded: it has the Freight, which is verified, or about to be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from bot.domain.availability import enter_stage, leave_stage, verify_in_stage
from bot.domain.freight import FreightStatus
from bot.domain.history import FreightCollection, next_collection, record_collection
from bot.domain.model import Stage
from bot.domain.promotion import Promotion
from bot.ports import Clock, StageRecord, Store
from bot.workflow.verification import Verifier


@dataclass(frozen=True, slots=True)
class Arrival:
    """Notes arrivals."""

    store: Store
    clock: Clock
    verifier: Verifier

    async def note(self, promotion: Promotion, stage: Stage | None) -> None:
        """The Stage has the Freight now; without a verification of its own it is verified there. Twice is once."""
        project, name, now = promotion.project, promotion.stage, self.clock.now()
        record = await self.store.get_stage(project, name)
        freight = promotion.freight
        present = record.items.get(freight.origin)
        if present is not None and present != freight.name:
            await self.store.change_freight_status(project, present, partial(leave_stage, stage=name, at=now))
        measured = stage is not None and stage.verification is not None

        def entered(status: FreightStatus) -> FreightStatus:
            inside = enter_stage(status, name, now)
            return inside if measured else verify_in_stage(inside, name, now)

        await self.store.change_freight_status(project, freight.name, entered)
        collection = next_collection(record.history, freight.origin, freight.name)
        if present != freight.name:
            await self._has(promotion, collection)
        # Its steps have just written everything that they would write.
        await self.store.change_stage(project, name, lambda found: replace(found, differs=""))
        if measured:
            await self.verifier.begin_after(promotion, collection)

    async def _has(self, promotion: Promotion, collection: FreightCollection) -> None:
        now = self.clock.now()

        def arrived(record: StageRecord) -> StageRecord:
            return replace(record, history=record_collection(record.history, collection), since=now)

        await self.store.change_stage(promotion.project, promotion.stage, arrived)
