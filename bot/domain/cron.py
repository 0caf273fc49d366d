"""Cron expressions of five fields, in UTC: minute, hour, day of the month, month and day of the week.

The rules are those of POSIX `crontab` with the usual names, ranges and steps: where both a day of the month and a day
of the week are restricted, either will do. What other programs add (`L`, `W`, `#`, `@daily`) is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART = re.compile(r"(\*|\?|[0-9a-z]+(?:-[0-9a-z]+)?)(?:/([0-9]{1,4}))?")
_LONGEST_SEARCH = 366 * 8 + 1
"""Days that are looked through: within them there is a 29th of February, even around a year without one."""


@dataclass(frozen=True, slots=True)
class Cron:
    """The values that each field allows; of weekdays Sunday is 0. The last two tell which of the days are free."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool


def parse_cron(text: str) -> Cron:
    """The expression read; raises ValueError that says which field is wrong, or that no day ever fits."""
    fields = text.lower().split()
    if len(fields) != 5:
        raise ValueError(f"{text!r} has {len(fields)} fields instead of five")
    minute, hour, day, month, weekday = fields
    cron = Cron(
        minutes=_read(minute, "minute", 0, 59),
        hours=_read(hour, "hour", 0, 23),
        days=_read(day, "day of the month", 1, 31),
        months=_read(month, "month", 1, 12, _MONTHS, 1),
        weekdays=frozenset(n % 7 for n in _read(weekday, "day of the week", 0, 7, _DAYS)),
        any_day=day[0] in "*?",
        any_weekday=weekday[0] in "*?",
    )
    if next_time(cron, datetime(2024, 1, 1, tzinfo=UTC)) is None:
        raise ValueError(f"{text!r} names a day that no month has")
    return cron


def _read(
    field: str, what: str, least: int, most: int, names: tuple[str, ...] = (), first: int = 0
) -> frozenset[int]:
    found: set[int] = set()
    for part in field.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is no {what}")
        begin, _, end = match[1].partition("-")
        if begin in "*?":
            low, high = least, most
        else:
            low = _number(begin, what, names, first)
            # A step behind one value begins there and goes on to the end.
            high = _number(end, what, names, first) if end else (most if match[2] else low)
        step = int(match[2]) if match[2] else 1
        if not least <= low <= high <= most or step < 1:
            raise ValueError(f"{part!r} is no {what} between {least} and {most}")
        found.update(range(low, high + 1, step))
    return frozenset(found)


def _number(text: str, what: str, names: tuple[str, ...], first: int) -> int:
    if text.isdecimal() and len(text) <= 2:
        return int(text)
    if text in names:
        return names.index(text) + first
    raise ValueError(f"{text!r} is no {what}")


def next_time(cron: Cron, after: datetime) -> datetime | None:
    """The first minute later than a moment that fits, in UTC; None if there is none in the next eight years."""
    start = (after.astimezone(UTC) + timedelta(minutes=1)).replace(second=0, microsecond=0)
    for number in range(_LONGEST_SEARCH):
        day = start + timedelta(days=number)
        if number:
            day = day.replace(hour=0, minute=0)
        if not _fits(cron, day):
            continue
        for hour in sorted(cron.hours):
            for minute in sorted(cron.minutes):
                if (hour, minute) >= (day.hour, day.minute):
                    return day.replace(hour=hour, minute=minute)
    return None


def _fits(cron: Cron, day: datetime) -> bool:
    if day.month not in cron.months:
        return False
    by_day, by_weekday = day.day in cron.days, day.isoweekday() % 7 in cron.weekdays
    if cron.any_day or cron.any_weekday:
        return by_day and by_weekday
    return by_day or by_weekday
