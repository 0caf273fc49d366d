"""Which Freight may be forgotten."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.freight import FreightName
from bot.domain.retention import FreightAge, FreightNeeds, Horizon, select_forgettable

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def aged(origin: str = "apps", count: int = 10) -> list[FreightAge]:
    """Freight one day apart, `0` from now."""
    return [
        FreightAge(FreightName(f"{origin}{day}"), origin, NOW - timedelta(days=day)) for day in range(count)
    ]


def names(*days: int, origin: str = "apps") -> frozenset[FreightName]:
    return frozenset(FreightName(f"{origin}{day}") for day in days)


@pytest.mark.parametrize(
    ("needs", "keep", "days", "gone"),
    [
        pytest.param(FreightNeeds(), 3, 1, [9, 8, 7, 6, 5, 4, 3], id="without use the newest stay"),
        pytest.param(FreightNeeds(), 3, 6, [9, 8, 7], id="what is young stays"),
        pytest.param(FreightNeeds(names(5)), 3, 1, [9], id="it is counted from the oldest in a Stage"),
        pytest.param(FreightNeeds(names(1, 4)), 2, 1, [9, 8, 7], id="of two in Stages the older counts"),
        pytest.param(FreightNeeds(names(0), names(8)), 2, 1, [9, 7, 6, 5, 4, 3], id="what is needed stays"),
        pytest.param(FreightNeeds(names(9)), 1, 1, [], id="the oldest of all is in a Stage"),
    ],
)
def test_old_freight_that_nobody_needs_may_go(
    needs: FreightNeeds, keep: int, days: int, gone: list[int]
) -> None:
    horizon = Horizon(NOW - timedelta(days=days), freight=keep)
    found = select_forgettable(aged(), needs, horizon)
    assert found == [FreightName(f"apps{day}") for day in gone if NOW - timedelta(days=day) < horizon.before]


def test_every_warehouse_is_counted_by_itself() -> None:
    horizon = Horizon(NOW, freight=2)
    needs = FreightNeeds(names(2))
    found = select_forgettable([*aged(count=4), *aged("infra", 4)], needs, horizon)
    assert found == [FreightName("infra3"), FreightName("infra2")]
