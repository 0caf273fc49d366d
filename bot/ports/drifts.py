"""What is remembered of drift: a part of the store, in which every method is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from bot.domain.drift import DriftRecord


class DriftStore(Protocol):
    """What was seen of drift, a record a Stage."""

    async def get_drift(self, project: str, stage: str) -> DriftRecord | None: ...

    async def list_drifts(self, project: str = "") -> Sequence[DriftRecord]:
        """Every record of a project, or of all."""

    async def change_drift(
        self, project: str, stage: str, change: Callable[[DriftRecord], DriftRecord]
    ) -> DriftRecord:
        """Change a record, a blank one if there is none, with nobody else's change in between.

        The answer is the record as it is then.
        """
