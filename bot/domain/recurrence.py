"""Recurring times as RFC 5545 writes them: rules by day, with start and end in a time zone.

Frequencies from DAILY to YEARLY with INTERVAL, COUNT, UNTIL, WKST, BYDAY, BYMONTHDAY and BYMONTH are understood;
anything finer than a day is refused, since a window of an hour every hour is surely a slip. Local times stay local
over a change of the clocks: a window from nine to five is open from nine to five.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
_MOMENT = re.compile(r"(?:(?:DTSTART|DTEND);)?(?:TZID=([^:;]{1,64}):)?(\d{8})(?:T(\d{6})(Z)?)?")
_BY_DAY = re.compile(r"([+-]?[0-9]{1,2})?(MO|TU|WE|TH|FR|SA|SU)")
_KNOWN = frozenset({"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", "BYMONTHDAY", "BYMONTH"})
_FIRST_YEAR = 1900
_LAST_YEAR = 8000
"""Stands for all later years (99991231 is how people write "for ever"), beyond which could not be reckoned."""
_LONGEST_SEARCH = 4000
"""Days that are looked through for the next occurrence; a rule without one in ten years has none."""
_LONGEST_COUNT = 36_525
"""Days that are counted through for the last occurrence; a rule that has not come to it in a century never will."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A recurrence rule; `days` pairs a weekday (Monday is 0) with an ordinal in the month, 0 for every one."""

    frequency: str
    interval: int = 1
    count: int | None = None
    until: datetime | None = None
    week_start: int = 0
    days: tuple[tuple[int, int], ...] = ()
    month_days: tuple[int, ...] = ()
    months: tuple[int, ...] = ()


def parse_moment(text: str) -> datetime:
    """The moment that `[TZID=zone:]20260131T090000[Z]` stands for; without a zone it is UTC, without a time midnight.

    A year after 8000 is read as 8000. Raises ValueError with the reason.
    """
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no time; write it like TZID=Europe/Berlin:20260131T090000")
    zone_name, day, clock, _ = match.groups()
    try:
        naive = datetime.strptime(day + (clock or "000000"), "%Y%m%d%H%M%S")
    except ValueError:
        raise ValueError(f"{text!r} names a day or an hour that does not exist") from None
    if naive.year < _FIRST_YEAR:
        raise ValueError(f"{text!r} names a year before {_FIRST_YEAR}")
    return naive.replace(year=min(naive.year, _LAST_YEAR), tzinfo=_zone(zone_name))


def _zone(name: str | None) -> tzinfo:
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name!r}") from None


def parse_rule(text: str) -> Rule:
    """The rule that `FREQ=WEEKLY;BYDAY=MO,TU` stands for; raises ValueError with the reason."""
    parts = dict(
        part.partition("=")[::2] for part in text.removeprefix("RRULE:").strip().upper().split(";") if part
    )
    unknown = sorted(set(parts) - _KNOWN)
    if unknown:
        raise ValueError(f"{', '.join(unknown)} cannot be understood in a recurrence rule")
    if parts.get("FREQ") not in _FREQUENCIES:
        raise ValueError(f"FREQ must be one of {', '.join(_FREQUENCIES)}")
    if parts.get("WKST", "MO") not in _DAYS:
        raise ValueError(f"WKST must be one of {', '.join(_DAYS)}")
    return Rule(
        frequency=parts["FREQ"],
        interval=_number(parts.get("INTERVAL", "1"), "INTERVAL", 1, 1000),
        count=_number(parts["COUNT"], "COUNT", 1, 10_000) if "COUNT" in parts else None,
        until=parse_moment(parts["UNTIL"]) if "UNTIL" in parts else None,
        week_start=_DAYS.index(parts.get("WKST", "MO")),
        days=tuple(_by_day(item) for item in _list(parts.get("BYDAY", ""))),
        month_days=tuple(_number(item, "BYMONTHDAY", -31, 31) for item in _list(parts.get("BYMONTHDAY", ""))),
        months=tuple(_number(item, "BYMONTH", 1, 12) for item in _list(parts.get("BYMONTH", ""))),
    )


def _list(text: str) -> list[str]:
    return text.split(",") if text else []


def _number(text: str, name: str, least: int, most: int) -> int:
    if (
        not re.fullmatch(r"[+-]?[0-9]{1,6}", text)
        or not least <= int(text) <= most
        or (least < 0 and int(text) == 0)
    ):
        raise ValueError(f"{name}={text} must be a number from {least} to {most}")
    return int(text)


def _by_day(text: str) -> tuple[int, int]:
    match = _BY_DAY.fullmatch(text)
    if match is None:
        raise ValueError(f"BYDAY={text} is no day of the week such as MO or -1FR")
    return _DAYS.index(match.group(2)), int(match.group(1) or 0)


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Intervals from `start` for `length`, repeated by a rule, or one interval; `length` None has no end."""

    start: datetime
    length: timedelta | None
    rule: Rule | None = None

    def is_active(self, now: datetime) -> bool:
        """Whether now lies in one of the intervals; the end is no part of it."""
        if self.rule is None or self.length is None:
            return self.start <= now and (self.length is None or now < self._end(self.start))
        day = now.astimezone(self.start.tzinfo).date()
        reach = self.length.days + 1
        return any(
            begin <= now < self._end(begin)
            for back in range(reach + 1)
            if (begin := self._occurrence(day - timedelta(days=back))) is not None
        )

    def next_change(self, now: datetime) -> datetime | None:
        """The next moment after now at which an interval begins or ends, if there is one."""
        found: list[datetime] = []
        if self.rule is None or self.length is None:
            found = [self.start] if self.length is None else [self.start, self._end(self.start)]
        else:
            day = max(now.astimezone(self.start.tzinfo).date(), self.start.date())
            day -= timedelta(days=self.length.days + 1)
            for _ in range(_LONGEST_SEARCH):
                begin = self._occurrence(day)
                if begin is not None:
                    found += [begin, self._end(begin)]
                    if begin > now:
                        break
                day += timedelta(days=1)
        return min((moment for moment in found if moment > now), default=None)

    def _end(self, begin: datetime) -> datetime:
        assert self.length is not None
        # Added to the local time, so that the end is at the hour that was written.
        return (begin.replace(tzinfo=None) + self.length).replace(tzinfo=begin.tzinfo)

    def _occurrence(self, day: date) -> datetime | None:
        """The beginning of the interval that begins on a day, if one does."""
        rule = self.rule
        assert rule is not None
        if day < self.start.date() or not _matches(rule, self.start.date(), day):
            return None
        begin = datetime.combine(
            day, time(self.start.hour, self.start.minute, self.start.second), self.start.tzinfo
        )
        if rule.until is not None and begin > rule.until:
            return None
        if rule.count is not None and day > _last_day(rule, self.start.date()):
            return None
        return begin


@lru_cache(maxsize=1024)
def _last_day(rule: Rule, start: date) -> date:
    """The day of the last occurrence that the rule's count allows, the last of all days if that is too far off.

    Kept, because it is counted from the rule's beginning while every day of a search asks for it.
    """
    left, day = rule.count or 0, start
    for _ in range(_LONGEST_COUNT):
        left -= _matches(rule, start, day)
        if left <= 0:
            return day
        day += timedelta(days=1)
    return date.max


def _matches(rule: Rule, start: date, day: date) -> bool:
    """Whether a rule that began at `start` has an occurrence on a day."""
    if rule.months and day.month not in rule.months:
        return False
    match rule.frequency:
        case "DAILY":
            return (day - start).days % rule.interval == 0 and _on_day(rule, day, ordinals=False)
        case "WEEKLY":
            weeks = (_week(day, rule.week_start) - _week(start, rule.week_start)).days // 7
            return weeks % rule.interval == 0 and (
                _on_day(rule, day, ordinals=False) if rule.days else day.weekday() == start.weekday()
            )
        case "MONTHLY":
            months = (day.year - start.year) * 12 + day.month - start.month
            return months % rule.interval == 0 and _in_month(rule, start, day)
        case _:
            if (day.year - start.year) % rule.interval:
                return False
            bare = not rule.months and not rule.days and not rule.month_days
            return (not bare or day.month == start.month) and _in_month(rule, start, day)


def _in_month(rule: Rule, start: date, day: date) -> bool:
    if not rule.days and not rule.month_days:
        return day.day == start.day
    return _on_day(rule, day, ordinals=True)


def _on_day(rule: Rule, day: date, *, ordinals: bool) -> bool:
    last = calendar.monthrange(day.year, day.month)[1]
    if rule.month_days and day.day not in rule.month_days and day.day - last - 1 not in rule.month_days:
        return False
    if not rule.days:
        return True
    forward, backward = (day.day - 1) // 7 + 1, -((last - day.day) // 7 + 1)
    return any(
        weekday == day.weekday() and (not ordinals or ordinal in {0, forward, backward})
        for weekday, ordinal in rule.days
    )


def _week(day: date, week_start: int) -> date:
    return day - timedelta(days=(day.weekday() - week_start) % 7)
