"""The conditions of metrics."""

from __future__ import annotations

import pytest

from bot.domain.analysis import Phase
from bot.expressions.conditions import check_condition, judge
from bot.expressions.errors import ExpressionError


@pytest.mark.parametrize(
    ("result", "success", "failure", "phase"),
    [
        pytest.param(1.0, "", "", Phase.SUCCESSFUL, id="without conditions any value will do"),
        pytest.param([0.97], "result[0] >= 0.95", "", Phase.SUCCESSFUL, id="the condition of success holds"),
        pytest.param([0.5], "result[0] >= 0.95", "", Phase.FAILED, id="what is no success is a failure"),
        pytest.param(3, "", "result > 2", Phase.FAILED, id="the condition of failure holds"),
        pytest.param(2, "", "result > 2", Phase.SUCCESSFUL, id="what is no failure is a success"),
        pytest.param(5, "result < 1", "result > 9", Phase.INCONCLUSIVE, id="neither holds"),
        pytest.param(5, "result > 1", "result > 2", Phase.FAILED, id="where both hold it failed"),
        pytest.param(
            "7", "asInt(result) == 7 && asFloat(result) < 7.5", "", Phase.SUCCESSFUL, id="texts as numbers"
        ),
        pytest.param([float("nan")], "isNaN(result[0])", "", Phase.SUCCESSFUL, id="not a number"),
        pytest.param([float("nan")], "result[0] > 1", "", Phase.FAILED, id="not a number is not greater"),
        pytest.param(float("inf"), "isInf(result)", "", Phase.SUCCESSFUL, id="endless"),
        pytest.param(None, "isNil(result) && default(result, 1) == 1", "", Phase.SUCCESSFUL, id="nothing"),
        pytest.param([], "len(result) == 0 || result[0] > 1", "", Phase.SUCCESSFUL, id="no samples"),
        pytest.param({"ok": True}, "result.ok && all([1, 2], # > 0)", "", Phase.SUCCESSFUL, id="an object"),
    ],
)
def test_what_a_value_means(result: object, success: str, failure: str, phase: Phase) -> None:
    assert judge(result, success, failure) is phase


@pytest.mark.parametrize(
    ("result", "condition", "says"),
    [
        ([], "result[0] > 1", "out of range"),
        (1, "result + 1", "true or false"),
        ("x", "asInt(result) > 1", "whole number"),
        (True, "asFloat(result) > 1", "as a number"),
        ({}, "result.a.b > 1", "nil"),
    ],
)
def test_what_cannot_be_judged(result: object, condition: str, says: str) -> None:
    with pytest.raises(ExpressionError, match=says):
        judge(result, condition, "")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("result >", "cannot be read"),
        ("reslt > 1", "there is no reslt"),
        ("asInteger(result) > 1", "there is no function asInteger()"),
        ("result > 1", ""),
        ("let limit = 3; result < limit", ""),
        ("any(result, {# > 1})", ""),
        ("default(result, 0) == 0", ""),
    ],
)
def test_what_is_wrong_before_it_runs(source: str, says: str) -> None:
    problem = check_condition(source)
    assert says in problem
    assert bool(problem) is bool(says)
