"""When a Warehouse is looked at without anybody asking."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bot.workflow.intervals import SHORTEST, is_overdue, next_look

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("interval", "chance", "seconds"),
    [
        pytest.param(300.0, 0.0, 300.0, id="no earlier than its interval"),
        pytest.param(300.0, 1.0, 330.0, id="no later than a tenth after it"),
        pytest.param(1.0, 0.0, SHORTEST, id="never more often than the shortest interval"),
    ],
)
def test_the_next_look_comes_with_some_jitter(interval: float, chance: float, seconds: float) -> None:
    assert next_look(NOW, interval, chance) - NOW == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("ago", "expected"),
    [
        pytest.param(None, True, id="never looked at"),
        pytest.param(330.0, False, id="as late as the jitter allows"),
        pytest.param(451.0, True, id="later than half an interval more"),
    ],
)
def test_a_timer_is_lost_when_it_is_long_overdue(ago: float | None, *, expected: bool) -> None:
    looked_at = None if ago is None else NOW - timedelta(seconds=ago)
    assert is_overdue(NOW, 300.0, looked_at) is expected
