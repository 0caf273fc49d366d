"""expr-lang's operators on plain operands, with Go's arithmetic: 64-bit ints that wrap, `/` and `**` on floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from bot.domain.regex import Regex, compile_regex
from bot.expressions.equality import compare, float_or_int, is_equal
from bot.expressions.errors import ExpressionError
from bot.expressions.gotime import count_nanoseconds, make_span, shift
from bot.expressions.meter import Meter
from bot.expressions.operands import (
    NUMBERS,
    AnyMap,
    Moment,
    Operand,
    Span,
    StringMap,
    Struct,
    any_key,
    name_type,
    wrap_int,
)

Operator: TypeAlias = Callable[[Operand, Operand, Meter], Operand]


def _refuse(sign: str, left: Operand, right: Operand) -> ExpressionError:
    return ExpressionError(f"{sign} is not defined between {name_type(left)} and {name_type(right)}")


def add(left: Operand, right: Operand, meter: Meter) -> Operand:
    """`+`: numbers, texts, times and durations."""
    if type(left) in NUMBERS and type(right) in NUMBERS:
        total = float_or_int(left) + float_or_int(right)
        return wrap_int(total) if isinstance(total, int) else total
    if isinstance(left, str) and isinstance(right, str):
        meter.text(len(left) + len(right))
        return left + right
    match left, right:
        case Moment(), Span():
            return shift(left, right.nanoseconds)
        case Span(), Moment():
            return shift(right, left.nanoseconds)
        case Span(), Span():
            return make_span(left.nanoseconds + right.nanoseconds)
    raise _refuse("+", left, right)


def subtract(left: Operand, right: Operand, _meter: Meter) -> Operand:
    """`-`: numbers, times and durations."""
    if type(left) in NUMBERS and type(right) in NUMBERS:
        total = float_or_int(left) - float_or_int(right)
        return wrap_int(total) if isinstance(total, int) else total
    match left, right:
        case Moment(), Moment():
            return make_span(count_nanoseconds(left) - count_nanoseconds(right))
        case Moment(), Span():
            return shift(left, -right.nanoseconds)
        case Span(), Span():
            return make_span(left.nanoseconds - right.nanoseconds)
    raise _refuse("-", left, right)


def multiply(left: Operand, right: Operand, _meter: Meter) -> Operand:
    """`*`: numbers, and a duration with a number."""
    if type(left) in NUMBERS and type(right) in NUMBERS:
        total = float_or_int(left) * float_or_int(right)
        return wrap_int(total) if isinstance(total, int) else total
    if isinstance(left, Span) and type(right) in NUMBERS:
        return make_span(_whole(left.nanoseconds * float_or_int(right)))
    if isinstance(right, Span) and type(left) in NUMBERS:
        return make_span(_whole(right.nanoseconds * float_or_int(left)))
    raise _refuse("*", left, right)


def _whole(number: float) -> int:
    if not math.isfinite(number):
        raise ExpressionError("a duration is out of range")
    return int(number)


def divide(left: Operand, right: Operand, _meter: Meter) -> Operand:
    """`/`: always a float; by zero it is infinity or NaN."""
    if isinstance(left, Span) and isinstance(right, Span):
        left, right = left.nanoseconds, right.nanoseconds
    if isinstance(left, Span) and type(right) in NUMBERS and right != 0:
        return make_span(_whole(left.nanoseconds / float_or_int(right)))
    if type(left) not in NUMBERS or type(right) not in NUMBERS:
        raise _refuse("/", left, right)
    one, other = float(float_or_int(left)), float(float_or_int(right))
    if other != 0:
        return one / other
    if one == 0 or math.isnan(one):
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1, other)


def remainder(left: Operand, right: Operand, _meter: Meter) -> Operand:
    """`%`: ints only, the sign is that of the left operand."""
    if isinstance(left, float) or isinstance(right, float):
        raise ExpressionError("% is defined between ints only; convert with int(x)")
    if type(left) not in NUMBERS or type(right) not in NUMBERS:
        raise _refuse("%", left, right)
    one, other = int(float_or_int(left)), int(float_or_int(right))
    if other == 0:
        raise ExpressionError("% by zero")
    rest = abs(one) % abs(other)
    return -rest if one < 0 else rest


def power(left: Operand, right: Operand, _meter: Meter) -> Operand:
    """`**` and `^`: always a float, as Go's math.Pow."""
    if type(left) not in NUMBERS or type(right) not in NUMBERS:
        raise _refuse("**", left, right)
    base, exponent = float(float_or_int(left)), float(float_or_int(right))
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:
        # Python refuses 0 ** -1 and (-8) ** (1/3), for which Go gives infinity and NaN.
        return math.inf if base == 0 else math.nan


def equal(left: Operand, right: Operand, meter: Meter) -> bool:
    """`==`."""
    return is_equal(left, right, meter)


def differ(left: Operand, right: Operand, meter: Meter) -> bool:
    """`!=`."""
    return not is_equal(left, right, meter)


def less(left: Operand, right: Operand, _meter: Meter) -> bool:
    """`<`."""
    return compare(left, right) < 0


def greater(left: Operand, right: Operand, _meter: Meter) -> bool:
    """`>`."""
    return compare(left, right) > 0


def at_most(left: Operand, right: Operand, _meter: Meter) -> bool:
    """`<=`; false of NaN."""
    return compare(left, right) <= 0 and not _is_nan(left) and not _is_nan(right)


def at_least(left: Operand, right: Operand, _meter: Meter) -> bool:
    """`>=`; false of NaN."""
    return compare(left, right) >= 0 and not _is_nan(left) and not _is_nan(right)


def _is_nan(value: Operand) -> bool:
    return isinstance(value, float) and math.isnan(value)


def is_in(left: Operand, right: Operand, meter: Meter) -> bool:
    """`in`: an element of a list, a key of a map, a field of a struct; nothing is in nil."""
    match right:
        case None:
            return False
        case list():
            meter.elements(len(right))
            return any(is_equal(item, left, meter) for item in right)
        case dict():
            if left is None and type(right) in (dict, StringMap):
                return "" in right
            if isinstance(left, (list, dict)) or (
                type(right) in (dict, StringMap) and not isinstance(left, str)
            ):
                raise ExpressionError(f"a map has no key of type {name_type(left)}")
            return (any_key(left) if isinstance(right, AnyMap) else left) in right
        case Struct():
            if not isinstance(left, str):
                raise ExpressionError(f"{name_type(right)} has no field of type {name_type(left)}")
            return left in right.fields
    raise _refuse("in", left, right)


def _texts(sign: str, left: Operand, right: Operand) -> tuple[str, str] | None:
    """Both operands of an operator on texts, None if one is nil: then it answers false."""
    if left is None or right is None:
        return None
    if not isinstance(left, str) or not isinstance(right, str):
        raise _refuse(sign, left, right)
    return left, right


def contains(left: Operand, right: Operand, _meter: Meter) -> bool:
    """`contains`, on texts."""
    found = _texts("contains", left, right)
    return found is not None and found[1] in found[0]


def starts_with(left: Operand, right: Operand, _meter: Meter) -> bool:
    """`startsWith`."""
    found = _texts("startsWith", left, right)
    return found is not None and found[0].startswith(found[1])


def ends_with(left: Operand, right: Operand, _meter: Meter) -> bool:
    """`endsWith`."""
    found = _texts("endsWith", left, right)
    return found is not None and found[0].endswith(found[1])


def matches(left: Operand, right: Operand, meter: Meter) -> bool:
    """`matches`: the regular expression (RE2 syntax) on the right is found in the left text; nil matches nothing."""
    found = _texts("matches", left, right)
    if found is None:
        return False
    one, other = found
    pattern = read_pattern(other)
    meter.spend(1 + len(one) * pattern.size // 2)
    return pattern.search(one)


def read_pattern(text: str) -> Regex:
    """The compiled regular expression; raises ExpressionError for one that Go does not know."""
    try:
        return compile_regex(text)
    except ValueError as error:
        raise ExpressionError(f"{text[:80]!r} is no regular expression: {error}") from None


def make_range(left: Operand, right: Operand, meter: Meter) -> list[Operand]:
    """`..`: all ints from left to right, both included; empty if right is smaller."""
    if type(left) not in NUMBERS or type(right) not in NUMBERS:
        raise _refuse("..", left, right)
    first, last = _whole(float_or_int(left)), _whole(float_or_int(right))
    meter.elements(max(0, last - first + 1))
    return list(range(first, last + 1))


BINARY: dict[str, Operator] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": remainder,
    "**": power,
    "^": power,
    "==": equal,
    "!=": differ,
    "<": less,
    ">": greater,
    "<=": at_most,
    ">=": at_least,
    "in": is_in,
    "contains": contains,
    "startsWith": starts_with,
    "endsWith": ends_with,
    "matches": matches,
    "..": make_range,
}
"""Operators that evaluate both operands; `&&`, `||`, `??` and `|` stand in the evaluator and the parser."""
