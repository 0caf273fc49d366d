"""expr-lang's builtin functions: one literal table, and how one of them is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from bot.domain.values import Unknown
from bot.expressions import builtins_lists as lists
from bot.expressions import builtins_numbers as numbers
from bot.expressions import builtins_text as texts
from bot.expressions.errors import ExpressionError
from bot.expressions.frame import Frame
from bot.expressions.gotime import find_zone, make_moment, parse_date, parse_moment, parse_span, to_zone
from bot.expressions.marks import lift
from bot.expressions.meter import Meter
from bot.expressions.operands import Operand, Zone, name_type

Compute: TypeAlias = Callable[[Sequence[Operand], Meter], Operand]

_TEXT = frozenset({"string"})
_NUMBER = frozenset({"int", "float"})
_INT = frozenset({"int"})
_ARRAY = frozenset({"array"})
_MAP = frozenset({"map"})
_SIZED = frozenset({"string", "array", "map"})


@dataclass(frozen=True, slots=True)
class Builtin:
    """One builtin: how many arguments it takes, of which kinds, and what it computes.

    `takes` holds the allowed kinds per argument (the last one repeats; empty is any). A builtin that looks at the
    shape gets its arguments with their marks; all others get them plain.
    """

    name: str
    least: int
    most: int
    compute: Compute
    kind: str = ""
    takes: tuple[frozenset[str], ...] = ()
    shape: bool = False

    def check(self, kinds: Sequence[str], at: int) -> None:
        """Refuses a call that can never work; raises ExpressionError."""
        if not self.least <= len(kinds) <= self.most:
            wanted = str(self.least) if self.least == self.most else f"{self.least} to {self.most}"
            raise ExpressionError(f"{self.name} takes {wanted} arguments, not {len(kinds)}", at)
        for position, kind in enumerate(kinds):
            allowed = self.takes[min(position, len(self.takes) - 1)] if self.takes else frozenset()
            if kind and allowed and kind not in allowed:
                raise ExpressionError(f"{self.name} does not take {kind} as argument {position + 1}", at)


def call_builtin(entry: Builtin, arguments: Sequence[Operand], frame: Frame) -> Operand:
    """The value of a call; raises ExpressionError."""
    if entry.shape:
        return entry.compute(arguments, frame.meter)
    if entry.name == "now":
        return lift(arguments, frame.meter, lambda plain: _now(plain, frame.now))
    return lift(arguments, frame.meter, lambda plain: entry.compute(plain, frame.meter))


def _now(arguments: Sequence[Operand], now: datetime | Unknown | None) -> Operand:
    if now is None:
        raise ExpressionError("now() is not available here")
    if isinstance(now, Unknown):
        return now
    moment = make_moment(now)
    if not arguments:
        return to_zone(moment, UTC)
    zone = arguments[0]
    if not isinstance(zone, Zone):
        raise ExpressionError(f"now takes a timezone, not {name_type(zone)}")
    return to_zone(moment, zone.info)


def _text(value: Operand, name: str) -> str:
    if not isinstance(value, str):
        raise ExpressionError(f"{name} takes a text, not {name_type(value)}")
    return value


def _date(arguments: Sequence[Operand], meter: Meter) -> Operand:
    zone: Zone | None = None
    if isinstance(arguments[0], Zone):
        zone, arguments = arguments[0], arguments[1:]
    if not arguments or len(arguments) > 3:
        raise ExpressionError("date takes a text, a layout and a zone's name")
    text = _text(arguments[0], "date")
    meter.text(len(text))
    if len(arguments) == 1:
        return parse_date(text, zone)
    layout = _text(arguments[1], "date")
    meter.text(len(layout) * 8)
    if len(arguments) == 3:
        zone = find_zone(_text(arguments[2], "date"))
    return parse_moment(text, layout, zone)


def _duration(arguments: Sequence[Operand], _meter: Meter) -> Operand:
    return parse_span(_text(arguments[0], "duration"))


def _timezone(arguments: Sequence[Operand], _meter: Meter) -> Operand:
    return find_zone(_text(arguments[0], "timezone"))


def _bits(name: str, compute: Callable[[int, int], int]) -> Builtin:
    return Builtin(name, 2, 2, numbers.bits(name, compute), "int", (_INT,))


_MANY = 10_000

_ENTRIES = (
    Builtin("len", 1, 1, lists.count, "int", (_SIZED,), shape=True),
    Builtin("keys", 1, 1, lists.keys, "array", (_MAP,), shape=True),
    Builtin("values", 1, 1, lists.values, "array", (_MAP,), shape=True),
    Builtin("first", 1, 1, lists.first, "", (_ARRAY,), shape=True),
    Builtin("last", 1, 1, lists.last, "", (_ARRAY,), shape=True),
    Builtin("take", 2, 2, lists.take, "", (_ARRAY, _INT), shape=True),
    Builtin("get", 2, 2, lists.get_element, "", (_ARRAY | _MAP, frozenset()), shape=True),
    Builtin("toPairs", 1, 1, lists.to_pairs, "array", (_MAP,)),
    Builtin("fromPairs", 1, 1, lists.from_pairs, "", (_ARRAY,)),
    Builtin("reverse", 1, 1, lists.reverse, "array", (_ARRAY,)),
    Builtin("uniq", 1, 1, lists.unique, "array", (_ARRAY,)),
    Builtin("concat", 1, _MANY, lists.concat, "array", (_ARRAY,)),
    Builtin("flatten", 1, 1, lists.flatten, "array", (_ARRAY,)),
    Builtin("sort", 1, 2, lists.sort, "array", (_ARRAY, _TEXT)),
    Builtin("join", 1, 2, texts.join, "string", (_ARRAY, _TEXT)),
    Builtin("type", 1, 1, texts.type_name, "string"),
    Builtin("string", 1, 1, texts.to_text, "string"),
    Builtin("trim", 1, 2, texts.trim, "string", (_TEXT,)),
    Builtin("trimPrefix", 1, 2, texts.trim_prefix, "string", (_TEXT,)),
    Builtin("trimSuffix", 1, 2, texts.trim_suffix, "string", (_TEXT,)),
    Builtin("upper", 1, 1, texts.upper, "string", (_TEXT,)),
    Builtin("lower", 1, 1, texts.lower, "string", (_TEXT,)),
    Builtin("split", 2, 3, texts.split, "array", (_TEXT, _TEXT, _INT)),
    Builtin("splitAfter", 2, 3, texts.split_after, "array", (_TEXT, _TEXT, _INT)),
    Builtin("replace", 3, 4, texts.replace, "string", (_TEXT, _TEXT, _TEXT, _INT)),
    Builtin("repeat", 2, 2, texts.repeat, "string", (_TEXT, _INT)),
    Builtin("indexOf", 2, 2, texts.index_of, "int", (_TEXT,)),
    Builtin("lastIndexOf", 2, 2, texts.last_index_of, "int", (_TEXT,)),
    Builtin("hasPrefix", 2, 2, texts.has_prefix, "bool", (_TEXT,)),
    Builtin("hasSuffix", 2, 2, texts.has_suffix, "bool", (_TEXT,)),
    Builtin("toJSON", 1, 1, texts.to_json, "string"),
    Builtin("fromJSON", 1, 1, texts.from_json, "", (_TEXT,)),
    Builtin("toBase64", 1, 1, texts.to_base64, "string", (_TEXT,)),
    Builtin("fromBase64", 1, 1, texts.from_base64, "string", (_TEXT,)),
    Builtin("abs", 1, 1, numbers.absolute, "", (_NUMBER,)),
    Builtin("ceil", 1, 1, numbers.ceiling, "float", (_NUMBER,)),
    Builtin("floor", 1, 1, numbers.floor, "float", (_NUMBER,)),
    Builtin("round", 1, 1, numbers.round_half_away, "float", (_NUMBER,)),
    Builtin("int", 1, 1, numbers.to_int, "int", (_NUMBER | _TEXT | {"duration"},)),
    Builtin("float", 1, 1, numbers.to_float, "float", (_NUMBER | _TEXT,)),
    Builtin("max", 1, _MANY, numbers.largest, "", (_NUMBER | _ARRAY,)),
    Builtin("min", 1, _MANY, numbers.smallest, "", (_NUMBER | _ARRAY,)),
    Builtin("mean", 1, _MANY, numbers.mean, "", (_NUMBER | _ARRAY,)),
    Builtin("median", 1, _MANY, numbers.median, "", (_NUMBER | _ARRAY,)),
    Builtin("bitnot", 1, 1, numbers.bit_not, "int", (_INT,)),
    _bits("bitand", lambda one, other: one & other),
    _bits("bitor", lambda one, other: one | other),
    _bits("bitxor", lambda one, other: one ^ other),
    _bits("bitnand", lambda one, other: one & ~other),
    _bits("bitshl", numbers.shift_left),
    _bits("bitshr", numbers.shift_right),
    _bits("bitushr", numbers.shift_right_unsigned),
    Builtin("now", 0, 1, lambda _arguments, _meter: None, "time"),
    Builtin("date", 1, 4, _date, "time"),
    Builtin("duration", 1, 1, _duration, "duration", (_TEXT,)),
    Builtin("timezone", 1, 1, _timezone, "", (_TEXT,)),
)

TABLE: dict[str, Builtin] = {entry.name: entry for entry in _ENTRIES}
"""Every builtin that takes plain arguments, by name."""
