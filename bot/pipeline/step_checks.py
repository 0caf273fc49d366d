"""What is wrong with steps before they ever run: kinds, configurations, expressions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

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
from bot.pipeline.reader import Path
from bot.pipeline.schema import Finding, JsonSchema, check, nearest, shown
from bot.pipeline.step_schemas import STEP_SCHEMAS

STAGE_STEPS: Path = ("spec", "promotionTemplate", "spec", "steps")
TASK_STEPS: Path = ("spec", "steps")
_BARE = frozenset({"successExpression", "failureExpression", "errorExpression", "fromExpression"})
"""Keys of step configurations whose text is an expression without delimiters."""


@dataclass(frozen=True, slots=True)
class StepKinds:
    """The step kinds that can be carried out, and the names of custom ones, which cannot."""

    schemas: Mapping[str, JsonSchema]
    custom: Collection[str] = field(default=())

    def check(self, step: Step, path: Path) -> Iterator[Finding]:
        """What is wrong with a step's kind and configuration."""
        schema = self.schemas.get(step.uses)
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
        if uses in self.custom:
            return (
                f"{shown(uses)} is a CustomPromotionStep, which runs a container; containers are not run here"
            )
        if uses in STEP_SCHEMAS:
            return f"the step {shown(uses)} is Kargo's, but cannot be carried out here"
        return f"there is no step {shown(uses)}{nearest(uses, self.schemas)}"


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
    for index, variable in enumerate(step.variables):
        yield from check_templates(variable.value, (*path, "vars", index, "value"), known)
    yield from check_templates(dict(step.config), (*path, "config"), known)


def check_variables(variables: Sequence[Variable], path: Path, known: Known) -> Iterator[Finding]:
    """What is wrong with the expressions of a list of variables; outputs do not exist there."""
    for index, variable in enumerate(variables):
        yield from check_templates(variable.value, (*path, index, "value"), known)


def check_config_shapes(spec: dict[str, Json], path: Path) -> Iterator[Finding]:
    """Configurations that are no mapping; Kargo admits them, and no step can read them."""
    keys = [part for part in path[1:] if isinstance(part, str)]
    for index, step in enumerate(mappings_at(spec, *keys)):
        if not isinstance(step.get("config", {}), dict):
            yield Finding((*path, index, "config"), "must be a mapping")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the expressions of a Stage may refer to: its variables, its Warehouses, and their subscriptions."""

    variables: tuple[str, ...]
    warehouses: tuple[str, ...]
    subscriptions: Mapping[str, frozenset[str]] | None

    def known(self, *variables: Variable) -> Known:
        """These names, and more variables."""
        names = [*self.variables, *(item.name for item in variables)]
        return Known(variables=names, warehouses=self.warehouses, subscriptions=self.subscriptions)


def stage_surroundings(stage: Stage, warehouses: Mapping[str, Warehouse]) -> Surroundings:
    """What a Stage's expressions may refer to; a Warehouse that is missing leaves subscriptions open."""
    template = stage.template.variables if stage.template is not None else ()
    names = tuple(request.origin.name for request in stage.requested_freight)
    found = [warehouses.get(name) for name in names]
    return Surroundings(
        variables=tuple(item.name for item in (*stage.variables, *template)),
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


def stage_aliases(stage: Stage, tasks: Mapping[tuple[str, str], PromotionTask]) -> list[tuple[str, ...]]:
    """For each step as written, the aliases that its outputs have: one, or those of the task's steps and its own."""
    found: list[tuple[str, ...]] = []
    steps = stage.template.steps if stage.template is not None else ()
    for index, step in enumerate(steps):
        alias = step.alias or default_alias(step, index)
        task = tasks.get((step.task.kind, step.task.name)) if step.task is not None else None
        inner = task_aliases(task) if task is not None else ()
        found.append((alias, *(f"{alias}{SEPARATOR}{name}" for name in inner)))
    return found


def task_aliases(task: PromotionTask) -> tuple[str, ...]:
    """The aliases of a task's steps, without the task's own."""
    return tuple(step.alias or default_alias(step, index) for index, step in enumerate(task.steps))


def check_stage_steps(
    stage: Stage, tasks: Mapping[tuple[str, str], PromotionTask], kinds: StepKinds, around: Surroundings
) -> Iterator[Finding]:
    """What is wrong with the steps of a Stage as they are written there; its tasks are checked apart."""
    if stage.template is None:
        return
    # Variables are evaluated before the first step, so there are no outputs yet.
    early = replace(around.known(), outputs=(), task_outputs=())
    yield from check_variables(stage.variables, ("spec", "vars"), early)
    path: Path = ("spec", "promotionTemplate", "spec", "vars")
    yield from check_variables(stage.template.variables, path, early)
    aliases = stage_aliases(stage, tasks)
    complete = all(
        step.task is None or (step.task.kind, step.task.name) in tasks for step in stage.template.steps
    )
    for index, step in enumerate(stage.template.steps):
        known = replace(
            around.known(*step.variables),
            outputs=[name for names in aliases for name in names] if complete else None,
            task_outputs=(),
            later=[name for names in aliases[index:] for name in names],
        )
        where: Path = (*STAGE_STEPS, index)
        if step.task is None:
            yield from kinds.check(step, where)
        yield from check_expressions(step, where, known)


def check_task_steps(task: PromotionTask, kinds: StepKinds) -> Iterator[Finding]:
    """What is wrong with a task by itself, whichever Stage uses it."""
    aliases = task_aliases(task)
    yield from check_variables(task.variables, ("spec", "vars"), Known(task_outputs=()))
    for index, step in enumerate(task.steps):
        path: Path = (*TASK_STEPS, index)
        yield from kinds.check(step, path)
        known = Known(task_outputs=aliases, later=aliases[index:])
        yield from check_expressions(step, path, known)


def check_task_in_stage(
    task: PromotionTask, step: Step, around: Surroundings, outputs: Collection[str] | None
) -> Iterator[Finding]:
    """What is wrong with a task's expressions where this step of a Stage uses it."""
    for index, inner in enumerate(task.steps):
        known = around.known(*task.variables, *step.variables, *inner.variables)
        yield from check_expressions(inner, (*TASK_STEPS, index), replace(known, outputs=outputs))
