"""Whether a Stage goes back by itself, and to which Freight: the project's `autoRollback` on what is remembered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from bot.domain.analysis import AnalysisRun
from bot.domain.auto_promotion import find_policy
from bot.domain.freight import Freight
from bot.domain.model import Stage
from bot.domain.promotion import Promotion
from bot.domain.rollbacks import find_failure, former_freight
from bot.ports import StageRecord, Store
from bot.workflow.configuration import Configuration


@dataclass(frozen=True, slots=True)
class GoingBack:
    """Reads what the decision rests on."""

    store: Store
    configuration: Configuration

    async def find(
        self,
        stage: Stage,
        record: StageRecord,
        last: Promotion | None,
        run: AnalysisRun | None,
        now: datetime,
    ) -> tuple[Freight | None, str]:
        """The Freight that a Stage without a promotion under way goes back to, and why; or why it cannot go back."""
        project, name = stage.metadata.namespace, stage.metadata.name
        config = self.configuration.project_config(project)
        failure = find_failure(find_policy(config, name, stage.metadata.labels), last, run, now)
        if failure is None:
            return None, ""
        for freight in former_freight(record.history, failure):
            found = await self.store.get_freight(project, freight)
            if found is not None and name in found[1].verified_in:
                return found[0], f"autoRollback: {failure.reason}"
        return None, f"autoRollback finds no Freight that was verified in {name} before"
