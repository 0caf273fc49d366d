"""Task inflation: the steps of a template with every task replaced by its steps, as a Promotion stores them.

Rules and alias names are Kargo's: a step gets `step-<n>`, a task `task-<n>` if it has no alias, and a task's step
`<task alias>::<step alias>`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bot.domain.model import (
    PromotionTask,
    Step,
    TaskReference,
    Variable,
)

CLUSTER_TASK = "ClusterPromotionTask"
SEPARATOR = "::"
"""Stands between a task's alias and its step's alias."""
_RESERVED = re.compile(r"(step|task)-[0-9]+")


class TaskError(ValueError):
    """A task cannot be inflated: it does not exist, or an input that it requires is not given."""


def is_reserved_alias(alias: str) -> bool:
    """Whether an alias is of the form that steps without one get, so that nobody may write it."""
    return _RESERVED.fullmatch(alias) is not None


def default_alias(step: Step, index: int) -> str:
    """The alias of a step at an index (from zero) that has none."""
    return f"{'task' if step.task is not None else 'step'}-{index + 1}"


def inflate_steps(
    steps: Sequence[Step],
    tasks: Mapping[str, PromotionTask],
    cluster_tasks: Mapping[str, PromotionTask],
    variables: Sequence[Variable] = (),
) -> tuple[Step, ...]:
    """The steps that are run, each with its alias; `variables` are the Promotion's own.

    Raises TaskError for a task that does not exist or lacks an input.
    """
    inflated: list[Step] = []
    for index, step in enumerate(steps):
        alias = step.alias or default_alias(step, index)
        if step.task is None:
            inflated.append(replace(step, alias=alias))
        else:
            task = _find(step.task, tasks, cluster_tasks)
            inflated.extend(_inflate(task, replace(step, alias=alias), variables))
    return tuple(inflated)


def _find(
    reference: TaskReference, tasks: Mapping[str, PromotionTask], cluster_tasks: Mapping[str, PromotionTask]
) -> PromotionTask:
    if reference.kind not in {"", "PromotionTask", CLUSTER_TASK}:
        raise TaskError(f"{reference.kind!r} is no kind of task")
    found = (cluster_tasks if reference.kind == CLUSTER_TASK else tasks).get(reference.name)
    if found is None:
        raise TaskError(f"{reference.kind or 'PromotionTask'} {reference.name!r} does not exist")
    return found


def _inflate(task: PromotionTask, step: Step, variables: Sequence[Variable]) -> list[Step]:
    missing = missing_inputs(task, step, variables)
    if missing:
        raise TaskError(f"task {task.metadata.name!r} needs a value for {', '.join(missing)}")
    promotion_level = {variable.name for variable in variables if variable.value}
    defaults = tuple(item for item in task.variables if item.value and item.name not in promotion_level)
    return [
        replace(
            inner,
            alias=f"{step.alias}{SEPARATOR}{inner.alias or default_alias(inner, index)}",
            variables=defaults + step.variables + inner.variables,
        )
        for index, inner in enumerate(task.steps)
    ]


def missing_inputs(task: PromotionTask, step: Step, variables: Sequence[Variable]) -> tuple[str, ...]:
    """Names of the inputs that the task requires and neither the step nor the Promotion gives.

    As in Kargo an empty text is no value.
    """
    given = {variable.name for variable in (*variables, *step.variables) if variable.value}
    return tuple(item.name for item in task.variables if not item.value and item.name not in given)
