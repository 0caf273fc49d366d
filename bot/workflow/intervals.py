"""When a Warehouse is looked at without anybody asking."""

from __future__ import annotations

from datetime import datetime, timedelta

SHORTEST = 30.0
"""Seconds; a shorter interval counts as this one, since each look costs registries and repositories requests."""

_LATEST = 0.1
_LOST = 1.5


def next_look(now: datetime, interval: float, chance: float) -> datetime:
    """The time of the next look: up to a tenth of the interval after it is over; `chance` is between 0 and 1.

    Warehouses that began together would else ask their registries together for ever.
    """
    return now + timedelta(seconds=max(interval, SHORTEST) * (1.0 + _LATEST * chance))


def is_overdue(now: datetime, interval: float, looked_at: datetime | None) -> bool:
    """Whether the timer of a Warehouse must have been lost; None says that it was never looked at."""
    if looked_at is None:
        return True
    return now - looked_at > timedelta(seconds=max(interval, SHORTEST) * _LOST)
