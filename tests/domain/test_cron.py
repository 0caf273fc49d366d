"""Cron expressions: the next time of each, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.cron import next_time, parse_cron

# A Monday.
NOW = datetime(2026, 6, 1, 12, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "following"),
    [
        pytest.param("* * * * *", "2026-06-01 12:01", id="every minute, the next one"),
        pytest.param("0 12 * * *", "2026-06-02 12:00", id="the minute that has begun is over"),
        pytest.param("*/15 * * * *", "2026-06-01 12:15", id="every quarter of an hour"),
        pytest.param("50/5 * * * *", "2026-06-01 12:50", id="from a minute on, in steps"),
        pytest.param("5,3 13 * * *", "2026-06-01 13:03", id="a list in any order"),
        pytest.param("0 5 * * 1-5", "2026-06-02 05:00", id="on weekdays"),
        pytest.param("0 5 * * SAT,Sun", "2026-06-06 05:00", id="names of days, in any case"),
        pytest.param("0 5 * * 0", "2026-06-07 05:00", id="Sunday is 0"),
        pytest.param("0 5 * * 7", "2026-06-07 05:00", id="Sunday is 7, too"),
        pytest.param("0 0 1 jan *", "2027-01-01 00:00", id="the name of a month"),
        pytest.param("0 0 31 * *", "2026-07-31 00:00", id="months without that day are passed over"),
        pytest.param("0 0 29 2 *", "2028-02-29 00:00", id="a leap day"),
        pytest.param("0 0 10 * mon", "2026-06-08 00:00", id="either of two restricted days"),
        pytest.param("0 0 ? * mon", "2026-06-08 00:00", id="a question mark is any day"),
        pytest.param("30 23 31 12 *", "2026-12-31 23:30", id="the end of the year"),
    ],
)
def test_the_next_time(text: str, following: str) -> None:
    assert next_time(parse_cron(text), NOW) == datetime.fromisoformat(f"{following}+00:00")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("* * * *", "4 fields", id="a field is missing"),
        pytest.param("* * * * * *", "6 fields", id="a field too many"),
        pytest.param("60 * * * *", "'60' is no minute between 0 and 59", id="no such minute"),
        pytest.param("* 24 * * *", "no hour", id="no such hour"),
        pytest.param("* * 0 * *", "no day of the month", id="no such day"),
        pytest.param("* * * 13 *", "no month", id="no such month"),
        pytest.param("* * * * 8", "no day of the week", id="no such weekday"),
        pytest.param("5-3 * * * *", "no minute", id="a range from late to early"),
        pytest.param("*/0 * * * *", "no minute", id="a step of nothing"),
        pytest.param("* * L * *", "'l' is no day of the month", id="the last day, of other programs"),
        pytest.param(
            "* * * * mon#2", "'mon#2' is no day of the week", id="the second Monday, of other programs"
        ),
        pytest.param("jan * * * *", "no minute", id="a name where none can be"),
        pytest.param("999 * * * *", "no minute", id="a long number"),
        pytest.param("0 0 30 2 *", "names a day that no month has", id="a day that never comes"),
    ],
)
def test_what_cannot_be_understood_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("'", "['\"]")):
        parse_cron(text)


def test_times_of_other_zones_are_read_as_utc() -> None:
    local = NOW.astimezone(timezone(timedelta(hours=5)))
    assert next_time(parse_cron("0 13 * * *"), local) == datetime(2026, 6, 1, 13, tzinfo=UTC)


@given(st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1)))
def test_the_next_time_is_the_first_that_fits(at: datetime) -> None:
    cron = parse_cron("7 */6 * * 1,3")
    found = next_time(cron, at.replace(tzinfo=UTC))
    assert found is not None
    assert found > at.replace(tzinfo=UTC)
    assert (found.minute, found.hour % 6, found.isoweekday() in (1, 3)) == (7, 0, True)
    assert found - at.replace(tzinfo=UTC) <= timedelta(days=5)
