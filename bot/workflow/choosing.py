"""Which Freight a person means, and whether a Stage may have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.availability import KnownFreight, available_freight, explain_availability, index_freight
from bot.domain.freight import Freight
from bot.domain.model import Stage
from bot.ports import Clock, Store
from bot.workflow.buttons import Refusal


@dataclass(frozen=True, slots=True)
class Choice:
    """Finds Freight by what people type; each raises Refusal with the reason."""

    store: Store
    clock: Clock

    async def choose(self, stage: Stage, named: str) -> Freight:
        """The Freight that is named, or the newest available; refused if it is not available."""
        project, now = stage.metadata.namespace, self.clock.now()
        if not named:
            available = await self.available(stage)
            if not available:
                raise Refusal(f"no Freight is available to {stage.metadata.name}")
            return max(available, key=lambda item: item.freight.discovered_at).freight
        found = await self._find(project, named)
        freight, answer = found.freight, explain_availability(stage, found, now)
        if not answer.available:
            raise Refusal(f"{freight.alias} is not available to {stage.metadata.name}: {answer.reason}")
        return freight

    async def available(self, stage: Stage) -> Sequence[KnownFreight]:
        """Everything that may be promoted to the Stage now, holds or not."""
        known = (KnownFreight(*item) for item in await self.store.list_freight(stage.metadata.namespace))
        return available_freight(stage, index_freight(known), self.clock.now())

    async def known(self, project: str, named: str) -> Freight:
        """The Freight of this name, alias or begin of a name."""
        return (await self._find(project, named)).freight

    async def _find(self, project: str, named: str) -> KnownFreight:
        found = await self.store.get_freight(project, named)
        if found is None:
            raise Refusal(f"there is no Freight {named} in {project}; `/status` shows what there is")
        return KnownFreight(*found)
