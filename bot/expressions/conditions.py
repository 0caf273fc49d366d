"""The conditions of analysis metrics: expr-lang over `result`, with the functions that Argo Rollouts adds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bot.domain.analysis import Phase
from bot.expressions.errors import ExpressionError
from bot.expressions.evaluator import compile_expression
from bot.expressions.nodes import Call, Let, Name, walk
from bot.expressions.operands import Function, Operand


def judge(result: Operand, success: str, failure: str) -> Phase:
    """What a measured value means: Successful, Failed, or Inconclusive if neither condition holds.

    A single condition decides both ways; without any, every value is a success. Raises ExpressionError.
    """
    good = _holds(success, result) if success else None
    bad = _holds(failure, result) if failure else None
    if bad or (bad is None and good is False):
        return Phase.FAILED
    if good is False:
        return Phase.INCONCLUSIVE
    return Phase.SUCCESSFUL


def check_condition(source: str) -> str:
    """What is wrong with a condition before it ever runs, empty if nothing is."""
    try:
        expression = compile_expression(source)
    except ExpressionError as error:
        return f"the expression cannot be read: {error}"
    nodes = walk(expression.node)
    called = {node.callee.name for node in nodes if isinstance(node, Call) and isinstance(node.callee, Name)}
    own = {node.name for node in nodes if isinstance(node, Let)}
    names = {node.name for node in nodes if isinstance(node, Name)}
    missing = sorted(called - set(FUNCTIONS) - own)
    if missing:
        known = ", ".join(sorted(FUNCTIONS))
        return f"there is no function {missing[0]}(); there are {known} and those of expr-lang"
    unknown = sorted(names - called - own - {"result"})
    return f"there is no {unknown[0]}; the measured value is called result" if unknown else ""


def _holds(source: str, result: Operand) -> bool:
    value = compile_expression(source).evaluate_operand({"result": result}, FUNCTIONS)
    if isinstance(value, bool):
        return value
    raise ExpressionError("the condition must give true or false")


def _one(arguments: Sequence[Operand], name: str) -> Operand:
    if len(arguments) != 1:
        raise ExpressionError(f"{name} takes one argument")
    return arguments[0]


def _as_int(arguments: Sequence[Operand]) -> Operand:
    value = _one(arguments, "asInt")
    try:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise ExpressionError(f"asInt cannot read {str(value)[:60]!r} as a whole number")


def _as_float(arguments: Sequence[Operand]) -> Operand:
    value = _one(arguments, "asFloat")
    try:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise ExpressionError(f"asFloat cannot read {str(value)[:60]!r} as a number")


def _is_nan(arguments: Sequence[Operand]) -> Operand:
    value = _one(arguments, "isNaN")
    return isinstance(value, float) and math.isnan(value)


def _is_inf(arguments: Sequence[Operand]) -> Operand:
    value = _one(arguments, "isInf")
    return isinstance(value, float) and math.isinf(value)


def _is_nil(arguments: Sequence[Operand]) -> Operand:
    return _one(arguments, "isNil") is None


def _default(arguments: Sequence[Operand]) -> Operand:
    if len(arguments) != 2:
        raise ExpressionError("default takes a value and what stands in for it")
    return arguments[1] if arguments[0] is None else arguments[0]


FUNCTIONS: Mapping[str, Function] = {
    "asInt": _as_int,
    "asFloat": _as_float,
    "isNaN": _is_nan,
    "isInf": _is_inf,
    "isNil": _is_nil,
    "default": _default,
}
"""What conditions may call besides the functions of expr-lang."""
