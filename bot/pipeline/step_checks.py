"""What is wrong with steps before they ever run: kinds, configurations, expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from bot.domain.custom_steps import CustomStep
from bot.domain.model import (
    ChartSubscription,
    GitSubscription,
    ImageSubscription,
    PromotionTask,
    Stage,
    Step,
    Variable,
    Warehouse,
)
from bot.domain.tasks import SEPARATOR, default_alias
from bot.domain.urls import normalize_git_url
from bot.domain.values import Json
from bot.pipeline.access import mappings_at
from bot.pipeline.expression_checks import Known, check_bare_expression, check_templates
from bot.pipeline.kinds.custom_steps import check_custom_config
from bot.pipeline.reader import Path
from bot.pipeline.schema import Finding, JsonSchema, check, nearest, shown
from bot.pipeline.step_schemas import STEP_SCHEMAS

Tasks: TypeAlias = "Mapping[tuple[str, str], PromotionTask]"
"""The tasks that a project's Stages may use, by kind and name."""
STAGE_STEPS: Path = ("spec", "promotionTemplate", "spec", "steps")
TASK_STEPS: Path = ("spec", "steps")
MOST_STEPS = 500
"""A Stage with more steps, those of its tasks included, is surely a mistake."""
_BARE = frozenset({"successExpression", "failureExpression", "errorExpression", "fromExpression"})
"""Keys of step configurations whose text is an expression without delimiters."""


@dataclass(frozen=True, slots=True)
class StepKinds:
    """The step kinds that this program has, and those that the pipeline defines, by name."""

    schemas: Mapping[str, JsonSchema]
    custom: Mapping[str, CustomStep] = field(default_factory=dict)

    def check(self, step: Step, path: Path) -> Iterator[Finding]:
        """What is wrong with a step's kind and configuration."""
        schema, custom = self.schemas.get(step.uses), self.custom.get(step.uses)
        if schema is None and custom is not None:
            yield from check_custom_config(custom, dict(step.config), (*path, "config"))
            return
        if schema is None:
            yield Finding((*path, "uses"), self.explain(step.uses))
            return
        config: Json = dict(step.config)
        for finding in check(config, schema, expressions=True):
            yield replace(finding, path=(*path, "config", *finding.path))
        for where, text in _bare_expressions(config, (*path, "config")):
            yield from check_bare_expression(text, where)

    def explain(self, uses: str) -> str:
        """Why a step kind cannot be carried out."""
        if uses in STEP_SCHEMAS:
            return f"the step {shown(uses)} is Kargo's, but cannot be carried out here"
        return f"there is no step {shown(uses)}{nearest(uses, [*self.schemas, *self.custom])}"


def _bare_expressions(value: Json, path: Path) -> Iterator[tuple[Path, str]]:
    match value:
        case dict():
            for key, item in value.items():
                if key in _BARE and isinstance(item, str) and "${" not in item:
                    yield (*path, key), item
                else:
                    yield from _bare_expressions(item, (*path, key))
        case list():
            for index, item in enumerate(value):
                yield from _bare_expressions(item, (*path, index))
        case _:
            return


def check_expressions(step: Step, path: Path, known: Known) -> Iterator[Finding]:
    """What is wrong with the expressions of one step."""
    yield from check_templates(step.condition, (*path, "if"), known)
    if step.condition and "${" not in step.condition:
        message = "a condition without ${{ }} is text, never true; write it as ${{ ... }}"
        yield Finding((*path, "if"), message)
    yield from check_variables(step.variables, (*path, "vars"), known)
    yield from check_templates(dict(step.config), (*path, "config"), known)


def check_variables(variables: Sequence[Variable], path: Path, known: Known) -> Iterator[Finding]:
    """What is wrong with the expressions of a list of variables; each sees only those before it."""
    every = {item.name for item in variables}
    seen = set(known.variables or ())
    for index, variable in enumerate(variables):
        here = known if known.variables is None else replace(known, variables=seen, later_variables=every)
        yield from check_templates(variable.value, (*path, index, "value"), here)
        seen.add(variable.name)


def check_config_shapes(spec: dict[str, Json], path: Path) -> Iterator[Finding]:
    """Configurations that are no mapping; Kargo admits them, and no step can read them."""
    keys = [part for part in path[1:] if isinstance(part, str)]
    for index, step in enumerate(mappings_at(spec, *keys)):
        if not isinstance(step.get("config", {}), dict):
            yield Finding((*path, index, "config"), "must be a mapping")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the expressions of a Stage may refer to: its variables, its Warehouses, and their subscriptions."""

    variables: frozenset[str]
    warehouses: tuple[str, ...]
    subscriptions: Mapping[str, frozenset[str]] | None

    def known(self, *variables: Variable) -> Known:
        """These names, and more variables."""
        names = self.variables.union(item.name for item in variables)
        return Known(variables=names, warehouses=self.warehouses, subscriptions=self.subscriptions)


def stage_surroundings(stage: Stage, warehouses: Mapping[str, Warehouse]) -> Surroundings:
    """What a Stage's expressions may refer to; a Warehouse that is missing leaves subscriptions open."""
    template = stage.template.variables if stage.template is not None else ()
    names = tuple(request.origin.name for request in stage.requested_freight)
    found = [warehouses.get(name) for name in names]
    return Surroundings(
        variables=frozenset(item.name for item in (*stage.variables, *template)),
        warehouses=names,
        subscriptions=None if None in found else _subscriptions([item for item in found if item is not None]),
    )


def _subscriptions(warehouses: Sequence[Warehouse]) -> Mapping[str, frozenset[str]]:
    every = [item for warehouse in warehouses for item in warehouse.subscriptions]
    return {
        "imageFrom": frozenset(item.repo_url for item in every if isinstance(item, ImageSubscription)),
        "chartFrom": frozenset(item.repo_url for item in every if isinstance(item, ChartSubscription)),
        "commitFrom": frozenset(
            normalize_git_url(item.repo_url) for item in every if isinstance(item, GitSubscription)
        ),
    }


# -- Stages and tasks ----------------------------------------------------------------------------------------------


def find_task(step: Step, tasks: Tasks) -> PromotionTask | None:
    """The task that a step stands for, if it does and if that exists."""
    return tasks.get((step.task.kind, step.task.name)) if step.task is not None else None


def count_steps(stage: Stage, tasks: Tasks) -> int:
    """How many steps a promotion of the Stage has, those of its tasks included."""
    found = [find_task(step, tasks) for step in _steps(stage)]
    return sum(1 if task is None else len(task.steps) for task in found)


def stage_aliases(stage: Stage, tasks: Tasks) -> dict[str, int] | None:
    """Aliases that have outputs in the Stage, those of its tasks' steps included, with the place of the step.

    None if a task is missing, since then nobody can say.
    """
    places: dict[str, int] = {}
    for index, step in enumerate(_steps(stage)):
        alias = step.alias or default_alias(step, index)
        task = find_task(step, tasks)
        if step.task is not None and task is None:
            return None
        inner = task_aliases(task) if task is not None else ()
        # `compose-output` publishes under its task's alias as well.
        places.update(dict.fromkeys((alias, *(f"{alias}{SEPARATOR}{name}" for name in inner)), index))
    return places


def task_aliases(task: PromotionTask) -> dict[str, int]:
    """The aliases of a task's steps, without the task's own, with the place of the step."""
    return {step.alias or default_alias(step, index): index for index, step in enumerate(task.steps)}


def _steps(stage: Stage) -> tuple[Step, ...]:
    return stage.template.steps if stage.template is not None else ()


def check_stage_steps(
    stage: Stage, tasks: Tasks, kinds: StepKinds, around: Surroundings
) -> Iterator[Finding]:
    """What is wrong with the steps of a Stage as they are written there; its tasks are checked apart."""
    if stage.template is None:
        return
    # Variables are evaluated before the first step, so there are no outputs yet.
    early = replace(around.known(), variables=(), outputs={}, task_outputs={})
    yield from check_variables(stage.variables, ("spec", "vars"), early)
    path: Path = ("spec", "promotionTemplate", "spec", "vars")
    above = [item.name for item in stage.variables]
    yield from check_variables(stage.template.variables, path, replace(early, variables=above))
    if count_steps(stage, tasks) > MOST_STEPS:
        yield Finding(STAGE_STEPS, f"the Stage has more than {MOST_STEPS} steps, those of its tasks included")
        return
    outputs = stage_aliases(stage, tasks)
    for index, step in enumerate(stage.template.steps):
        known = replace(around.known(*step.variables), outputs=outputs, task_outputs={}, position=index)
        where: Path = (*STAGE_STEPS, index)
        if step.task is None:
            yield from kinds.check(step, where)
        yield from check_expressions(step, where, known)


def check_task_steps(task: PromotionTask, kinds: StepKinds) -> Iterator[Finding]:
    """What is wrong with a task by itself, whichever Stage uses it."""
    aliases = task_aliases(task)
    yield from check_variables(task.variables, ("spec", "vars"), Known(task_outputs={}))
    for index, step in enumerate(task.steps):
        path: Path = (*TASK_STEPS, index)
        yield from kinds.check(step, path)
        known = Known(task_outputs=aliases, position=index)
        yield from check_expressions(step, path, known)


def check_task_in_stage(
    task: PromotionTask, step: Step, around: Surroundings, outputs: Mapping[str, int] | None
) -> Iterator[Finding]:
    """What is wrong with a task's expressions where this step of a Stage uses it."""
    for index, inner in enumerate(task.steps):
        known = around.known(*task.variables, *step.variables, *inner.variables)
        yield from check_expressions(inner, (*TASK_STEPS, index), replace(known, outputs=outputs))
