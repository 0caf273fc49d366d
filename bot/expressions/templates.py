"""`${{ }}` and `${% %}` in configuration: scanning, insertion, and Kargo's coercion of the result.

An expression ends at the first end delimiter, even inside a text. What is inserted is the text itself or the
value's JSON; the whole result is then read as quoted text, number, bool or JSON, in that order. Keys of maps are
never evaluated. A text with an unknown part is not coerced: it becomes a `Text` with holes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from bot.domain.values import Json, Sensitive, Text, Unknown, Value
from bot.expressions.convert import to_value
from bot.expressions.errors import ExpressionError
from bot.expressions.evaluator import Expression, compile_expression
from bot.expressions.gonumbers import parse_bool, parse_number, settle
from bot.expressions.gotext import read_json, write_json
from bot.expressions.marks import Marks, join_names, scan, sensitive, uncover
from bot.expressions.meter import MAX_DEPTH, MAX_TEXT, Meter
from bot.expressions.operands import Function, Operand

RESERVED = ("quote", "asYAML", "asJSON")
"""Names that no environment may shadow (Kargo's list)."""

_DELIMITERS = (("${{", "}}"), ("${%", "%}"))
_JSON_STARTS = frozenset('{["-0123456789tfn')


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression sees: names, functions, and the answer of `now()`.

    `now` is a moment, unknown (after the cut of a preview), or None where the clock has no place.
    """

    names: Mapping[str, Operand] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    now: datetime | Unknown | None = None


@dataclass(frozen=True, slots=True)
class _Hole:
    """One expression of a template; `at` is where it starts."""

    expression: Expression
    at: int


@lru_cache(maxsize=4096)
def _parse(text: str) -> tuple[str | _Hole, ...]:
    """Literal texts and expressions in turn; an empty expression ends the scanning, as in Kargo."""
    parts: list[str | _Hole] = []
    at = 0
    while True:
        starts = [(found, begin, end) for begin, end in _DELIMITERS if (found := text.find(begin, at)) >= 0]
        if not starts:
            parts.append(text[at:])
            break
        found, begin, end = min(starts)
        inner = found + len(begin)
        stop = text.find(end, inner)
        if stop < 0:
            raise ExpressionError(f"an expression is not closed: {end} is missing", found)
        parts.append(text[at:found])
        at = stop + len(end)
        if inner == stop:
            parts.append(text[at:])
            break
        try:
            parts.append(_Hole(compile_expression(text[inner:stop]), inner))
        except ExpressionError as error:
            raise error.moved(inner) from None
    return tuple(part for part in parts if part != "")


def has_expression(text: str) -> bool:
    """Whether the text holds a start delimiter; one without is never evaluated nor coerced."""
    return "${{" in text or "${%" in text


def parse_template(text: str) -> tuple[Expression, ...]:
    """The expressions of a text, in order; raises ExpressionError."""
    if not has_expression(text):
        return ()
    return tuple(part.expression for part in _parse(text) if isinstance(part, _Hole))


def evaluate_text(text: str, scope: Scope) -> Value:
    """The value of one text; raises ExpressionError. Numbers come out as floats, as Kargo's variables have them."""
    if not has_expression(text):
        return text
    parts = _parse(text)
    if len(parts) == 1 and isinstance(parts[0], _Hole):
        return _whole(_run(parts[0], scope))
    pieces: list[str | Unknown | Sensitive] = []
    for part in parts:
        if isinstance(part, str):
            pieces.append(part)
        else:
            pieces.extend(_insert(_run(part, scope)))
    return _join(pieces)


def render_text(text: str, scope: Scope) -> str | Text:
    """One text with its values inserted and no coercion, so that `1.20` stays `1.20`; raises ExpressionError.

    For what is text by its nature: the arguments of a command, the variables of its environment.
    """
    if not has_expression(text):
        return text
    pieces = [
        piece
        for part in _parse(text)
        for piece in ((part,) if isinstance(part, str) else _insert(_run(part, scope)))
    ]
    plain = "".join(str(uncover(piece)) for piece in pieces if not isinstance(piece, Unknown))
    if len(plain) > MAX_TEXT:
        raise ExpressionError(f"the template makes a text of {len(plain)} characters; {MAX_TEXT} are allowed")
    return plain if all(isinstance(piece, str) for piece in pieces) else Text(tuple(pieces))


def _run(hole: _Hole, scope: Scope) -> Operand:
    try:
        return hole.expression.evaluate_operand(scope.names, scope.functions, scope.now)
    except ExpressionError as error:
        raise error.moved(hole.at) from None


def _whole(operand: Operand) -> Value:
    """The value of a text that is one expression and nothing else: marks stay what they are."""
    if isinstance(operand, Unknown):
        return operand
    meter = Meter()
    marks = scan((operand,), meter)
    if isinstance(operand, Text) or not (marks.origins or marks.names):
        return _join(_insert(operand))
    if isinstance(operand, Sensitive):
        return _sensitive(marks, coerce(_as_text(operand.value, meter)))
    return to_value(operand, meter)


def _insert(operand: Operand) -> tuple[str | Unknown | Sensitive, ...]:
    """What stands in the text for the operand."""
    if isinstance(operand, str):
        return (operand,)
    if isinstance(operand, Text):
        return operand.parts
    meter = Meter()
    marks = scan((operand,), meter)
    if marks.origins:
        return (marks.unknown(),)
    text = _as_text(uncover(operand), meter)
    return (Sensitive(join_names(marks.names), text),) if marks.names else (text,)


def _as_text(operand: Operand, meter: Meter) -> str:
    return operand if isinstance(operand, str) else write_json(operand, meter)


def _join(pieces: list[str | Unknown | Sensitive] | tuple[str | Unknown | Sensitive, ...]) -> Value:
    """The text of all pieces, coerced unless part of it is unknown."""
    joined: list[str | Unknown | Sensitive] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        elif piece != "":
            joined.append(piece)
    if any(isinstance(piece, Unknown) for piece in joined):
        return Text(tuple(joined))
    plain = "".join(str(uncover(piece)) for piece in joined)
    if len(plain) > MAX_TEXT:
        raise ExpressionError(f"the template makes a text of {len(plain)} characters; {MAX_TEXT} are allowed")
    value = coerce(plain)
    names = tuple(piece.name for piece in joined if isinstance(piece, Sensitive))
    if not names:
        return value
    if value == plain:
        return Text(tuple(joined))
    return _sensitive(Marks((), names), value)


def _sensitive(marks: Marks, value: Value) -> Value:
    made = sensitive(marks.names, value)
    return made if isinstance(made, (Sensitive, Unknown)) else value


def coerce(text: str) -> Value:
    """Kargo's reading of a result: quoted text, Go's ParseFloat, ParseBool, JSON, else the text itself."""
    body = text.removesuffix("\n")
    if len(body) > 1 and body[0] == '"' and body[-1] == '"':
        return body[1:-1] + text[len(body) :]
    if not body:
        return text
    number = parse_number(body)
    if number is not None:
        return number
    truth = parse_bool(body)
    if truth is not None:
        return truth
    if body.lstrip(" \t\r\n")[:1] in _JSON_STARTS:
        try:
            return to_value(read_json(body))
        except ValueError:
            return text
    return text


def evaluate_template(value: Json, scope: Scope, path: str = "") -> Value:
    """A whole step configuration with every text evaluated; whole numbers come out as ints.

    Raises ExpressionError, its message starting with the key path of the text that failed.
    """
    for name in RESERVED:
        if name in scope.names:
            raise ExpressionError(f"the name {name} is reserved and cannot be set in the environment")
    return _evaluate(value, scope, path, 0)


def _evaluate(value: Json, scope: Scope, path: str, depth: int) -> Value:
    if depth > MAX_DEPTH:
        raise ExpressionError(f"{path}: the configuration nests deeper than {MAX_DEPTH} levels")
    match value:
        case str():
            try:
                return _settled(evaluate_text(value, scope))
            except ExpressionError as error:
                error.message = f"{path}: {error.message}" if path else error.message
                raise
        case list():
            return [_evaluate(item, scope, f"{path}[{at}]", depth + 1) for at, item in enumerate(value)]
        case dict():
            return {
                key: _evaluate(item, scope, f"{path}.{key}" if path else key, depth + 1)
                for key, item in value.items()
            }
        case _:
            return _settled(value)


def _settled(value: Value) -> Value:
    """The value as JSON gives it back: whole floats are ints; raises ExpressionError for infinity and NaN."""
    match value:
        case float():
            if not math.isfinite(value):
                raise ExpressionError(
                    "the result is infinity or NaN, which has no JSON form; quote(x) keeps it a text"
                )
            return settle(value)
        case list():
            return [_settled(item) for item in value]
        case dict():
            return {key: _settled(item) for key, item in value.items()}
        case Sensitive(name=name, value=inner):
            return _sensitive(Marks((), (name,)), _settled(to_value(inner)))
        case _:
            return value


def evaluate_bool(text: str, scope: Scope) -> bool | Unknown:
    """The answer of a step's `if`; raises ExpressionError unless it is true, false or unknown.

    As in Kargo the text needs delimiters: `if: "true"` is a text and no condition.
    """
    value = evaluate_text(text, scope)
    marks = scan((value,), Meter())
    if marks.origins:
        return marks.unknown()
    plain = uncover(value)
    if isinstance(plain, bool):
        return plain
    raise ExpressionError("the condition must give true or false; write it as ${{ ... }}")


def evaluate_criteria(source: str, scope: Scope) -> bool | Unknown:
    """The answer of a bare expression such as `freightCreationCriteria`: a bool, or a text that Go reads as one."""
    operand = compile_expression(source).evaluate_operand(scope.names, scope.functions, scope.now)
    marks = scan((operand,), Meter())
    if marks.origins:
        return marks.unknown()
    plain = uncover(operand)
    truth = parse_bool(plain) if isinstance(plain, str) else plain
    if isinstance(truth, bool):
        return truth
    raise ExpressionError("the criteria must give true or false")
