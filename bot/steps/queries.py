"""Expressions that a step evaluates itself (`fromExpression`, `successExpression`) over what it has read."""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.values import Unknown, Value, is_tainted
from bot.expressions.errors import ExpressionError
from bot.expressions.evaluator import compile_expression
from bot.expressions.functions import TEMPLATE_FUNCTIONS
from bot.expressions.operands import Operand
from bot.ports import TerminalError
from bot.steps.options import Options


def evaluate(source: str, names: Mapping[str, Operand], where: str) -> Value:
    """The value of an expression over these names; raises TerminalError that names the expression."""
    try:
        return compile_expression(source).evaluate(names, TEMPLATE_FUNCTIONS)
    except ExpressionError as error:
        raise TerminalError(f"{where}: the expression {source!r} cannot be evaluated: {error}") from error


def holds(source: str, names: Mapping[str, Operand], where: str) -> bool:
    """Whether a criterion is met; raises TerminalError if it is neither true nor false."""
    value = evaluate(source, names, where)
    if not isinstance(value, bool):
        raise TerminalError(f"{where}: the expression {source!r} gives {value!r}; it must be true or false")
    return value


def read_outputs(options: Options, names: Mapping[str, Operand]) -> dict[str, Value]:
    """The values of the option `outputs`, by name."""
    return {
        item.address("name"): evaluate(item.address("fromExpression"), names, item.where)
        for item in options.each("outputs")
    }


def unknown_outputs(options: Options, origin: str) -> dict[str, Value]:
    """The outputs of a step that cannot be asked yet."""
    return {
        item.address("name"): Unknown(f"known after step: {origin}.{item.address('name')}")
        for item in options.each("outputs")
    }


def is_known(options: Options, *names: str) -> bool:
    """Whether none of these options holds anything unknown."""
    return not any(is_tainted(options.value(name)) for name in names)
