"""What monitoring asks the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bot.domain.drift import Finding
from bot.domain.promotion import State


@dataclass(frozen=True, slots=True)
class Workload:
    """How much is to be done: numbers, and since when the oldest of it waits (None: nothing does)."""

    deliveries: int
    oldest_delivery: datetime | None
    looks: int
    """Looks whose time has come."""
    oldest_look: datetime | None
    posts: int
    promotions: Mapping[State, int]
    """Those that have not ended, by state; a state without any is there with 0."""
    ended: int
    """Promotions that have ended."""
    drift: Mapping[Finding, int] = field(default_factory=dict)
    """Stages that were looked at for drift, by what the last look found."""
    drifted: int = 0
    """Resources and outputs that drifted, of all Stages."""
    oldest_drift_look: datetime | None = None
    """When the Stage was looked at whose last look is the oldest."""


class Workloads(Protocol):
    """What monitoring asks the database."""

    async def measure(self, now: datetime) -> Workload:
        """How much is to be done now."""
