"""Our evaluator against expr-lang 1.17.8 itself, the version that Kargo has, on random expressions.

Each expression is asked with its type beside it, as JSON; both must answer the same or both refuse.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from bot.domain.values import Json
from bot.expressions.errors import ExpressionError
from bot.expressions.evaluator import compile_expression
from tests.expressions.oracle_strategies import environments, sources

Ask = Callable[[str, dict[str, Json]], Json]
"""The answer of an evaluator: `[type, value]`, or the text of its refusal."""

NAMES: dict[str, Json] = {"n": 3, "s": "k", "i": [1, 2, 3], "l": []}

_ELEMENTS = re.compile(r"#| in |\.k\b")
_TYPE_ERRORS = re.compile(
    r"mismatched types?|invalid argument for|as type \S+( \{\})? in array|has no field k"
)
_POWER = re.compile(r"\*\*|\^")


@pytest.fixture(scope="module")
def expr() -> Iterator[Ask]:
    """expr-lang's evaluator."""
    command = [sys.executable, str(Path(__file__).with_name("expr_oracle.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        reading, writing = process.stdout, process.stdin
        assert reading is not None
        assert writing is not None

        def ask(source: str, names: dict[str, Json]) -> Json:
            writing.write(json.dumps([_asked(source), names]) + "\n")
            writing.flush()
            kind, answer = json.loads(reading.readline())
            return json.loads(answer) if kind == "value" else str(answer)

        yield ask
        writing.close()
        assert process.wait(timeout=10) == 0


def ours(source: str, names: dict[str, Json]) -> Json:
    """Our evaluator's answer."""
    try:
        found: Json = json.loads(str(compile_expression(_asked(source)).evaluate(dict(names), {})))
    except ExpressionError as error:
        return str(error)
    return found


def _asked(source: str) -> str:
    return f"let asked = {source}; toJSON([type(asked), asked])"


def agree(source: str, theirs: Json, our: Json) -> bool:
    """Whether the answers are the same, but for the first two differences that are named below."""
    if isinstance(theirs, str) or isinstance(our, str):
        if isinstance(theirs, str) and isinstance(our, str):
            return True
        typed = isinstance(theirs, str) and _TYPE_ERRORS.search(theirs) is not None
        return typed and _ELEMENTS.search(source) is not None
    return _same(theirs, our, tolerance=1e-12 if _POWER.search(source) else 0.0)


def _same(one: Json, other: Json, *, tolerance: float) -> bool:
    match one, other:
        case list(), list():
            pairs = zip(one, other, strict=False)
            return len(one) == len(other) and all(_same(a, b, tolerance=tolerance) for a, b in pairs)
        case dict(), dict():
            return one.keys() == other.keys() and all(
                _same(one[key], other[key], tolerance=tolerance) for key in one
            )
        case ((int() | float()), (int() | float())) if tolerance and not isinstance(one, bool):
            return math.isclose(one, other, rel_tol=tolerance)
    return one == other and isinstance(one, bool) == isinstance(other, bool)


@settings(
    max_examples=1000,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(source=sources, names=environments)
def test_both_evaluators_answer_the_same(expr: Ask, source: str, names: dict[str, Json]) -> None:
    theirs, our = expr(source, names), ours(source, names)
    assert agree(source, theirs, our), f"{source}\nexpr: {theirs}\nours: {our}"


DIFFERENCES: list[tuple[str, Json, Json]] = [
    # expr-lang knows the types of elements of literals when it compiles; we find out when one is looked at.
    ("'a' in 1..3", "mismatch", ["bool", False]),
    ("filter(3..1, # == 'a')", "mismatch", ["array", []]),
    # Go computes powers by other roundings than the C library, so the last digit may differ.
    ("2 ^ 2.5", ["float", 5.65685424949238], ["float", 5.656854249492381]),
    # expr-lang takes the median of ints for an int when it compiles, and fails on the float that it computes.
    ("median(1, 2) == 1", "interface conversion", ["bool", False]),
    # expr-lang rewrites the sum of a literal list to one with +, which also joins texts; no other sum does.
    ("sum([s, s])", ["string", "kk"], "+ is not defined"),
    # Go gives some number for a float that no int can hold, another one on every processor.
    ("int(2.0 ** 100)", ["int", -(2**63)], "does not fit"),
    # The oracle has an integer division of its own; expr-lang's `/` gives a float, as Kargo's results show.
    ("7 / 2", ["int", 3], ["float", 3.5]),
    # Go takes bytes of a text, of type uint, where we take characters, so that none is cut in half.
    ("s[0]", ["uint", 107], ["int", 107]),
    ("indexOf('\u00e9a', 'a')", ["int", 2], ["int", 1]),
    # Go's list that was never made is null in JSON and has a length all the same; ours is an empty list, or nil.
    ("concat(l, l)", ["array", None], ["array", []]),
    ("split(s, ',', 0)", ["array", None], ["nil", None]),
    ("len(split(s, ',', 0))", ["int", 0], "len takes"),
]
"""An expression of each kind that is answered differently on purpose, expr-lang's answer and ours.

Texts stand for a refusal whose message holds them.
"""


@pytest.mark.parametrize(("source", "theirs", "our"), DIFFERENCES, ids=lambda value: str(value)[:30])
def test_the_named_differences_are_what_they_are_said_to_be(
    expr: Ask, source: str, theirs: Json, our: Json
) -> None:
    for expected, found in ((theirs, expr(source, NAMES)), (our, ours(source, NAMES))):
        if isinstance(expected, str):
            assert isinstance(found, str)
            assert expected in found
        else:
            assert found == expected
