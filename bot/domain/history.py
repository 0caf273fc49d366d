"""What a Stage has had: collections of Freight, one piece per origin, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bot.domain.freight import FreightName, FreightOrigin
from bot.domain.identity import collection_id

HISTORY_LIMIT = 10
"""How many collections a Stage remembers."""


@dataclass(frozen=True, slots=True)
class FreightCollection:
    """The Freight that a Stage has together, at most one of each origin."""

    items: Mapping[FreightOrigin, FreightName] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Kargo's id: it follows from the names alone; a collection without Freight has none."""
        return collection_id(self.items.values()) if self.items else ""

    def put(self, origin: FreightOrigin, name: FreightName) -> FreightCollection:
        """The collection with this Freight in place of the origin's former one."""
        return replace(self, items={**self.items, origin: name})


def record_collection(
    history: tuple[FreightCollection, ...], collection: FreightCollection, *, limit: int = HISTORY_LIMIT
) -> tuple[FreightCollection, ...]:
    """The history with a new first entry, cut to the limit; the same collection may stand twice."""
    return (collection, *history)[:limit]


def next_collection(
    history: tuple[FreightCollection, ...], origin: FreightOrigin, name: FreightName
) -> FreightCollection:
    """What a Stage has after a promotion: the other origins' Freight is inherited from the present collection."""
    current = history[0] if history else FreightCollection()
    return current.put(origin, name)
