"""What expr-lang refuses before it runs: operators between literals and results of known types that do not fit.

A kind is `int`, `float`, `string`, `bool`, `nil`, `array`, `map`, `time`, `duration`, or empty where it is not
known. Only what is certain is refused.
"""

from __future__ import annotations

from bot.expressions.errors import ExpressionError

_NUMBERS = frozenset({"int", "float"})
_TIME_SUMS = {
    ("+", "time", "duration"): "time",
    ("+", "duration", "time"): "time",
    ("+", "duration", "duration"): "duration",
    ("-", "time", "time"): "duration",
    ("-", "time", "duration"): "time",
    ("-", "duration", "duration"): "duration",
    ("*", "duration", "int"): "duration",
    ("*", "int", "duration"): "duration",
    ("*", "duration", "float"): "duration",
    ("*", "float", "duration"): "duration",
    ("/", "duration", "duration"): "float",
    ("/", "duration", "int"): "duration",
    ("/", "duration", "float"): "duration",
}
_RESULTS = {"/": "float", "**": "float", "^": "float", "%": "int", "..": "array"}
_WITHOUT_MEMBERS = frozenset({"nil", "bool", "int", "float", "string"})
_TEXT_OPERATORS = frozenset({"contains", "startsWith", "endsWith", "matches"})


def result_kind(value: bool | int | float | str | None) -> str:
    """The kind of a literal."""
    match value:
        case None:
            return "nil"
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case str():
            return "string"


def check_bool(left: str, right: str, at: int) -> None:
    """Refuses kinds that are certainly not bool."""
    for kind in (left, right):
        if kind not in ("", "bool"):
            raise ExpressionError(f"true or false is needed here, not {kind}", at)


def check_member(container: str, at: int) -> None:
    """Refuses an element or field of what certainly has none; of a text only slices can be taken."""
    if container in _WITHOUT_MEMBERS:
        raise ExpressionError(f"a value of type {container} has no elements or fields", at)


def check_unary(operator: str, kind: str, at: int) -> str:
    """The kind of the result; raises ExpressionError."""
    if operator in ("not", "!"):
        check_bool(kind, "bool", at)
        return "bool"
    if kind not in ("", "int", "float", "duration"):
        raise ExpressionError(f"{operator} stands before a number, not {kind}", at)
    return kind


def check_binary(operator: str, left: str, right: str, at: int) -> str:
    """The kind of the result; raises ExpressionError where the operands certainly do not fit."""
    if operator in ("==", "!="):
        fits = not left or not right or left == right or "nil" in (left, right) or {left, right} <= _NUMBERS
        return _fitting((operator, left, right), "bool", at, fits=fits)
    if operator in ("<", ">", "<=", ">="):
        both = _NUMBERS if left in _NUMBERS or right in _NUMBERS else {left or right}
        fits = {left, right} - {""} <= set(both) and not {left, right} & {"nil", "bool", "array", "map"}
        return _fitting((operator, left, right), "bool", at, fits=fits)
    if operator == "in":
        fits = right in ("", "array", "map", "nil") and not (
            right == "map" and left not in ("", "string", "nil")
        )
        return _fitting((operator, left, right), "bool", at, fits=fits)
    if operator in _TEXT_OPERATORS:
        return _fitting((operator, left, right), "bool", at, fits={left, right} <= {"", "string"})
    return _check_arithmetic(operator, left, right, at)


def _check_arithmetic(operator: str, left: str, right: str, at: int) -> str:
    if not left or not right:
        known = left or right
        fits = known in {"", "int", "float", "time", "duration"} or (operator == "+" and known == "string")
        if operator in ("%", "..") and known == "float":
            fits = False
        return _fitting((operator, left or "any", right or "any"), _RESULTS.get(operator, ""), at, fits=fits)
    if (operator, left, right) in _TIME_SUMS:
        return _TIME_SUMS[operator, left, right]
    if operator == "+" and left == right == "string":
        return "string"
    fits = {left, right} <= _NUMBERS and (operator not in ("%", "..") or left == right == "int")
    sum_kind = "float" if "float" in (left, right) else "int"
    return _fitting((operator, left, right), _RESULTS.get(operator, sum_kind), at, fits=fits)


def _fitting(parts: tuple[str, str, str], kind: str, at: int, *, fits: bool) -> str:
    """The kind, if operator and operands (`parts`) fit."""
    if not fits:
        operator, left, right = parts
        raise ExpressionError(f"{operator} is not defined between {left} and {right}", at)
    return kind
