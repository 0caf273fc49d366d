"""What need not be remembered any longer: Kargo's rules of garbage collection, with what else here depends on a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.domain.freight import FreightName

SHORTEST_DAYS = 4
"""GitHub is asked for failed deliveries of three days, and what came again must be known for as long."""

FEWEST_PROMOTIONS = 50
"""So far back decisions look in a Stage: what was rejected there, what blocks it, and whose pull request is whose."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """What may go: older than `before`, and beyond so many newest Promotions of a Stage and Freight of a Warehouse.

    Freight is counted from the oldest that a Stage has, as in Kargo.
    """

    before: datetime
    promotions: int = FEWEST_PROMOTIONS
    freight: int = 20
    audit_before: datetime | None = None
    """Entries of the audit log that are older may go; None keeps them all."""
    events: int = 1000
    """The newest of all. SQLite numbers anew from the last row that is left, so some must always stay."""


@dataclass(frozen=True, slots=True)
class FreightAge:
    """One piece of Freight of an origin, by its age alone."""

    name: FreightName
    origin: str
    discovered_at: datetime


@dataclass(frozen=True, slots=True)
class FreightNeeds:
    """Freight that must stay. `present` is what Stages have or are about to have, and counts the others from there."""

    present: frozenset[FreightName] = frozenset()
    needed: frozenset[FreightName] = frozenset()

    def __contains__(self, name: FreightName) -> bool:
        return name in self.present or name in self.needed


def select_forgettable(
    freight: Iterable[FreightAge], needs: FreightNeeds, horizon: Horizon
) -> Sequence[FreightName]:
    """Freight that may go, oldest first.

    Of each origin the newest stay down to the oldest that is present, and `horizon.freight` more (Kargo's garbage
    collector, which also never takes anything young).
    """
    origins: dict[str, list[FreightAge]] = {}
    for item in freight:
        origins.setdefault(item.origin, []).append(item)
    found: list[FreightAge] = []
    for items in origins.values():
        items.sort(key=lambda item: (item.discovered_at, item.name), reverse=True)
        oldest = max((place for place, item in enumerate(items) if item.name in needs.present), default=-1)
        rest = items[oldest + 1 + horizon.freight :]
        found += [item for item in rest if item.discovered_at < horizon.before and item.name not in needs]
    return [item.name for item in sorted(found, key=lambda item: (item.discovered_at, item.name))]
