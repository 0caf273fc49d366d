"""When two operands are equal, and which comes first, by expr-lang's rules."""

from __future__ import annotations

from bot.expressions.errors import ExpressionError
from bot.expressions.gotime import count_nanoseconds
from bot.expressions.meter import Meter
from bot.expressions.operands import NUMBERS, Moment, Operand, Span, Struct, name_type


def is_equal(left: Operand, right: Operand, meter: Meter, depth: int = 0) -> bool:
    """Whether the operands are equal: numbers by value, lists and maps by content, different kinds never."""
    if type(left) in NUMBERS and type(right) in NUMBERS:
        return left == right
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        meter.elements(len(left))
        meter.depth(depth)
        return len(left) == len(right) and all(
            is_equal(one, other, meter, depth + 1) for one, other in zip(left, right, strict=True)
        )
    if isinstance(left, dict) and isinstance(right, dict):
        meter.elements(len(left))
        meter.depth(depth)
        return left.keys() == right.keys() and all(
            is_equal(left[k], right[k], meter, depth + 1) for k in left
        )
    if isinstance(left, Moment) and isinstance(right, Moment):
        return count_nanoseconds(left) == count_nanoseconds(right)
    if isinstance(left, Struct) and isinstance(right, Struct):
        if left.type_name != right.type_name:
            return False
        return is_equal(dict(left.fields), dict(right.fields), meter, depth + 1)
    return type(left) is type(right) and left == right


def compare(left: Operand, right: Operand) -> int:
    """Negative, zero or positive, for two numbers, texts, times or durations; raises ExpressionError otherwise.

    NaN is neither less nor greater than anything: it compares as equal here, as `<` and `>` are both false.
    """
    if type(left) in NUMBERS and type(right) in NUMBERS:
        one, other = float_or_int(left), float_or_int(right)
        return (one > other) - (one < other)
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right)
    if isinstance(left, Moment) and isinstance(right, Moment):
        return count_nanoseconds(left) - count_nanoseconds(right)
    if isinstance(left, Span) and isinstance(right, Span):
        return left.nanoseconds - right.nanoseconds
    raise ExpressionError(f"cannot compare {name_type(left)} with {name_type(right)}")


def float_or_int(value: Operand) -> float:
    """The number as Python's comparison takes it; call it only on numbers."""
    if isinstance(value, (int, float)):
        return value
    raise ExpressionError(f"{name_type(value)} is no number")
