"""No input makes the evaluator crash, hang or grow: it answers, or it fails with an ExpressionError."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.expressions.errors import ExpressionError
from bot.expressions.evaluator import compile_expression
from bot.expressions.functions import TEMPLATE_FUNCTIONS
from bot.expressions.templates import Scope, evaluate_template, evaluate_text
from tests.expressions.strategies import environments, expressions

SECONDS = 5.0
"""Far more than any evaluation takes within its budget, and far less than a hang."""

NAMES = {"a": [1, [2, {"k": "v"}]], "m": {"k": "v"}, "s": "text", "n": 3, "f": 1.5, "t": True}

_pieces = st.sampled_from(
    [
        *"()[]{}.,:;?|#&!<>=+-*/%^'\"`$\\ \n0123456789",
        *(
            "let x = ",
            "if ",
            "else ",
            "not ",
            " in ",
            "??",
            "?.",
            "..",
            "::",
            "&&",
            "||",
            "==",
            "#acc",
            "nil",
            "true",
        ),
        *(
            "a",
            "m",
            "s",
            "n",
            "f",
            "t",
            "map(",
            "filter(",
            "reduce(",
            "sortBy(",
            "len(",
            "toJSON(",
            "date(",
            "now(",
        ),
        *(
            "join(",
            "repeat(",
            "split(",
            "max(",
            "get(",
            "quote(",
            "asYAML(",
            "1e9",
            "0x",
            "1_0",
            "/*",
            "*/",
            "//",
        ),
        *("${{", "}}", "${%", "%}", "\u00e9", "\ud83d\ude00", "\x00", "\ud800"),
    ]
)


def refusal(call: Callable[[], object]) -> ExpressionError | None:
    """The error with which the call was refused, if it was; anything else than an ExpressionError fails the test."""
    try:
        call()
    except ExpressionError as error:
        return error
    return None


def check(source: str) -> None:
    """Evaluates, and fails if anything but an answer or an ExpressionError comes in time."""
    scope = Scope(NAMES, TEMPLATE_FUNCTIONS)
    calls: list[Callable[[], object]] = [
        lambda: compile_expression(source).evaluate(NAMES, TEMPLATE_FUNCTIONS),
        lambda: evaluate_text("${{" + source + "}}", scope),
        lambda: evaluate_template({"k": [source]}, scope),
    ]
    started = time.thread_time()
    for call in calls:
        error = refusal(call)
        assert error is None or error.message
    assert time.thread_time() - started < SECONDS


@settings(max_examples=600, deadline=None)
@given(st.text(max_size=60))
@example("\ud800")
@example("'\\ud800' + s")
@example("a" * 70_000)
def test_any_text_is_answered_or_refused(source: str) -> None:
    check(source)


@settings(max_examples=1200, deadline=None)
@given(st.lists(_pieces, max_size=25).map("".join))
def test_any_heap_of_tokens_is_answered_or_refused(source: str) -> None:
    check(source)


@settings(max_examples=300, deadline=None)
@given(source=expressions, names=environments)
def test_any_well_formed_expression_is_answered_or_refused(source: str, names: dict[str, object]) -> None:
    error = refusal(lambda: compile_expression(source).evaluate(names, TEMPLATE_FUNCTIONS))
    assert error is None or error.message


DOUBLED = (
    "let a = repeat('x', 1000000); "
    + "".join(f"let {c} = {b} + {b}; " for b, c in zip("abcdef", "bcdefg", strict=True))
    + "g"
)
SHARED = "let a = [1]; " + "".join(f"let a{i + 1} = [a{i or ''}, a{i or ''}]; " for i in range(40)) + "a40"


@pytest.mark.parametrize(
    "source",
    [
        "1..9999999999",
        "map(1..100000, map(1..100000, #))",
        "len(1..1000000) + len(1..1000000)",
        "repeat('x', 100000000)",
        "repeat(repeat('x', 1000), 1000000)",
        "replace(repeat('x', 100000), 'x', repeat('y', 100000))",
        "join(map(1..100000, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'), repeat('-', 1000))",
        "toJSON(map(1..300000, 'x'))",
        "reduce(1..900, concat(#acc, #acc), [1])",
        "reduce(1..300, [#acc], 1)",
        "string(reduce(1..300, [#acc], 1))",
        "flatten(reduce(1..300, [#acc], 1))",
        "reduce(1..300, {'k': #acc}, 1) == reduce(1..300, {'k': #acc}, 1)",
        "uniq(map(1..5000, [#]))",
        "sort(1..1000000)",
        "repeat('a', 100000) matches '(a|b)*a(a|b){40}c'",
        DOUBLED,
        SHARED,
        f"toJSON(({SHARED}))",
        f"len(({SHARED})) == ({SHARED})",
        "fromJSON(repeat('[', 100000))",
        "split(repeat('x', 2000000), '')",
        "2 ** 1024 * map(1..500000, # + 1)[0] + sum(map(1..500000, #))",
    ],
)
def test_work_and_size_are_bounded(source: str) -> None:
    started = time.thread_time()
    with pytest.raises(ExpressionError):
        compile_expression(source).evaluate(NAMES, TEMPLATE_FUNCTIONS)
    assert time.thread_time() - started < SECONDS


@pytest.mark.parametrize(
    "source",
    [
        "(" * 500 + "1" + ")" * 500,
        "[" * 5000,
        "-" * 5000 + "1",
        "not " * 2000 + "true",
        " + ".join(["1"] * 5000),
        "a" + ".b" * 5000,
        "a" + "[0]" * 5000,
        "true ? 1 : " * 2000 + "1",
        "{'a':" * 1000,
        "let x = 1; " * 1000 + "x",
        "len(" * 1000 + "a" + ")" * 1000,
        "map(a, " * 200 + "#" + ")" * 200,
        "1 < " * 1000 + "2",
        "a?.b" * 1000,
        "if true {" * 1000,
        "1" * 70_000,
    ],
)
def test_nesting_is_bounded(source: str) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(source)


def test_nesting_up_to_the_limit_fits_the_stack() -> None:
    depth = 58
    source = "(" * depth + " + ".join(["1"] * 150) + ")" * depth
    assert compile_expression(source).evaluate({}, {}) == 150
    assert sys.getrecursionlimit() <= 1000


def test_deep_input_is_refused_without_a_crash() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    for source in (
        "d",
        "toJSON(d)",
        "string(d)",
        "d == d",
        "flatten(d)",
        "len(d) + len(keys({'k': d}))",
        "[d, 1]",
    ):
        error = refusal(partial(compile_expression(source).evaluate, {"d": deep}, TEMPLATE_FUNCTIONS))
        assert error is None or "nests deeper" in error.message


@pytest.mark.parametrize(
    "source",
    [
        "s.__class__", "s['__class__']", "a.append(1)", "m.items()", "m.keys", "t.__doc__", "n.real", "s.format('x')",
        "m.get('k')", "get(s, '__class__')", "duration('1s').nanoseconds", "date('2024-05-06').at",
        "date('2024-05-06').__class__", "$env.get('a')", "semverParse", "quote.__globals__", "f.hex()",
        "timezone('UTC').info", "timezone('../../etc/passwd')", "map(a, #.__class__)",
    ],
)  # fmt: skip
def test_no_attribute_of_a_python_object_is_reachable(source: str) -> None:
    try:
        result = compile_expression(source).evaluate(NAMES, TEMPLATE_FUNCTIONS)
    except ExpressionError:
        return
    assert result is None


def test_the_names_of_the_environment_are_never_changed() -> None:
    names: dict[str, object] = {"a": [3, 1, 2], "m": {"k": [1]}}
    for source in (
        "sort(a)",
        "reverse(a)",
        "concat(a, [1])",
        "let a2 = a; a2",
        "$env",
        "map(a, m)",
        "uniq(a)",
    ):
        compile_expression(source).evaluate(names, {})
    assert names == {"a": [3, 1, 2], "m": {"k": [1]}}
