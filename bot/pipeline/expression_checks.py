"""What is wrong with expressions before they ever run: syntax, unknown functions, names that lead nowhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from bot.domain.problems import Severity
from bot.domain.urls import normalize_git_url
from bot.domain.values import Json
from bot.expressions.errors import ExpressionError
from bot.expressions.evaluator import compile_expression
from bot.expressions.references import References, list_references
from bot.pipeline.reader import Path
from bot.pipeline.schema import Finding, holds_expression, nearest, shown

FUNCTIONS = (
    "warehouse",
    "commitFrom",
    "imageFrom",
    "chartFrom",
    "artifactFrom",
    "secret",
    "sharedSecret",
    "configMap",
    "sharedConfigMap",
    "freightMetadata",
    "stageMetadata",
    "freightStatus",
    "success",
    "failure",
    "always",
    "status",
    "semverDiff",
    "semverParse",
    "quote",
    "unsafeQuote",
    "asYAML",
    "asJSON",
)
"""Every function that a template may call besides those of the expression language itself."""


@dataclass(frozen=True, slots=True)
class Known:
    """Names that expressions at one place may use; None where they are not known and nothing is checked.

    `outputs` are aliases of the whole promotion, `task_outputs` those of the task around, each with the place of its
    step; those from `position` on have not run by then. `subscriptions` has, by function, the repositories that it
    can find Freight of.
    """

    variables: Collection[str] | None = None
    later_variables: Collection[str] = ()
    outputs: Mapping[str, int] | None = None
    task_outputs: Mapping[str, int] | None = None
    position: int | None = None
    warehouses: Collection[str] | None = None
    subscriptions: Mapping[str, Collection[str]] | None = None


def find_texts(value: Json, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every text of a value that holds an expression, with its path."""
    match value:
        case str():
            if holds_expression(value):
                yield path, value
        case list():
            for index, item in enumerate(value):
                yield from find_texts(item, (*path, index))
        case dict():
            for key, item in value.items():
                yield from find_texts(item, (*path, key))
        case _:
            return


def check_templates(value: Json, path: Path, known: Known) -> Iterator[Finding]:
    """What is wrong with the expressions of all texts in a value that stands at a path."""
    for where, text in find_texts(value, path):
        try:
            references = list_references(text)
        except ExpressionError as error:
            yield Finding(where, f"the expression cannot be read: {error}")
            continue
        for message, severity in _judge(references, known):
            yield Finding(where, message, severity)


def check_bare_expression(text: str, path: Path) -> Iterator[Finding]:
    """What is wrong with an expression that is written without delimiters."""
    if not text.strip():
        return
    try:
        compile_expression(text)
    except ExpressionError as error:
        yield Finding(path, f"the expression cannot be read: {error}")


def _judge(found: References, known: Known) -> Iterator[tuple[str, Severity]]:
    for name in sorted(found.functions - set(FUNCTIONS)):
        yield f"there is no function {name}(){nearest(name, FUNCTIONS)}", Severity.ERROR
    yield from _missing(found.outputs, known.outputs, "outputs", "step", Severity.ERROR)
    yield from _missing(
        found.task_outputs, known.task_outputs, "task.outputs", "step of the task", Severity.ERROR
    )
    later = found.variables.intersection(known.later_variables).difference(known.variables or ())
    for name in sorted(later):
        yield f"the variable {shown(name)} is defined further down, so it has no value yet", Severity.WARNING
    yield from _missing(found.variables - later, known.variables, "vars", "variable", Severity.WARNING)
    for used, places in ((found.outputs, known.outputs), (found.task_outputs, known.task_outputs)):
        for alias in sorted(used):
            place = (places or {}).get(alias)
            if place is not None and known.position is not None and place >= known.position:
                yield f"step {shown(alias)} has not run by then, so it has no outputs yet", Severity.WARNING
    for function, argument in sorted(found.calls, key=str):
        if argument is not None:
            yield from _judge_call(function, argument, known)


def _judge_call(function: str, argument: str, known: Known) -> Iterator[tuple[str, Severity]]:
    if function == "warehouse" and known.warehouses is not None and argument not in known.warehouses:
        hint = nearest(argument, known.warehouses)
        yield f"the Stage asks for no Freight of a Warehouse {shown(argument)}{hint}", Severity.ERROR
    urls = (known.subscriptions or {}).get(function)
    if urls is None:
        return
    # Git addresses are compared in one spelling, images and charts as they are written.
    wanted = normalize_git_url(argument) if function == "commitFrom" else argument
    if wanted not in urls:
        hint = nearest(wanted, urls)
        yield f"no Warehouse that the Stage asks for subscribes to {shown(argument)}{hint}", Severity.WARNING


def _missing(
    used: Collection[str], known: Collection[str] | None, where: str, what: str, severity: Severity
) -> Iterator[tuple[str, Severity]]:
    if known is not None:
        for name in sorted(name for name in used if name not in known):
            yield f"{where} names a {what} {shown(name)} that does not exist{nearest(name, known)}", severity
