"""Analysis templates to metrics: arguments merged and filled in, as Argo Rollouts does when it makes an AnalysisRun."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from bot.domain.analysis import (
    ERROR_LIMIT,
    Metric,
    PrometheusQuery,
    Query,
    SecretArgument,
    WebQuery,
)
from bot.domain.json_path import JsonPathError, parse_json_path
from bot.domain.regex import compile_regex
from bot.domain.values import Json
from bot.expressions.conditions import check_condition
from bot.expressions.errors import ExpressionError
from bot.expressions.gotime import parse_span
from bot.pipeline.access import bool_at, int_at, mapping_at, mappings_at, text_at
from bot.pipeline.job_metric import read_job
from bot.pipeline.reader import Path
from bot.pipeline.schema import Finding, nearest, shown

_PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")
_SECOND = 1e9
_PROVIDERS = ("web", "prometheus", "job")

Spec: TypeAlias = "dict[str, Json]"
"""The `spec` of an AnalysisTemplate, as it was written."""


class AnalysisError(ValueError):
    """Templates and arguments that make no run; the text is for a person."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument as templates and Stage give it; `value` None: it is secret, or not known before it is needed."""

    name: str
    value: str | None = None
    secret: SecretArgument | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """What several templates come to together."""

    metrics: tuple[Metric, ...]
    dry_run: frozenset[str] = frozenset()
    kept: Mapping[str, int] = field(default_factory=dict)
    secrets: tuple[SecretArgument, ...] = ()


def merge_templates(specs: Sequence[Spec], given: Mapping[str, str]) -> Analysis:
    """One analysis of all templates, with a Stage's arguments filled in.

    Raises AnalysisError for what Argo Rollouts refuses, an argument without a value for instance.
    """
    arguments, problems = merge_arguments(specs, given)
    if problems:
        raise AnalysisError(problems[0])
    values = {argument.name: argument.value for argument in arguments}
    metrics: list[Metric] = []
    for spec in specs:
        for index, raw in enumerate(mappings_at(spec, "metrics")):
            metric, findings = read_metric(raw, values, ("spec", "metrics", index), strict=True)
            if findings:
                raise AnalysisError(f'metric "{text_at(raw, "name")}": {findings[0].message}')
            if any(metric.name == other.name for other in metrics):
                raise AnalysisError(f'two metrics are called "{metric.name}"')
            metrics.append(metric)
    names = [metric.name for metric in metrics]
    if not names:
        raise AnalysisError("there is no metric to measure")
    dry_run = [
        name for spec in specs for rule in mappings_at(spec, "dryRun") for name in match_rule(rule, names)
    ]
    kept = {
        name: int_at(rule, "limit", 1)
        for spec in specs
        for rule in mappings_at(spec, "measurementRetention")
        for name in match_rule(rule, names)
    }
    secrets = tuple(argument.secret for argument in arguments if argument.secret is not None)
    return Analysis(tuple(metrics), frozenset(dry_run), kept, secrets)


def match_rule(rule: Json, names: Sequence[str]) -> list[str]:
    """The metrics that a rule's pattern finds; raises AnalysisError if it finds none."""
    pattern = text_at(rule, "metricName")
    try:
        found = [name for name in names if compile_regex(pattern).search(name)]
    except ValueError as error:
        raise AnalysisError(f"the pattern {shown(pattern)} cannot be read: {error}") from error
    if not found:
        raise AnalysisError(f"no metric is called {shown(pattern)}")
    return found


def merge_arguments(
    specs: Sequence[Spec], given: Mapping[str, str | None]
) -> tuple[tuple[Argument, ...], list[str]]:
    """Every argument that the templates declare, with its value, and what is wrong with them.

    `given` are the Stage's; None is a value that is not known yet. Those that no template declares do not count.
    """
    found: dict[str, Argument] = {}
    empty: set[str] = set()
    problems = []
    for spec in specs:
        for raw in mappings_at(spec, "args"):
            argument, has_value = _argument(raw)
            before = found.get(argument.name)
            if before is not None and argument.name not in empty:
                if has_value and before != argument and argument.name not in given:
                    problems.append(f"the argument {shown(argument.name)} has two values, in two templates")
                continue
            found[argument.name] = argument
            (empty.discard if has_value else empty.add)(argument.name)
    for name, value in given.items():
        if name in found:
            found[name] = Argument(name, value)
            empty.discard(name)
    problems += [f"the argument {shown(name)} has no value" for name in sorted(empty)]
    return tuple(found.values()), problems


def list_arguments(spec: Spec) -> tuple[str, ...]:
    """The names of the arguments that a template declares."""
    return tuple(text_at(raw, "name") for raw in mappings_at(spec, "args"))


def _argument(raw: Json) -> tuple[Argument, bool]:
    name, value = text_at(raw, "name"), mapping_at(raw).get("value")
    reference = mapping_at(raw, "valueFrom", "secretKeyRef")
    if reference:
        secret = SecretArgument(name, text_at(reference, "name"), text_at(reference, "key"))
        return Argument(name, secret=secret), True
    return Argument(name, value if isinstance(value, str) else None), isinstance(value, str)


def fill(text: str, values: Mapping[str, str], escape: Callable[[str], str] = str) -> str:
    """A text with `{{ args.NAME }}` replaced where the value is known."""

    def replaced(found: re.Match[str]) -> str:
        value = values.get(found[1].strip().removeprefix("args."))
        return found[0] if value is None else escape(value)

    return _PLACEHOLDER.sub(replaced, text)


# -- one metric ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Reading:
    """Reads one metric; what is wrong is gathered, so that all of it is told at once."""

    values: Mapping[str, str | None]
    path: Path
    strict: bool
    findings: list[Finding] = field(default_factory=list)

    def complain(self, message: str, *key: str) -> None:
        self.findings.append(Finding((*self.path, *key), message))

    def filled(self, value: Json, *key: str) -> str:
        """The text of a value, with known arguments filled in; an argument that does not exist is complained of."""
        text = value if isinstance(value, str) else "" if value is None else str(value)
        for found in _PLACEHOLDER.finditer(text):
            name = found[1].strip()
            if name.removeprefix("args.") not in self.values or not name.startswith("args."):
                hint = nearest(name, [f"args.{known}" for known in self.values])
                self.complain(f"there is no argument for {shown(found[0])}{hint}", *key)
        return self.known(text)

    def known(self, value: Json) -> str:
        """The text of a value, with known arguments filled in."""
        text = value if isinstance(value, str) else "" if value is None else str(value)
        return fill(text, {name: known for name, known in self.values.items() if known is not None})

    def number(self, raw: Json, key: str, default: int) -> int:
        text = self.filled(mapping_at(raw).get(key), key).strip()
        if not text or self.is_open(text):
            return default
        try:
            return int(float(text))
        except (ValueError, OverflowError):
            self.complain(f"{shown(text)} is no whole number", key)
            return default

    def seconds(self, raw: Json, key: str) -> float | None:
        text = self.filled(mapping_at(raw).get(key), key).strip()
        if not text or self.is_open(text):
            return None
        try:
            span = parse_span(text).nanoseconds
        except ExpressionError as error:
            self.complain(str(error), key)
            return None
        if span < 0 or (span == 0 and key == "interval"):
            self.complain("the time must be longer than nothing", key)
        return span / _SECOND

    def condition(self, raw: Json, key: str) -> str:
        text = self.filled(mapping_at(raw).get(key), key).strip()
        # Whatever an argument that is not known yet will be: a number or a text, or else a name.
        tries = [_PLACEHOLDER.sub(word, text) for word in ("1", "x")] if self.is_open(text) else [text]
        problems = [check_condition(attempt) for attempt in tries] if text else []
        if problems and all(problems):
            self.complain(problems[0], key)
        return text

    def is_open(self, text: str) -> bool:
        """Whether a value that is not known yet stands in the text; before a run starts that is no mistake."""
        return not self.strict and bool(_PLACEHOLDER.search(text))

    def pairs(self, raw: Json, *key: str) -> tuple[tuple[str, str], ...]:
        return tuple(
            (text_at(item, "key"), self.filled(item.get("value"), *key, "headers"))
            for item in mappings_at(raw, "headers")
        )


def read_metric(
    raw: Json, values: Mapping[str, str | None], path: Path, *, strict: bool
) -> tuple[Metric, list[Finding]]:
    """A metric with arguments filled in, and what is wrong with it.

    `values` are the arguments, None for those that are not known (yet). `strict` tells that the run is about to start.
    """
    reading = _Reading(values, path, strict)
    metric = Metric(
        name=reading.filled(text_at(raw, "name"), "name"),
        query=_read_query(mapping_at(raw, "provider"), reading),
        interval=reading.seconds(raw, "interval"),
        initial_delay=reading.seconds(raw, "initialDelay") or 0.0,
        count=reading.number(raw, "count", 0) or None,
        success=reading.condition(raw, "successCondition"),
        failure=reading.condition(raw, "failureCondition"),
        failure_limit=reading.number(raw, "failureLimit", 0),
        inconclusive_limit=reading.number(raw, "inconclusiveLimit", 0),
        consecutive_error_limit=reading.number(raw, "consecutiveErrorLimit", ERROR_LIMIT),
        consecutive_success_limit=reading.number(raw, "consecutiveSuccessLimit", 0),
    )
    numbers = ("count", "failureLimit", "inconclusiveLimit", "interval")
    if not any(reading.is_open(reading.known(mapping_at(raw).get(key))) for key in numbers):
        for key, message in _check_limits(metric):
            reading.complain(message, key)
    return metric, reading.findings


def _check_limits(metric: Metric) -> Iterator[tuple[str, str]]:
    """How the numbers go together, by the rules of Argo Rollouts."""
    count = metric.count or 0
    if count < 0:
        yield "count", "must be at least 1"
    if count > 1 and metric.interval is None:
        yield "interval", "an interval must be given where count is more than 1"
    for key, limit in (
        ("failureLimit", metric.failure_limit),
        ("inconclusiveLimit", metric.inconclusive_limit),
    ):
        if 0 < count < limit:
            yield key, f"must not be more than count ({count})"
    if metric.failure_limit < -1:
        yield "failureLimit", "must be at least 0, or -1 where it does not apply"
    if metric.failure_limit == -1 and metric.consecutive_success_limit <= 0:
        yield "failureLimit", "one of failureLimit and consecutiveSuccessLimit must apply"
    for key, limit in (
        ("inconclusiveLimit", metric.inconclusive_limit),
        ("consecutiveErrorLimit", metric.consecutive_error_limit),
        ("consecutiveSuccessLimit", metric.consecutive_success_limit),
    ):
        if limit < 0:
            yield key, "must be at least 0"


def _read_query(provider: Mapping[str, Json], reading: _Reading) -> Query:
    names = sorted(provider)
    if len(names) != 1:
        reading.complain(f"give one provider, not {len(names)}", "provider")
    for name in names:
        if name not in _PROVIDERS:
            done = ", ".join(_PROVIDERS)
            message = f"the provider {shown(name)} needs a client that is not there; {done} are carried out"
            reading.complain(message, "provider", name)
    if "job" in provider:
        return read_job(provider["job"], reading)
    if "prometheus" in provider:
        return _read_prometheus(provider["prometheus"], reading)
    return _read_web(provider.get("web"), reading)


def _read_web(raw: Json, reading: _Reading) -> WebQuery:
    where = ("provider", "web")
    _refuse_authentication(raw, reading, *where)
    path = reading.filled(text_at(raw, "jsonPath"), *where, "jsonPath")
    try:
        parse_json_path("" if reading.is_open(path) else path)
    except JsonPathError as error:
        reading.complain(str(error), *where, "jsonPath")
    method, body, tree = (
        text_at(raw, "method") or "GET",
        text_at(raw, "body"),
        mapping_at(raw).get("jsonBody"),
    )
    if body and tree is not None:
        reading.complain("give body or jsonBody, not both", *where, "jsonBody")
    if method == "GET" and (body or tree is not None):
        reading.complain("a body is sent with POST and PUT only", *where, "method")
    headers = reading.pairs(raw, *where)
    if tree is not None:
        # Filled in after it is JSON text: a value with quotes must not become part of the structure.
        reading.filled(json.dumps(tree), *where, "jsonBody")
        known = {name: value for name, value in reading.values.items() if value is not None}
        body = fill(json.dumps(tree), known, lambda value: json.dumps(value)[1:-1])
        if not any(name.lower() == "content-type" for name, _ in headers):
            headers = (*headers, ("Content-Type", "application/json"))
    return WebQuery(
        url=reading.filled(text_at(raw, "url"), *where, "url"),
        method=method,
        headers=headers,
        body=body if tree is not None else reading.filled(body, *where, "body"),
        is_json=tree is not None,
        json_path=path,
        timeout=float(int_at(raw, "timeoutSeconds", 10) or 10),
        insecure=bool_at(raw, "insecure"),
    )


def _read_prometheus(raw: Json, reading: _Reading) -> PrometheusQuery:
    where = ("provider", "prometheus")
    _refuse_authentication(raw, reading, *where)
    if mapping_at(raw, "rangeQuery"):
        reading.complain("range queries are not carried out; ask with an instant query", *where, "rangeQuery")
    address = reading.filled(text_at(raw, "address"), *where, "address")
    if not reading.is_open(address) and not address.startswith(("http://", "https://", "{{")):
        reading.complain("give the server's address, with http:// or https://", *where, "address")
    return PrometheusQuery(
        address=address.rstrip("/"),
        query=reading.filled(text_at(raw, "query"), *where, "query"),
        headers=reading.pairs(raw, *where),
        timeout=float(int_at(raw, "timeout", 30) or 30),
        insecure=bool_at(raw, "insecure"),
    )


def _refuse_authentication(raw: Json, reading: _Reading, *key: str) -> None:
    if any(mapping_at(raw, "authentication", name) for name in mapping_at(raw, "authentication")):
        message = "oauth2 and sigv4 are not carried out; send a header with a secret argument (valueFrom.secretKeyRef)"
        reading.complain(message, *key, "authentication")
