"""What must hold of every expression: unknown values filled in later agree, secrets show only under their mark."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.values import Json, Sensitive, Text, Unknown, Value, find_sensitive
from bot.expressions.errors import ExpressionError
from bot.expressions.evaluator import Expression, compile_expression
from bot.expressions.functions import TEMPLATE_FUNCTIONS
from bot.expressions.marks import uncover
from tests.expressions.strategies import NAMES, environments, expressions

FAILED = Unknown("it failed")


def run(expression: Expression, names: dict[str, Value]) -> Value:
    """The value, or FAILED."""
    try:
        return expression.evaluate(names, TEMPLATE_FUNCTIONS)
    except ExpressionError:
        return FAILED


def compiled(source: str) -> Expression | None:
    try:
        return compile_expression(source)
    except ExpressionError:
        return None


def mark(value: Json, places: list[int], wrap: Callable[[Json], Value]) -> Value:
    """The value with the part that the places lead to under a mark; no places mark the whole."""
    if not places:
        return wrap(value)
    first, rest = places[0], places[1:]
    if isinstance(value, list) and value:
        at = first % len(value)
        return [
            mark(item, rest, wrap) if index == at else cast(Value, item) for index, item in enumerate(value)
        ]
    if isinstance(value, dict) and value:
        chosen = sorted(value)[first % len(value)]
        return {
            key: mark(item, rest, wrap) if key == chosen else cast(Value, item) for key, item in value.items()
        }
    return wrap(value)


def agrees(early: Value, late: Value) -> bool:
    """Whether what was known early is what came later; an unknown part agrees with anything."""
    match early:
        case Unknown():
            return True
        case Text(parts=parts):
            pattern = "".join(re.escape(part) if isinstance(part, str) else "(?s:.*)" for part in parts)
            return isinstance(late, str) and re.fullmatch(pattern, late) is not None
        case list():
            return isinstance(late, list) and len(early) == len(late) and all(map(agrees, early, late))
        case dict():
            return (
                isinstance(late, dict)
                and early.keys() == late.keys()
                and all(agrees(early[key], late[key]) for key in early)
            )
        case _:
            return early == late or (early != early and late != late)


places = st.lists(st.integers(0, 2), max_size=2)
marked = st.dictionaries(st.sampled_from(NAMES), places, min_size=1, max_size=3)


@settings(max_examples=250, deadline=None)
@given(source=expressions, names=environments, hidden=marked)
def test_filling_in_later_agrees_with_knowing_at_once(
    source: str, names: dict[str, Json], hidden: dict[str, list[int]]
) -> None:
    expression = compiled(source)
    if expression is None:
        return
    known = cast(dict[str, Value], names)
    partly = {
        **known,
        **{name: mark(names[name], at, lambda _: Unknown("later")) for name, at in hidden.items()},
    }
    early, late = run(expression, partly), run(expression, known)
    if late is FAILED:
        # A deciding side of && and || answers although the other side may turn out to be no bool.
        return
    assert early is not FAILED, "a value that is not known yet made an expression fail"
    assert agrees(early, late), f"{early} became {late}"


@settings(max_examples=250, deadline=None)
@given(source=expressions, names=environments, hidden=marked)
def test_a_sensitive_value_gives_the_same_result_under_a_mark(
    source: str, names: dict[str, Json], hidden: dict[str, list[int]]
) -> None:
    expression = compiled(source)
    if expression is None:
        return
    known = cast(dict[str, Value], names)
    covered = {
        **known,
        **{
            name: mark(names[name], at, lambda part: Sensitive("secret", part)) for name, at in hidden.items()
        },
    }
    under, plain = run(expression, covered), run(expression, known)
    if plain is FAILED:
        assert under is FAILED
    else:
        assert under is not FAILED
        assert agrees(cast(Value, uncover(under)), plain), f"{under} instead of {plain}"


@settings(max_examples=250, deadline=None)
@given(
    source=expressions,
    names=environments,
    others=environments,
    hidden=st.sets(st.sampled_from(NAMES), min_size=1),
)
def test_a_result_without_mark_is_the_same_for_any_secret(
    source: str, names: dict[str, Json], others: dict[str, Json], hidden: set[str]
) -> None:
    expression = compiled(source)
    if expression is None:
        return
    known = cast(dict[str, Value], names)
    one = run(expression, {**known, **{name: Sensitive("secret", names[name]) for name in hidden}})
    other = run(expression, {**known, **{name: Sensitive("secret", others[name]) for name in hidden}})
    if FAILED in (one, other) or find_sensitive(one) or find_sensitive(other):
        return
    assert agrees(one, other)
    assert agrees(other, one)


@settings(max_examples=150, deadline=None)
@given(source=expressions, names=environments, hidden=marked)
def test_unknown_and_sensitive_together_keep_the_secret_named(
    source: str, names: dict[str, Json], hidden: dict[str, list[int]]
) -> None:
    expression = compiled(source)
    if expression is None:
        return
    known = cast(dict[str, Value], names)
    secret = Unknown("later", sensitive="secret")
    plain = Unknown("later")
    with_secret = run(
        expression, {**known, **{n: mark(names[n], at, lambda _: secret) for n, at in hidden.items()}}
    )
    without = run(
        expression, {**known, **{n: mark(names[n], at, lambda _: plain) for n, at in hidden.items()}}
    )
    if isinstance(without, Unknown) and without is not FAILED:
        assert isinstance(with_secret, Unknown)
        assert with_secret.sensitive == "secret"
