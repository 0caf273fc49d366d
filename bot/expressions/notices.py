"""What an EventRouter's expressions say of an event; they see `type`, `event` and `data`, and Kargo's two functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from bot.domain.notices import Notice
from bot.domain.values import Json
from bot.expressions.errors import ExpressionError
from bot.expressions.functions import TEMPLATE_FUNCTIONS, UTILITY_FUNCTIONS
from bot.expressions.operands import Function, Operand
from bot.expressions.templates import Scope, evaluate_criteria, render_text


def matches_notice(when: str, notice: Notice) -> bool:
    """Whether a router's `when` takes an event; a blank one takes all. Raises ExpressionError."""
    return not when.strip() or evaluate_criteria(when, _scope(notice)) is True


def word_notice(text: str, notice: Notice) -> str:
    """A router's text, filled in. Raises ExpressionError."""
    rendered = render_text(text, _scope(notice))
    if not isinstance(rendered, str):
        raise ExpressionError("the text holds what is not known")
    return rendered


def _scope(notice: Notice) -> Scope:
    names: dict[str, Json] = {"type": notice.type, "event": notice.event, "data": notice.data}
    functions: Mapping[str, Function] = {**TEMPLATE_FUNCTIONS, **UTILITY_FUNCTIONS, **_FUNCTIONS}
    return Scope(dict(names), functions)


def _deref(arguments: Sequence[Operand]) -> Operand:
    if len(arguments) != 1:
        raise ExpressionError("deref takes one argument")
    return arguments[0]


def _escape(arguments: Sequence[Operand]) -> Operand:
    if len(arguments) != 1 or not isinstance(arguments[0], str):
        raise ExpressionError("escape_json_string takes one text")
    return json.dumps(arguments[0], ensure_ascii=False)[1:-1]


_FUNCTIONS: Mapping[str, Function] = {"deref": _deref, "escape_json_string": _escape}
