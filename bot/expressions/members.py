"""`.`, `[ ]` and slices: how an element of a value is reached, and never anything else of an object."""

from __future__ import annotations

import math

from bot.domain.values import Sensitive, Text, Unknown
from bot.expressions.errors import BudgetExceededError, ExpressionError
from bot.expressions.marks import is_unknown, lift, scan, sensitive, uncover
from bot.expressions.meter import Meter
from bot.expressions.operands import (
    NUMBERS,
    AnyMap,
    Method,
    Moment,
    Operand,
    Span,
    StringMap,
    Struct,
    Zone,
    any_key,
    name_type,
)
from bot.expressions.times import MOMENT_METHODS, SPAN_METHODS

MARKED = (Unknown, Sensitive, Text)
"""Operands that are marks themselves, not containers that may hold some."""


def fetch(container: Operand, key: Operand, meter: Meter) -> Operand:
    """The element, field or method; a missing key of a map is nil, anything else missing is an error.

    An unknown container or key gives an unknown value; a known key into a partly unknown container gives that
    element alone.
    """
    if type(container) is dict and type(key) is str:
        return container.get(key)
    if isinstance(container, MARKED) or isinstance(key, MARKED):
        return _fetch_marked(container, key, meter)
    match container:
        case StringMap() if isinstance(key, str):
            return container.get(key, "")
        case dict():
            return _fetch_key(container, key)
        case list():
            position = to_index(key)
            if not -len(container) <= position < len(container):
                raise ExpressionError(
                    f"index {position} is out of range; the list has {len(container)} elements"
                )
            return container[position]
        case str():
            return _fetch_character(container, key)
        case Struct() | Moment() | Span() | Zone():
            return _fetch_field(container, key)
    shown = key if isinstance(key, (str, int)) else name_type(key)
    raise ExpressionError(f"cannot take {shown!r} of {name_type(container)}; use ?. where it may be missing")


def _fetch_marked(container: Operand, key: Operand, meter: Meter) -> Operand:
    if isinstance(key, (Unknown, Text)) or isinstance(container, (Unknown, Text)):
        return lift((container, key), meter, lambda plain: fetch(plain[0], plain[1], meter))
    names = [mark.name for mark in (container, key) if isinstance(mark, Sensitive)]
    plain = [mark.value if isinstance(mark, Sensitive) else mark for mark in (container, key)]
    try:
        return sensitive(names, fetch(plain[0], plain[1], meter))
    except ExpressionError as error:
        raise ExpressionError(
            f"cannot take an element of <sensitive: {', '.join(names)}>", error.position
        ) from None


def _fetch_key(container: dict[Operand, Operand], key: Operand) -> Operand:
    if isinstance(key, (list, dict)):
        raise ExpressionError(f"a map has no key of type {name_type(key)}")
    if isinstance(container, AnyMap):
        return container.get(any_key(key))
    if key is None:
        return container.get("", "" if isinstance(container, StringMap) else None)
    if not isinstance(key, str):
        raise ExpressionError(f"this map's keys are texts, not {name_type(key)}")
    return container.get(key)


def _fetch_character(text: str, key: Operand) -> int:
    """The code of one character. Go gives the byte; we count characters, so that none is cut in half."""
    position = to_index(key)
    if not -len(text) <= position < len(text):
        raise ExpressionError(f"index {position} is out of range; the text has {len(text)} characters")
    return ord(text[position])


def _fetch_field(container: Struct | Moment | Span | Zone, key: Operand) -> Operand:
    if isinstance(key, str):
        if isinstance(container, Struct):
            if key in container.fields:
                return container.fields[key]
            if key in container.methods:
                return Method(key, container.methods[key])
        elif isinstance(container, Moment):
            if method := MOMENT_METHODS.get(key):
                return Method(key, lambda arguments: method(container, arguments))
        elif isinstance(container, Zone):
            if key == "String":
                return Method(key, lambda _: container.name)
        elif call := SPAN_METHODS.get(key):
            return Method(key, lambda arguments: call(container, arguments))
    raise ExpressionError(f"{name_type(container)} has no field or method {key!r}")


def get(container: Operand, key: Operand, meter: Meter) -> Operand:
    """expr-lang's `get`: as `fetch`, but nil for everything that is missing; a key of a wrong type is an error."""
    if is_unknown(container) or is_unknown(key):
        return lift((container, key), meter, lambda _: None)
    names = [
        name for item in (container, key) if isinstance(item, MARKED) for name in scan((item,), meter).names
    ]
    if names:
        # Whether something is missing tells of the secret too, so nil is marked as well.
        plain = [uncover(item) if isinstance(item, MARKED) else item for item in (container, key)]
        return sensitive(names, get(plain[0], plain[1], meter))
    if isinstance(container, StringMap) and isinstance(key, str):
        return dict.get(container, key)
    if isinstance(container, (list, str)):
        to_index(key)
    elif isinstance(container, dict):
        return _fetch_key(container, key)
    try:
        return fetch(container, key, meter)
    except BudgetExceededError:
        raise
    except ExpressionError:
        return None


def cut(container: Operand, start: Operand, end: Operand, meter: Meter) -> Operand:
    """`container[start:end]`; `end` is None for an open end. Ends beyond the container are moved to its edge.

    Texts are cut between characters. Go counts bytes, which gives half a character where one is cut.
    """
    if any(isinstance(item, MARKED) for item in (container, start, end)):
        return lift((container, start, end), meter, lambda plain: cut(plain[0], plain[1], plain[2], meter))
    if not isinstance(container, (list, str)):
        raise ExpressionError(f"cannot slice {name_type(container)}")
    length = len(container)
    first = to_index(start)
    last = length if end is None else to_index(end)
    first = max(0, first + length if first < 0 else first)
    last = min(length, max(0, last + length if last < 0 else last))
    meter.elements(max(0, last - first) if isinstance(container, list) else 0)
    return container[min(first, last) : last]


def to_index(value: Operand) -> int:
    """A number as Go's int: fractions are cut off."""
    if type(value) in NUMBERS and isinstance(value, (int, float)):
        if isinstance(value, float) and not math.isfinite(value):
            raise ExpressionError("an index must be a finite number")
        return int(value)
    raise ExpressionError(f"an index must be a number, not {name_type(value)}")
