"""What the page of a promotion shows of the verifications after it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from bot.domain.analysis import (
    AnalysisRun,
    JobQuery,
    Metric,
    Phase,
    PrometheusQuery,
    Query,
    WebQuery,
    describe_run,
)
from bot.reports.masking import hide_secrets
from bot.reports.wording import plural
from bot.web.overview import phase_words

_MEASURED = {
    Phase.PENDING: ("", "not measured yet"),
    Phase.RUNNING: ("busy", "measured"),
    Phase.SUCCESSFUL: ("good", "successful"),
    Phase.FAILED: ("bad", "failed"),
    Phase.ERROR: ("bad", "error"),
    Phase.INCONCLUSIVE: ("warn", "inconclusive"),
    Phase.ABORTED: ("warn", "aborted"),
}


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric: colour, state, how its measurements went, what it asks and the newest measurements, newest first."""

    name: str
    tone: str
    state: str
    counts: str
    asks: str
    conditions: tuple[str, ...]
    measurements: tuple[MeasurementRow, ...]


@dataclass(frozen=True, slots=True)
class MeasurementRow:
    """One measurement."""

    at: datetime
    tone: str
    state: str
    value: str
    message: str


@dataclass(frozen=True, slots=True)
class VerificationPart:
    """One verification: colour, state and words, who asked for it again, the labels it carries, and its metrics."""

    tone: str
    state: str
    words: str
    actor: str
    began: datetime
    labels: tuple[str, ...]
    metrics: tuple[MetricRow, ...]


def show_verification(run: AnalysisRun) -> VerificationPart:
    """One verification as the page shows it; what it asked for and got has no secrets in it."""
    tone, state = phase_words(run.phase)
    labels = {**run.labels, **run.annotations}
    return VerificationPart(
        tone=tone,
        state=state,
        words=describe_run(run),
        actor=run.actor,
        began=run.created_at,
        labels=tuple(f"{name}: {value}" for name, value in labels.items()),
        metrics=tuple(_metric(metric, run) for metric in run.metrics),
    )


def _metric(metric: Metric, run: AnalysisRun) -> MetricRow:
    result = run.result(metric)
    tone, state = _MEASURED[result.phase]
    counts = [
        plural(number, word, word)
        for number, word in (
            (result.successful, "successful"),
            (result.failed, "failed"),
            (result.inconclusive, "inconclusive"),
            (result.errors, "error" if result.errors == 1 else "errors"),
        )
        if number
    ]
    conditions = (("success", metric.success), ("failure", metric.failure))
    return MetricRow(
        name=metric.name + (" (dry run)" if metric.name in run.dry_run else ""),
        tone=tone,
        state=state,
        counts=", ".join(counts),
        asks=hide_secrets(_asks(metric.query)),
        conditions=tuple(hide_secrets(f"{name}: {text}") for name, text in conditions if text),
        measurements=tuple(
            MeasurementRow(m.finished_at, *_MEASURED[m.phase], m.value, m.message)
            for m in reversed(result.measurements)
        ),
    )


def _asks(query: Query) -> str:
    match query:
        case WebQuery():
            return f"{query.method} {query.url}"
        case PrometheusQuery():
            return query.query
        case JobQuery():
            return " ".join((query.program, *query.arguments))
        case _:
            assert_never(query)
