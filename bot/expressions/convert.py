"""Operands to values: what an expression computed, as JSON with marks."""

from __future__ import annotations

from bot.domain.values import Sensitive, Text, Unknown, Value
from bot.expressions.errors import ExpressionError
from bot.expressions.gotime import format_moment_json
from bot.expressions.marks import sensitive
from bot.expressions.meter import Meter
from bot.expressions.operands import AnyMap, Moment, Month, Operand, Span, Struct, Weekday, Zone, name_type


def to_value(operand: Operand, meter: Meter | None = None, depth: int = 0) -> Value:
    """The operand as JSON with marks: structs by their JSON keys, times as RFC 3339, durations in nanoseconds.

    Raises ExpressionError for what has no JSON form.
    """
    meter = meter or Meter()
    meter.spend(1)
    meter.depth(depth)
    match operand:
        case None | bool() | str() | float() | Unknown() | Text():
            return operand
        case Month() | Weekday():
            return int(operand)
        case int():
            return operand
        case Sensitive(name=name, value=inner):
            # A sensitive value may hold structs, times or marks while it is computed with.
            plain = to_value(inner, meter, depth + 1)
            made = sensitive((name,), plain)
            return made if isinstance(made, Sensitive | Unknown) else plain
        case AnyMap():
            raise ExpressionError(
                "a map made by fromPairs or groupBy has no JSON form; take single elements of it"
            )
        case list():
            return [to_value(item, meter, depth + 1) for item in operand]
        case dict():
            return {str(key): to_value(item, meter, depth + 1) for key, item in operand.items()}
        case Struct():
            return to_value(operand.json, meter, depth + 1)
        case Moment():
            return format_moment_json(operand)
        case Span():
            return operand.nanoseconds
        case Zone():
            return {}
        case _:
            raise ExpressionError(f"{name_type(operand)} has no JSON form")
