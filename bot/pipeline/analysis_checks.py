"""What is wrong with a Stage's verification and the templates that it names, before anything is measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bot.domain.model import Stage, Verification
from bot.domain.problems import Severity
from bot.domain.values import Json
from bot.expressions.errors import ExpressionError
from bot.expressions.references import list_references
from bot.pipeline.access import mappings_at, text_at
from bot.pipeline.analysis import (
    AnalysisError,
    Spec,
    list_arguments,
    match_rule,
    merge_arguments,
    read_metric,
)
from bot.pipeline.expression_checks import Known, check_templates
from bot.pipeline.kinds.analysis import ANALYSIS_TEMPLATE
from bot.pipeline.reader import Path
from bot.pipeline.schema import Finding, check, holds_expression, nearest, shown

_VERIFICATION: Path = ("spec", "verification")
_SECRETS = frozenset({"secret", "sharedSecret"})


def check_template(spec: Spec) -> list[Finding]:
    """What is wrong with the shape of an AnalysisTemplate, whoever uses it."""
    shape = check(spec, ANALYSIS_TEMPLATE, unknown_keys=Severity.WARNING)
    findings = [replace(finding, path=("spec", *finding.path)) for finding in shape]
    if mappings_at(spec, "templates"):
        message = "templates within templates are not carried out; name every one of them in the Stage"
        findings.append(Finding(("spec", "templates"), message))
    for index, raw in enumerate(mappings_at(spec, "args")):
        source = raw.get("valueFrom")
        if isinstance(source, dict) and "fieldRef" in source:
            path: Path = ("spec", "args", index, "valueFrom", "fieldRef")
            findings.append(Finding(path, "there is no object of a cluster here whose fields could be read"))
    names = [text_at(metric, "name") for metric in mappings_at(spec, "metrics")]
    for part in ("dryRun", "measurementRetention"):
        for index, rule in enumerate(mappings_at(spec, part)):
            try:
                match_rule(rule, names)
            except AnalysisError as error:
                findings.append(Finding(("spec", part, index, "metricName"), str(error)))
    return findings


def check_metrics(spec: Spec, verification: Verification, specs: Sequence[Spec]) -> Iterator[Finding]:
    """What is wrong with a template's metrics as one Stage uses them; `specs` are all templates read so far."""
    arguments, _ = merge_arguments(specs, _given(verification))
    values = {argument.name: argument.value for argument in arguments}
    for index, raw in enumerate(mappings_at(spec, "metrics")):
        path: Path = ("spec", "metrics", index)
        metric, findings = read_metric(raw, values, path, strict=False)
        yield from findings
        if (
            not findings
            and metric.wanted is None
            and "count" not in raw
            and not metric.consecutive_success_limit
        ):
            message = "without count it is measured until it fails, so the verification never succeeds"
            yield Finding((*path, "interval"), message, Severity.WARNING)


def check_verification(stage: Stage, specs: Sequence[Spec], *, whole: bool) -> Iterator[Finding]:
    """What is wrong with what a Stage itself says; `whole` tells that `specs` are all the templates that it names."""
    verification = stage.verification
    if verification is None:
        return
    if stage.is_control_flow:
        message = "a control-flow Stage verifies all Freight at once, so its own verification is not run"
        yield Finding(_VERIFICATION, message, Severity.WARNING)
    if not verification.templates:
        yield Finding(_VERIFICATION, "give at least one analysis template in analysisTemplates")
    variables = [item.name for item in stage.variables]
    for index, argument in enumerate(verification.arguments):
        path: Path = (*_VERIFICATION, "args", index, "value")
        yield from check_templates(argument.value, path, Known(variables, {}, {}))
        yield from _check_secret(argument.value, path)
    if whole and specs:
        yield from _check_together(verification, specs)


def _check_secret(value: Json, path: Path) -> Iterator[Finding]:
    try:
        functions = list_references(value).functions
    except ExpressionError:
        return
    if functions & _SECRETS:
        message = (
            "people see arguments, so they hold no secrets; let the template read it (valueFrom.secretKeyRef)"
        )
        yield Finding(path, message)


def _check_together(verification: Verification, specs: Sequence[Spec]) -> Iterator[Finding]:
    given = _given(verification)
    _, problems = merge_arguments(specs, given)
    for problem in problems:
        yield Finding((*_VERIFICATION, "args"), problem)
    declared = {name for spec in specs for name in list_arguments(spec)}
    for index, argument in enumerate(verification.arguments):
        if argument.name not in declared:
            message = f"no template has an argument {shown(argument.name)}{nearest(argument.name, declared)}"
            yield Finding((*_VERIFICATION, "args", index, "name"), message, Severity.WARNING)
    seen: set[str] = set()
    for index, spec in enumerate(specs):
        names = {text_at(metric, "name") for metric in mappings_at(spec, "metrics")}
        for name in sorted(names & seen):
            message = f"a template before it has a metric {shown(name)} too"
            yield Finding((*_VERIFICATION, "analysisTemplates", index, "name"), message)
        seen |= names


def _given(verification: Verification) -> Mapping[str, str | None]:
    """A Stage's arguments; what an expression comes to is not known before it is evaluated."""
    return {
        argument.name: None if holds_expression(argument.value) else argument.value
        for argument in verification.arguments
    }
