from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.model import (
    Metadata,
    ProjectConfig,
    PromotionWindow,
    Selector,
)
from bot.domain.pipeline import Pipeline
from bot.domain.recurrence import parse_moment, parse_rule
from bot.domain.windows import WindowState, check_window, stage_windows, window_state
from tests.domain.builders import stage

OFFICE = PromotionWindow(
    "office",
    "Allow",
    "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
    "TZID=Europe/Berlin:20260105T090000",
    "TZID=Europe/Berlin:20260105T170000",
)
HOLIDAYS = PromotionWindow("holidays", "Deny", "", "20261224T000000Z", "20270102T000000Z")
FRIDAY = PromotionWindow("no-friday", "Deny", "FREQ=WEEKLY;BYDAY=FR", "20260102T000000Z", "20260103T000000Z")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("windows", "now", "is_open"),
    [
        pytest.param([], "2026-06-01T12:00", True, id="without windows it is open"),
        pytest.param([OFFICE], "2026-06-01T06:59", False, id="one minute before nine in summer"),
        pytest.param([OFFICE], "2026-06-01T07:00", True, id="nine in summer"),
        pytest.param([OFFICE], "2026-06-01T15:00", False, id="the end is no part of it"),
        pytest.param([OFFICE], "2026-01-06T08:00", True, id="nine in winter"),
        pytest.param([OFFICE], "2026-06-06T10:00", False, id="saturday"),
        pytest.param([OFFICE], "2025-12-31T10:00", False, id="before the first"),
        pytest.param([OFFICE, FRIDAY], "2026-06-05T10:00", False, id="deny beats allow"),
        pytest.param([HOLIDAYS], "2026-12-31T10:00", False, id="within a single window"),
        pytest.param([HOLIDAYS], "2027-01-02T00:00", True, id="after a single window"),
    ],
)
def test_windows_open_and_close(windows: list[PromotionWindow], now: str, is_open: bool) -> None:
    assert window_state(windows, at(now)).is_open is is_open


def test_the_answer_names_the_window_and_the_time_of_the_change() -> None:
    assert window_state([OFFICE], at("2026-06-05T15:30")) == WindowState(
        is_open=False,
        reason="promotions are allowed only in the window office",
        changes_at=at("2026-06-08T07:00"),
    )
    assert window_state([OFFICE, FRIDAY], at("2026-06-04T20:00")).changes_at == at("2026-06-08T07:00")
    assert window_state([OFFICE], at("2026-06-01T10:00")).changes_at == at("2026-06-01T15:00")
    assert window_state([HOLIDAYS], at("2027-02-01T00:00")).changes_at is None


def test_a_window_over_the_change_of_the_clocks_keeps_its_hours() -> None:
    night = PromotionWindow(
        "night",
        "Allow",
        "FREQ=DAILY",
        "TZID=Europe/Berlin:20260101T220000",
        "TZID=Europe/Berlin:20260102T060000",
    )
    # On 29 March 2026 the night in Berlin is an hour shorter.
    assert window_state([night], at("2026-03-29T03:59")).is_open
    assert not window_state([night], at("2026-03-29T04:00")).is_open


@pytest.mark.parametrize(
    ("rule", "day", "is_open"),
    [
        ("FREQ=DAILY;INTERVAL=2", "2026-01-03", True),
        ("FREQ=DAILY;INTERVAL=2", "2026-01-02", False),
        ("FREQ=DAILY;COUNT=3", "2026-01-03", True),
        ("FREQ=DAILY;COUNT=3", "2026-01-04", False),
        ("FREQ=DAILY;UNTIL=20260103T000000Z", "2026-01-03", True),
        ("FREQ=DAILY;UNTIL=20260103T000000Z", "2026-01-04", False),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=TH", "2026-01-15", True),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=TH", "2026-01-08", False),
        ("FREQ=WEEKLY", "2026-01-08", True),
        ("FREQ=MONTHLY;BYDAY=-1FR", "2026-01-30", True),
        ("FREQ=MONTHLY;BYDAY=-1FR", "2026-01-23", False),
        ("FREQ=MONTHLY;BYDAY=2TU", "2026-02-10", True),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", "2026-02-28", True),
        ("FREQ=MONTHLY", "2026-02-01", True),
        ("FREQ=YEARLY", "2027-01-01", True),
        ("FREQ=YEARLY", "2027-02-01", False),
        ("FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24,25", "2026-12-25", True),
        ("RRULE:FREQ=DAILY;BYMONTH=7", "2026-07-09", True),
    ],
)
def test_rules_of_every_frequency(rule: str, day: str, is_open: bool) -> None:
    window = PromotionWindow("w", "Allow", rule, "20260101T000000Z", "20260101T235959Z")
    assert window_state([window], at(f"{day}T12:00")).is_open is is_open


@pytest.mark.parametrize(
    ("rrule", "dtstart", "dtend", "message"),
    [
        ("FREQ=HOURLY", "20260101T000000Z", "20260102T000000Z", "FREQ must be one of"),
        ("FREQ=DAILY;BYHOUR=9", "20260101T000000Z", "20260102T000000Z", "BYHOUR cannot be understood"),
        ("FREQ=DAILY;INTERVAL=0", "20260101T000000Z", "20260102T000000Z", "INTERVAL=0 must be a number"),
        ("FREQ=WEEKLY;BYDAY=XX", "20260101T000000Z", "20260102T000000Z", "BYDAY=XX"),
        ("FREQ=DAILY", "", "20260102T000000Z", "needs dtstart and dtend"),
        ("FREQ=DAILY", "20260101T000000Z", "", "needs dtstart and dtend"),
        ("", "20260102T000000Z", "20260101T000000Z", "ends before it begins"),
        ("", "2026-01-01", "", "is no time"),
        ("", "20261301T000000Z", "", "does not exist"),
        ("", "TZID=Mars/Olympus:20260101T000000", "", "no time zone 'Mars/Olympus'"),
        ("", "TZID=../../etc/passwd:20260101T000000", "", "no time zone"),
    ],
)
def test_what_cannot_be_understood_says_why(rrule: str, dtstart: str, dtend: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_window(PromotionWindow("w", "Allow", rrule, dtstart, dtend))


def test_windows_of_project_and_cluster_count_together() -> None:
    own = PromotionWindow("own", "Deny", "", "", "", stage_selector=Selector(name="prod"))
    shared = PromotionWindow("shared", "Deny", "", "", "", project_selector=Selector(name="glob:p*"))
    other = PromotionWindow("other", "Deny", "", "", "", project_selector=Selector(name="x"))
    pipeline = Pipeline(
        project_configs={"proj": ProjectConfig(Metadata("proj", "proj"), promotion_windows=(own,))},
        cluster_config=ProjectConfig(Metadata("cluster"), promotion_windows=(shared, other), cluster=True),
    )
    assert [item.name for item in stage_windows(pipeline, stage("prod"))] == ["own", "shared"]
    assert [item.name for item in stage_windows(pipeline, stage("dev"))] == ["shared"]


@given(
    st.sampled_from(
        ["DAILY", "WEEKLY;BYDAY=MO,SA", "MONTHLY;BYDAY=2WE", "MONTHLY;BYMONTHDAY=31", "YEARLY;INTERVAL=2"]
    ),
    st.sampled_from(["Allow", "Deny"]),
    st.datetimes(datetime(2026, 1, 1), datetime(2029, 1, 1)),
    st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe"]),
)
def test_at_the_named_time_the_answer_is_the_other_one(
    rule: str, kind: str, now: datetime, zone: str
) -> None:
    start, end = f"TZID={zone}:20260101T013000", f"TZID={zone}:20260101T093000"
    window = PromotionWindow("w", kind, f"FREQ={rule}", start, end)
    moment = now.replace(tzinfo=UTC)
    state = window_state([window], moment)
    assert state.changes_at is not None
    assert state.changes_at > moment
    assert window_state([window], state.changes_at).is_open is not state.is_open
    assert window_state([window], state.changes_at - timedelta(microseconds=1)).is_open is state.is_open


@given(st.text(max_size=40))
def test_no_text_breaks_the_readers(text: str) -> None:
    for read in (parse_rule, parse_moment):
        try:
            found: object = read(text)
        except ValueError:
            continue
        assert found is not None
