"""expr-lang's builtins on numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bot.expressions.errors import ExpressionError
from bot.expressions.gonumbers import parse_float, parse_int
from bot.expressions.meter import Meter
from bot.expressions.operands import INT_MAX, INT_MIN, NUMBERS, Operand, Span, name_type, wrap_int


def _number(value: Operand, name: str) -> int | float:
    if type(value) in NUMBERS and isinstance(value, (int, float)):
        return value
    raise ExpressionError(f"{name} takes a number, not {name_type(value)}")


def absolute(arguments: Sequence[Operand], _meter: Meter) -> Operand:
    """`abs(x)`: the same type as x."""
    number = _number(arguments[0], "abs")
    return wrap_int(abs(number)) if isinstance(number, int) else abs(number)


def _rounded(name: str, compute: Callable[[float], float]) -> Callable[[Sequence[Operand], Meter], Operand]:
    def rounded(arguments: Sequence[Operand], _meter: Meter) -> Operand:
        number = float(_number(arguments[0], name))
        return compute(number) if math.isfinite(number) else number

    return rounded


ceiling = _rounded("ceil", lambda number: float(math.ceil(number)))
"""`ceil(x)`, a float."""

floor = _rounded("floor", lambda number: float(math.floor(number)))
"""`floor(x)`, a float."""

round_half_away = _rounded("round", lambda number: math.copysign(float(_half_up(abs(number))), number))
"""`round(x)`, a float; halves go away from zero."""


def _half_up(number: float) -> int:
    whole = math.floor(number)
    return whole + 1 if number - whole >= 0.5 else whole


def to_int(arguments: Sequence[Operand], _meter: Meter) -> Operand:
    """`int(x)` of a number (fractions are cut off) or a text of decimal digits."""
    value = arguments[0]
    if isinstance(value, Span):
        return value.nanoseconds
    if isinstance(value, str):
        whole = parse_int(value)
        if whole is None:
            raise ExpressionError(f"{value[:60]!r} is no 64-bit integer")
        return whole
    number = _number(value, "int")
    if isinstance(number, float):
        if not math.isfinite(number) or not INT_MIN <= int(number) <= INT_MAX:
            raise ExpressionError("the number does not fit a 64-bit integer")
        return int(number)
    return int(number)


def to_float(arguments: Sequence[Operand], _meter: Meter) -> Operand:
    """`float(x)` of a number or a text."""
    value = arguments[0]
    if isinstance(value, str):
        number = parse_float(value)
        if number is None:
            raise ExpressionError(f"{value[:60]!r} is no number")
        return number
    return float(_number(value, "float"))


def _numbers(values: Sequence[Operand], name: str, meter: Meter, depth: int = 0) -> list[int | float]:
    """All numbers of the arguments, lists opened at any depth."""
    found: list[int | float] = []
    meter.elements(len(values))
    meter.depth(depth)
    for value in values:
        if isinstance(value, list):
            found.extend(_numbers(value, name, meter, depth + 1))
        else:
            found.append(_number(value, name))
    return found


def largest(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`max(...)` of numbers and lists of them; nil of none."""
    found = _numbers(arguments, "max", meter)
    return max(found) if found else None


def smallest(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`min(...)` of numbers and lists of them; nil of none."""
    found = _numbers(arguments, "min", meter)
    return min(found) if found else None


def mean(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`mean(...)`, a float; 0 of none."""
    found = _numbers(arguments, "mean", meter)
    return sum(float(number) for number in found) / len(found) if found else 0.0


def median(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`median(...)`, a float; 0 of none."""
    found = sorted(float(number) for number in _numbers(arguments, "median", meter))
    if not found:
        return 0.0
    half = len(found) // 2
    return found[half] if len(found) % 2 else (found[half - 1] + found[half]) / 2


def _int(value: Operand, name: str) -> int:
    if type(value) in NUMBERS and isinstance(value, int):
        return int(value)
    raise ExpressionError(f"{name} takes ints, not {name_type(value)}")


def bits(name: str, compute: Callable[[int, int], int]) -> Callable[[Sequence[Operand], Meter], Operand]:
    """A builtin on the bits of two ints."""

    def computed(arguments: Sequence[Operand], _meter: Meter) -> Operand:
        return wrap_int(compute(_int(arguments[0], name), _int(arguments[1], name)))

    return computed


def bit_not(arguments: Sequence[Operand], _meter: Meter) -> Operand:
    """`bitnot(x)`."""
    return ~_int(arguments[0], "bitnot")


def _width(count: int) -> int:
    if count < 0:
        raise ExpressionError(f"a shift by {count} bits is not possible")
    return min(count, 64)


def shift_left(number: int, count: int) -> int:
    """`bitshl`: bits beyond the 64th are lost."""
    return (number << _width(count)) & (2**64 - 1)


def shift_right(number: int, count: int) -> int:
    """`bitshr`: keeps the sign."""
    return number >> _width(count)


def shift_right_unsigned(number: int, count: int) -> int:
    """`bitushr`: fills with zeros."""
    return (number & (2**64 - 1)) >> _width(count)
