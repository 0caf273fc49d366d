"""The scope of each kind of expression in Kargo's order: Promotion vars, step vars, `if`, config, verification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bot.domain.model import Variable
from bot.domain.values import Json, Unknown, Value
from bot.expressions.errors import ExpressionError
from bot.expressions.facts import DataFacts, DiscoveredArtifacts, FreightFacts, PromotionFacts, StepFacts
from bot.expressions.functions import (
    ALIAS_SEPARATOR,
    TEMPLATE_FUNCTIONS,
    UTILITY_FUNCTIONS,
    alias_namespace,
    data_functions,
    discovered_functions,
    freight_functions,
    has_failures,
    status_functions,
)
from bot.expressions.marks import scan
from bot.expressions.meter import Meter
from bot.expressions.operands import Function, Operand
from bot.expressions.structs import meta_struct
from bot.expressions.templates import (
    Scope,
    evaluate_bool,
    evaluate_criteria,
    evaluate_template,
    evaluate_text,
)


@dataclass(frozen=True, slots=True)
class StepExpressions:
    """What is evaluated for one step: the Promotion's vars, then its own, then `if` and config."""

    variables: Sequence[Variable] = ()
    """The Promotion's: those of the Stage, then those of the template."""
    step_variables: Sequence[Variable] = ()
    condition: str = ""
    config: Mapping[str, Json] = field(default_factory=dict)


def base_functions(promotion: PromotionFacts) -> dict[str, Function]:
    """The functions that vars may call; step conditions come on top of them."""
    return {
        **data_functions(promotion.data),
        **freight_functions(promotion.freight),
        **UTILITY_FUNCTIONS,
        **TEMPLATE_FUNCTIONS,
    }


def promotion_names(promotion: PromotionFacts, alias: str) -> dict[str, Operand]:
    """`ctx`, and `target` for target Promotions."""
    names: dict[str, Operand] = {
        "ctx": {
            "uiBaseUrl": promotion.ui_base_url,
            "project": promotion.project,
            "promotion": promotion.promotion,
            "stage": promotion.stage,
            "targetFreight": {
                "name": promotion.freight_name,
                "alias": promotion.freight_alias,
                "origin": {"name": promotion.freight_origin},
            },
            "meta": {
                "promotion": {"actor": promotion.actor, "rollback": promotion.rollback},
                "step": {"alias": alias},
            },
        }
    }
    if promotion.target is not None:
        names["target"] = dict(promotion.target)
    return names


def step_names(step: StepFacts) -> dict[str, Operand]:
    """`outputs`, `stepMetas`, and `task.outputs` for a step that came from a task."""
    names: dict[str, Operand] = {
        "outputs": dict(step.outputs),
        "stepMetas": {meta.alias: meta_struct(meta) for meta in step.metas},
    }
    if namespace := alias_namespace(step.alias):
        cut = len(namespace) + len(ALIAS_SEPARATOR)
        own = {alias: output for alias, output in step.outputs.items() if alias_namespace(alias) == namespace}
        names["task"] = {"outputs": {alias[cut:]: output for alias, output in own.items()}}
    return names


def evaluate_variables(
    promotion: PromotionFacts, step: StepFacts, texts: StepExpressions
) -> dict[str, Value]:
    """All vars in order: each sees those before it; only the step's own see outputs.

    Raises ExpressionError, its message naming the var.
    """
    functions = base_functions(promotion)
    names = promotion_names(promotion, step.alias)
    values: dict[str, Value] = {}
    _evaluate_into(values, texts.variables, Scope({**names, "vars": values}, functions, promotion.now))
    inner = Scope({**names, **step_names(step), "vars": values}, functions, promotion.now)
    _evaluate_into(values, texts.step_variables, inner)
    return values


def _evaluate_into(values: dict[str, Value], variables: Sequence[Variable], scope: Scope) -> None:
    for variable in variables:
        try:
            values[variable.name] = evaluate_text(variable.value or "", scope)
        except ExpressionError as error:
            error.message = f"the var {variable.name}: {error.message}"
            raise


def step_scope(promotion: PromotionFacts, step: StepFacts, variables: Mapping[str, Value]) -> Scope:
    """What `if` and config see, once the vars are evaluated."""
    names = {**promotion_names(promotion, step.alias), **step_names(step), "vars": dict(variables)}
    functions = {**base_functions(promotion), **status_functions(step.alias, step.metas)}
    return Scope(names, functions, promotion.now)


def decide_run(promotion: PromotionFacts, step: StepFacts, texts: StepExpressions) -> bool | Unknown:
    """Whether the step runs: its `if`, or without one whether no earlier step failed.

    Vars are evaluated only where there is an `if`, as in Kargo. Raises ExpressionError.
    """
    if not texts.condition:
        return not has_failures(step.metas)
    scope = step_scope(promotion, step, evaluate_variables(promotion, step, texts))
    try:
        return evaluate_bool(texts.condition, scope)
    except ExpressionError as error:
        error.message = f"if: {error.message}"
        raise


def evaluate_config(promotion: PromotionFacts, step: StepFacts, texts: StepExpressions) -> dict[str, Value]:
    """The step's configuration with everything evaluated; raises ExpressionError, its message naming the key."""
    scope = step_scope(promotion, step, evaluate_variables(promotion, step, texts))
    config = evaluate_template(dict(texts.config), scope)
    assert isinstance(config, dict)
    return config


def warehouse_scope(found: DiscoveredArtifacts | None, now: datetime | Unknown | None = None) -> Scope:
    """What `freightCreationCriteria` sees."""
    return Scope({}, {**discovered_functions(found), **UTILITY_FUNCTIONS}, now)


def meets_criteria(criteria: str, found: DiscoveredArtifacts | None, now: datetime | None = None) -> bool:
    """Whether Freight may be made of what a Warehouse found; blank criteria allow it. Raises ExpressionError."""
    return not criteria.strip() or evaluate_criteria(criteria, warehouse_scope(found, now)) is True


@dataclass(frozen=True, slots=True)
class VerificationFacts:
    """What the arguments of a Stage's verification are evaluated with."""

    project: str
    stage: str
    freight: FreightFacts = field(default_factory=FreightFacts)
    data: DataFacts = field(default_factory=DataFacts)
    now: datetime | None = None


def evaluate_arguments(
    facts: VerificationFacts, variables: Sequence[Variable], arguments: Sequence[Variable]
) -> dict[str, str]:
    """The arguments of a verification, which must all be known texts; raises ExpressionError naming the argument.

    They see `ctx.project`, `ctx.stage` and the Stage's own `vars`.
    """
    promotion = PromotionFacts(
        facts.project, facts.stage, freight=facts.freight, data=facts.data, now=facts.now
    )
    values: dict[str, Value] = {}
    names: dict[str, Operand] = {"ctx": {"project": facts.project, "stage": facts.stage}, "vars": values}
    scope = Scope(names, base_functions(promotion), facts.now)
    _evaluate_into(values, variables, scope)
    made: dict[str, str] = {}
    for argument in arguments:
        try:
            value = evaluate_text(argument.value or "", scope)
        except ExpressionError as error:
            error.message = f"the argument {argument.name}: {error.message}"
            raise
        marks = scan((value,), Meter())
        if marks.names or marks.origins:
            raise ExpressionError(f"the argument {argument.name} would show a sensitive or unknown value")
        if not isinstance(value, str):
            raise ExpressionError(f"the argument {argument.name} must be a text; write it with quote(x)")
        made[argument.name] = value
    return made
