"""What Stages name in the world, as far as their expressions can be evaluated without a promotion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bot.domain.model import ImageSubscription, Stage, Step
from bot.domain.pipeline import Pipeline
from bot.domain.tasks import TaskError, inflate_steps
from bot.domain.values import Json
from bot.expressions.errors import ExpressionError
from bot.expressions.facts import PromotionFacts, StepFacts
from bot.expressions.scopes import StepExpressions, evaluate_config

_PLACEHOLDER = "0000000"


@dataclass(frozen=True, slots=True)
class NamedBranch:
    """A branch (empty: the default one) of the repository at an address, to which a Stage pushes."""

    url: str
    branch: str


@dataclass(frozen=True, slots=True)
class NamedApplication:
    """An Application by its name, as one Stage names it; `namespace` may be empty."""

    stage: Stage
    name: str
    namespace: str


def find_branches(pipeline: Pipeline, stage: Stage) -> tuple[list[NamedBranch], int]:
    """Where the Stage's promotions are pushed to, each once, and how many pushes cannot be told before one."""
    untold = 0
    checkouts: dict[str, NamedBranch] = {}
    found: dict[NamedBranch, None] = {}
    for step in _steps(pipeline, stage):
        if step.uses == "git-clone":
            checkouts |= _checkouts(stage, step)
        elif step.uses == "git-push":
            path = _text(stage, step, "path")
            place = checkouts.get(_plain(path))
            if place is None:
                untold += 1
            else:
                branch = _text(stage, step, "targetBranch") or place.branch
                found[NamedBranch(place.url, branch)] = None
    return list(found), untold


def _checkouts(stage: Stage, step: Step) -> dict[str, NamedBranch]:
    """The work trees of a `git-clone`, by path."""
    url = _text(stage, step, "repoURL")
    found: dict[str, NamedBranch] = {}
    for item in _maps(step.config.get("checkout")):
        path, branch = (
            _evaluate(stage, step, item.get("path")),
            _evaluate(stage, step, item.get("branch")),
        )
        if url and path:
            found[_plain(path)] = NamedBranch(url, branch)
    return found


def find_applications(pipeline: Pipeline, stage: Stage) -> tuple[list[NamedApplication], int]:
    """The Applications that the Stage's steps name, and how many entries cannot be told before a promotion."""
    found: dict[tuple[str, str], NamedApplication] = {}
    untold = 0
    for step in _steps(pipeline, stage):
        if step.uses != "argocd-update":
            continue
        for item in _maps(step.config.get("apps")):
            name = _evaluate(stage, step, item.get("name"))
            namespace = _evaluate(stage, step, item.get("namespace"))
            if name:
                found[name, namespace] = NamedApplication(stage, name, namespace)
            else:
                untold += 1
    return list(found.values()), untold


def find_images(pipeline: Pipeline) -> list[tuple[str, str, bool]]:
    """The image repositories that Warehouses watch: project, address, and whether its certificate is not verified."""
    watched = [
        (project, item.repo_url, item.insecure_skip_tls_verify)
        for (project, _), warehouse in pipeline.warehouses.items()
        for item in warehouse.subscriptions
        if isinstance(item, ImageSubscription)
    ]
    return sorted(dict.fromkeys(watched))


# -- expressions -----------------------------------------------------------------------------------------------------


def _steps(pipeline: Pipeline, stage: Stage) -> tuple[Step, ...]:
    if stage.template is None:
        return ()
    project = stage.metadata.namespace
    tasks = {name: task for (owner, name), task in pipeline.tasks.items() if owner == project}
    variables = (*stage.variables, *stage.template.variables)
    try:
        return inflate_steps(stage.template.steps, tasks, pipeline.cluster_tasks, variables)
    except TaskError:
        # The configuration's own problem, which is told there.
        return ()


def _text(stage: Stage, step: Step, key: str) -> str:
    return _evaluate(stage, step, step.config.get(key))


def _evaluate(stage: Stage, step: Step, value: Json) -> str:
    """The text of one value, empty if it is none or cannot be told yet."""
    if not isinstance(value, str):
        return ""
    project = stage.metadata.namespace
    facts = PromotionFacts(project, stage.metadata.name, promotion=_PLACEHOLDER, freight_name=_PLACEHOLDER)
    shared = (*stage.variables, *(stage.template.variables if stage.template is not None else ()))
    texts = StepExpressions(variables=shared, step_variables=step.variables, config={"value": value})
    try:
        found = evaluate_config(facts, StepFacts(step.alias), texts)["value"]
    except ExpressionError:
        return ""
    return found if isinstance(found, str) and _PLACEHOLDER not in found else ""


def _maps(value: Json) -> Iterator[Mapping[str, Json]]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def _plain(path: str) -> str:
    return path.strip("/").removeprefix("./").rstrip("/")
