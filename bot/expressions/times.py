"""The methods of Go's time.Time and time.Duration that an expression may call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, timedelta
from typing import TypeAlias

from bot.expressions.errors import ExpressionError
from bot.expressions.gotime import (
    count_nanoseconds,
    format_moment,
    format_moment_text,
    format_span,
    make_span,
    shift,
    to_zone,
)
from bot.expressions.operands import Moment, Month, Operand, Span, Weekday, Zone, name_type

MomentMethod: TypeAlias = Callable[[Moment, Sequence[Operand]], Operand]
SpanMethod: TypeAlias = Callable[[Span, Sequence[Operand]], Operand]


def _take(arguments: Sequence[Operand], *kinds: type) -> None:
    if len(arguments) != len(kinds):
        raise ExpressionError(f"the method takes {len(kinds)} arguments, not {len(arguments)}")
    for argument, kind in zip(arguments, kinds, strict=True):
        if not isinstance(argument, kind) or isinstance(argument, bool):
            raise ExpressionError(f"the method does not take {name_type(argument)}")


def _read(value: Callable[[Moment], Operand]) -> MomentMethod:
    """A method without arguments."""

    def method(moment: Moment, arguments: Sequence[Operand]) -> Operand:
        _take(arguments)
        return value(moment)

    return method


def _read_span(value: Callable[[int], Operand]) -> SpanMethod:
    def method(span: Span, arguments: Sequence[Operand]) -> Operand:
        _take(arguments)
        return value(span.nanoseconds)

    return method


def _with_moment(value: Callable[[int, int], Operand]) -> MomentMethod:
    """A method that takes another time; both are given as nanoseconds since 1970."""

    def method(moment: Moment, arguments: Sequence[Operand]) -> Operand:
        _take(arguments, Moment)
        other = arguments[0]
        assert isinstance(other, Moment)
        return value(count_nanoseconds(moment), count_nanoseconds(other))

    return method


def _with_span(value: Callable[[Moment, int], Operand]) -> MomentMethod:
    def method(moment: Moment, arguments: Sequence[Operand]) -> Operand:
        _take(arguments, Span)
        span = arguments[0]
        assert isinstance(span, Span)
        return value(moment, span.nanoseconds)

    return method


def _format(moment: Moment, arguments: Sequence[Operand]) -> Operand:
    _take(arguments, str)
    return format_moment(moment, str(arguments[0]))


def _in(moment: Moment, arguments: Sequence[Operand]) -> Operand:
    _take(arguments, Zone)
    zone = arguments[0]
    assert isinstance(zone, Zone)
    return to_zone(moment, zone.info)


def _add_date(moment: Moment, arguments: Sequence[Operand]) -> Operand:
    """Years, months and days later; a day beyond the month's end runs into the next month, as in Go."""
    _take(arguments, int, int, int)
    years, months, days = (item if isinstance(item, int) else 0 for item in arguments)
    count = moment.at.year * 12 + moment.at.month - 1 + years * 12 + months
    try:
        first = moment.at.replace(year=count // 12, month=count % 12 + 1, day=1)
        return Moment(first + timedelta(days=moment.at.day - 1 + days), moment.nanosecond)
    except (ValueError, OverflowError):
        raise ExpressionError("a time is outside the years 1 to 9999") from None


# Go's zero time, year 1, from which Truncate and Round count.
_ZERO = -62135596800 * 1_000_000_000


def _truncate(moment: Moment, nanoseconds: int) -> Operand:
    if nanoseconds <= 0:
        return moment
    return shift(moment, -((count_nanoseconds(moment) - _ZERO) % nanoseconds))


def _round(moment: Moment, nanoseconds: int) -> Operand:
    if nanoseconds <= 0:
        return moment
    rest = (count_nanoseconds(moment) - _ZERO) % nanoseconds
    return shift(moment, -rest if rest * 2 < nanoseconds else nanoseconds - rest)


MOMENT_METHODS: Mapping[str, MomentMethod] = {
    "Year": _read(lambda m: m.at.year),
    "Month": _read(lambda m: Month(m.at.month)),
    "Day": _read(lambda m: m.at.day),
    "Hour": _read(lambda m: m.at.hour),
    "Minute": _read(lambda m: m.at.minute),
    "Second": _read(lambda m: m.at.second),
    "Nanosecond": _read(lambda m: m.nanosecond),
    "Weekday": _read(lambda m: Weekday((m.at.weekday() + 1) % 7)),
    "YearDay": _read(lambda m: m.at.timetuple().tm_yday),
    "Unix": _read(lambda m: count_nanoseconds(m) // 1_000_000_000),
    "UnixMilli": _read(lambda m: count_nanoseconds(m) // 1_000_000),
    "UnixMicro": _read(lambda m: count_nanoseconds(m) // 1_000),
    "UnixNano": _read(lambda m: count_nanoseconds(m)),
    "UTC": _read(lambda m: to_zone(m, UTC)),
    "Local": _read(lambda m: to_zone(m, UTC)),
    "IsZero": _read(lambda m: count_nanoseconds(m) == _ZERO),
    "String": _read(format_moment_text),
    "Location": _read(lambda m: Zone(str(m.at.tzinfo), m.at.tzinfo or UTC)),
    "Format": _format,
    "In": _in,
    "AddDate": _add_date,
    "Add": _with_span(shift),
    "Truncate": _with_span(_truncate),
    "Round": _with_span(_round),
    "Sub": _with_moment(lambda one, other: make_span(one - other)),
    "Before": _with_moment(lambda one, other: one < other),
    "After": _with_moment(lambda one, other: one > other),
    "Equal": _with_moment(lambda one, other: one == other),
    "Compare": _with_moment(lambda one, other: (one > other) - (one < other)),
}
"""Methods of a time by their Go names."""


def _span_truncate(span: Span, arguments: Sequence[Operand]) -> Operand:
    _take(arguments, Span)
    unit = arguments[0]
    if not isinstance(unit, Span) or unit.nanoseconds <= 0:
        return span
    rest = abs(span.nanoseconds) % unit.nanoseconds
    return make_span(span.nanoseconds - rest if span.nanoseconds > 0 else span.nanoseconds + rest)


def _span_round(span: Span, arguments: Sequence[Operand]) -> Operand:
    _take(arguments, Span)
    unit = arguments[0]
    if not isinstance(unit, Span) or unit.nanoseconds <= 0:
        return span
    size = abs(span.nanoseconds)
    rest = size % unit.nanoseconds
    size += unit.nanoseconds - rest if rest * 2 >= unit.nanoseconds else -rest
    return make_span(size if span.nanoseconds >= 0 else -size)


def _milli(nanoseconds: int, unit: int) -> int:
    return (
        int(nanoseconds / unit)
        if abs(nanoseconds) < 2**53
        else abs(nanoseconds) // unit * (-1 if nanoseconds < 0 else 1)
    )


SPAN_METHODS: Mapping[str, SpanMethod] = {
    "Hours": _read_span(lambda n: n / 3_600_000_000_000),
    "Minutes": _read_span(lambda n: n / 60_000_000_000),
    "Seconds": _read_span(lambda n: n / 1_000_000_000),
    "Milliseconds": _read_span(lambda n: _milli(n, 1_000_000)),
    "Microseconds": _read_span(lambda n: _milli(n, 1_000)),
    "Nanoseconds": _read_span(lambda n: n),
    "String": _read_span(format_span),
    "Abs": _read_span(lambda n: make_span(abs(n))),
    "Truncate": _span_truncate,
    "Round": _span_round,
}
"""Methods of a duration by their Go names."""
