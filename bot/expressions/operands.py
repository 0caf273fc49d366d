"""What an expression computes with beside JSON values and marks: Go's structs, times and methods, as data.

An operand is one of: None, bool, int, float, str, list, dict with any keys, a mark (`Unknown`, `Sensitive`,
`Text`), or one of the classes below. Members are looked up in mappings only; no attribute of a Python object
can be reached from an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import TypeAlias

from bot.domain.values import Sensitive, Text, Unknown

Operand: TypeAlias = object
"""Any value inside an expression; the module's docstring lists what it may be."""

Function: TypeAlias = Callable[[Sequence[Operand]], Operand]
"""A registered function: takes its arguments as a list, free of marks, and raises ExpressionError."""

INT_MIN = -(2**63)
INT_MAX = 2**63 - 1


def wrap_int(value: int) -> int:
    """The value as Go's 64-bit int: what does not fit wraps around."""
    if INT_MIN <= value <= INT_MAX:
        return value
    return (value - INT_MIN) % 2**64 + INT_MIN


class StringMap(dict[str, Operand]):
    """Go's `map[string]string`: a missing key gives the empty text instead of nil."""


@dataclass(frozen=True, slots=True)
class BoolKey:
    """A bool as a key of an `AnyMap`; Python takes True and 1 for the same key, Go does not."""

    value: bool


class AnyMap(dict[object, object]):
    """Go's `map[any]any`, made by `fromPairs` and `groupBy`: it has no JSON form. Keys are those of `any_key`."""


def any_key(value: Operand) -> Operand:
    """The key under which an `AnyMap` holds the value; raises TypeError for lists and maps."""
    hash(value)
    return BoolKey(value) if isinstance(value, bool) else value


def plain_key(key: Operand) -> Operand:
    """The value that a key of any map stands for."""
    return key.value if isinstance(key, BoolKey) else key


class Month(int):
    """A month, 1 to 12; as text it is its English name."""

    __slots__ = ()


class Weekday(int):
    """A day of the week, 0 is Sunday; as text it is its English name."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Struct:
    """A Go struct: `fields` by their Go names, `json` as it is written to JSON, in Go's field order."""

    type_name: str
    fields: Mapping[str, Operand]
    json: Operand
    methods: Mapping[str, Function] = field(default_factory=dict)
    text: str = ""
    """What `string(x)` gives; empty means Go's default form of the fields."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a value that has not been called yet."""

    name: str
    call: Function


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time: `at` is aware of its zone, `nanosecond` is the whole fraction of the second."""

    at: datetime
    nanosecond: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """A length of time in nanoseconds."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone and its name."""

    name: str
    info: tzinfo


NUMBERS: frozenset[type] = frozenset({int, float, Month, Weekday})
MARKS: frozenset[type] = frozenset({Unknown, Sensitive, Text})


def is_number(value: Operand) -> bool:
    """Whether the operand is a Go number; a bool is none."""
    return type(value) in NUMBERS


def name_type(value: Operand) -> str:
    """The type as error messages and expr-lang's `type()` name it."""
    match value:
        case None:
            return "nil"
        case bool():
            return "bool"
        case Month():
            return "time.Month"
        case Weekday():
            return "time.Weekday"
        case int():
            return "int"
        case float():
            return "float"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "map"
        case Struct():
            return value.type_name
        case Method():
            return "func"
        case Moment():
            return "time.Time"
        case Span():
            return "time.Duration"
        case Zone():
            return "time.Location"
        case Unknown():
            return "a value that is not known yet"
        case Sensitive() | Text():
            return "a sensitive value"
        case _:
            return "unknown"
