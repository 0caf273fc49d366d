"""Which names and functions each kind of expression sees, and in which order vars are evaluated."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.domain.model import Variable
from bot.domain.values import Sensitive, Unknown, Value
from bot.expressions.errors import ExpressionError
from bot.expressions.facts import DataFacts, PromotionFacts, SecretData, StepFacts, StepMeta
from bot.expressions.references import References, list_references
from bot.expressions.scopes import (
    StepExpressions,
    VerificationFacts,
    decide_run,
    evaluate_arguments,
    evaluate_config,
    evaluate_variables,
)

URL = Unknown("known after apply: lambda_url")
NOW = datetime(2024, 5, 6, tzinfo=UTC)
PROMOTION = PromotionFacts(
    "proj",
    "dev",
    promotion="dev.01x",
    actor="ann",
    freight_name="f1",
    data=DataFacts(secrets={"db": SecretData({"password": "hunter2"})}),
    now=NOW,
)


def variables(**texts: str) -> tuple[Variable, ...]:
    return tuple(Variable(name, text) for name, text in texts.items())


def test_each_var_sees_those_before_it() -> None:
    texts = StepExpressions(
        variables(a="x", b="${{ vars.a }}y"), variables(c="${{ vars.b }}${{ outputs.o.v }}", a="z")
    )
    found = evaluate_variables(PROMOTION, StepFacts("me", {"o": {"v": 1}}), texts)
    assert found == {"a": "z", "b": "xy", "c": "xy1"}


def test_a_var_that_fails_is_named() -> None:
    with pytest.raises(ExpressionError, match="the var b: outputs is nil here"):
        evaluate_variables(PROMOTION, StepFacts("me"), StepExpressions(variables(b="${{ outputs.o.v }}")))


def test_unknown_outputs_travel_through_vars_into_the_config() -> None:
    step = StepFacts("me", {"apply": {"url": URL}})
    texts = StepExpressions(
        step_variables=variables(url="${{ outputs.apply.url }}"),
        config={
            "updates": [
                {"key": "lambda.url", "value": "${{ vars.url }}"},
                {"key": "n", "value": "${{ 1 + 1 }}"},
            ]
        },
    )
    assert evaluate_config(PROMOTION, step, texts) == {
        "updates": [{"key": "lambda.url", "value": URL}, {"key": "n", "value": 2}]
    }


def test_a_secret_stays_sensitive_in_the_config() -> None:
    texts = StepExpressions(config={"env": [{"name": "PGPASSWORD", "value": "${{ secret('db').password }}"}]})
    assert evaluate_config(PROMOTION, StepFacts("me"), texts) == {
        "env": [{"name": "PGPASSWORD", "value": Sensitive("secret('db').password", "hunter2")}]
    }


@pytest.mark.parametrize(
    ("condition", "metas", "expected"),
    [
        ("", (), True),
        ("", (StepMeta("a", "Failed"),), False),
        ("", (StepMeta("a", "Failed", continue_on_error=True),), True),
        ("${{ always() }}", (StepMeta("a", "Failed"),), True),
        ("${{ status('a') == 'Failed' }}", (StepMeta("a", "Failed"),), True),
        ("${{ outputs.apply.url != '' }}", (), URL),
        ("${{ outputs.apply.url != '' && false }}", (), False),
        ("${{ ctx.stage == 'dev' && ctx.meta.promotion.actor == 'ann' }}", (), True),
        ("${{ stepMetas.a.Status == 'Skipped' && 'a' in stepMetas }}", (StepMeta("a", "Skipped"),), True),
        ("${{ stepMetas.a.StartedAt.Year() == 2024 }}", (StepMeta("a", "Running", started_at=NOW),), True),
        ("${{ now() < date('2025-01-01') }}", (), True),
    ],
)
def test_whether_a_step_runs(condition: str, metas: tuple[StepMeta, ...], expected: bool | Unknown) -> None:
    step = StepFacts("me", {"apply": {"url": URL}}, metas)
    assert decide_run(PROMOTION, step, StepExpressions(condition=condition)) == expected


def test_vars_cannot_ask_how_steps_went() -> None:
    with pytest.raises(ExpressionError, match="no function status"):
        evaluate_variables(PROMOTION, StepFacts("me"), StepExpressions(variables(a="${{ status('x') }}")))


def test_task_outputs_are_those_of_the_same_task() -> None:
    outputs: dict[str, Value] = {"t::one": {"v": 1}, "u::one": {"v": 2}, "one": {"v": 3}}
    texts = StepExpressions(config={"v": "${{ task.outputs }}", "w": "${{ outputs['u::one'].v }}"})
    assert evaluate_config(PROMOTION, StepFacts("t::me", outputs), texts) == {"v": {"one": {"v": 1}}, "w": 2}
    with pytest.raises(ExpressionError):
        evaluate_config(PROMOTION, StepFacts("me", outputs), texts)


def test_verification_arguments_see_the_stage_and_must_be_texts() -> None:
    facts = VerificationFacts("proj", "dev", data=PROMOTION.data, now=NOW)
    stage = variables(host="${{ ctx.stage }}.example")
    asked = variables(url="https://${{ vars.host }}", version="${{ quote(1.20) }}")
    assert evaluate_arguments(facts, stage, asked) == {"url": "https://dev.example", "version": "1.2"}
    for text in ("${{ 1 }}", "${{ ctx.promotion.x }}", "${{ secret('db').password }}"):
        with pytest.raises(ExpressionError, match="the argument a"):
            evaluate_arguments(facts, (), variables(a=text))


# -- references --------------------------------------------------------------------------------------------


def test_lists_what_a_configuration_refers_to() -> None:
    found = list_references(
        {
            "a": "${{ outputs.apply.url }}-${{ vars.x }}",
            "b": ["${{ outputs['u::one'].v ?? task.outputs.two.v }}", 1],
            "c": {"d": "${{ secret('db').password + imageFrom(vars.repo).Tag }}"},
            "e": "no expression: outputs.nope",
        }
    )
    assert found == References(
        outputs=frozenset({"apply", "u::one"}),
        task_outputs=frozenset({"two"}),
        variables=frozenset({"x", "repo"}),
        computed=frozenset(),
        functions=frozenset({"secret", "imageFrom"}),
        calls=frozenset({("secret", "db"), ("imageFrom", None)}),
    )


@pytest.mark.parametrize(
    ("text", "computed"),
    [
        ("${{ outputs }}", {"outputs"}),
        ("${{ outputs[vars.x].v }}", {"outputs"}),
        ("${{ keys(vars) }}", {"vars"}),
        ("${{ task.outputs | toJSON() }}", {"task.outputs"}),
        ("${{ outputs.a.v + toJSON(outputs) }}", {"outputs"}),
        ("${{ outputs?.a?.v }}", set()),
    ],
)
def test_tells_where_any_entry_may_be_meant(text: str, computed: set[str]) -> None:
    assert list_references(text).computed == computed


def test_a_broken_expression_is_an_error() -> None:
    with pytest.raises(ExpressionError):
        list_references({"a": "${{ ( }}"})
