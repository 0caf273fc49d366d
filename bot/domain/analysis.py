"""Analysis runs: when each metric is measured next, and what the measurements so far come to.

The rules are those of Argo Rollouts' analysis controller; what a run means for Freight is Kargo's verification. All
times are aware datetimes, all durations seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from bot.domain.freight import FreightName

ERROR_PAUSE = 10.0
"""Seconds until a measurement that could not be taken is tried again, whatever the interval."""
ERROR_LIMIT = 4
"""How many errors in a row a metric may have unless it says otherwise."""
KEPT = 10
"""Measurements of a metric that are kept unless the template says otherwise; the counters know of all."""
_LONGEST = 500
"""Characters of a value or message that are kept."""


class Phase(StrEnum):
    """Where a measurement, a metric or a run stands; the words are Argo Rollouts' and Kargo's."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCESSFUL = "Successful"
    INCONCLUSIVE = "Inconclusive"
    ERROR = "Error"
    FAILED = "Failed"
    ABORTED = "Aborted"

    @property
    def ended(self) -> bool:
        """Whether nothing changes any more."""
        return self not in (Phase.PENDING, Phase.RUNNING)


_WORST_LAST = (Phase.SUCCESSFUL, Phase.INCONCLUSIVE, Phase.ERROR, Phase.FAILED)
_BAD = (Phase.FAILED, Phase.ERROR, Phase.INCONCLUSIVE)


class Verdict(StrEnum):
    """What a finished run says about the Freight that was measured."""

    VERIFIED = "verified"
    REVOKED = "revoked"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class WebQuery:
    """One request for JSON and where in the answer the value is; texts may hold placeholders of secret arguments."""

    url: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    is_json: bool = False
    """Whether the body is JSON text, so that what is filled in must be escaped."""
    json_path: str = ""
    timeout: float = 10.0
    insecure: bool = False


@dataclass(frozen=True, slots=True)
class PrometheusQuery:
    """One instant query; texts may hold placeholders of secret arguments."""

    address: str
    query: str
    headers: tuple[tuple[str, str], ...] = ()
    timeout: float = 30.0
    insecure: bool = False


@dataclass(frozen=True, slots=True)
class JobQuery:
    """One run of a program, `timeout` in seconds; texts may hold placeholders of secret arguments."""

    program: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    timeout: float = 60.0


Query = WebQuery | PrometheusQuery | JobQuery


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric with its arguments filled in, except secret ones.

    `count` None: not given. `failure_limit` -1 and `consecutive_success_limit` 0 mean that the limit does not apply.
    """

    name: str
    query: Query
    interval: float | None = None
    initial_delay: float = 0.0
    count: int | None = None
    success: str = ""
    failure: str = ""
    failure_limit: int = 0
    inconclusive_limit: int = 0
    consecutive_error_limit: int = ERROR_LIMIT
    consecutive_success_limit: int = 0

    @property
    def wanted(self) -> int | None:
        """How many measurements end it: one if nothing is said, None if it goes on until it is stopped."""
        if self.count:
            return self.count
        return 1 if self.interval is None else None


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement; `value` and `message` are fit to be shown."""

    phase: Phase
    started_at: datetime
    finished_at: datetime
    value: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class MetricResult:
    """What is known of a metric: counters over all its measurements, and the newest of these, oldest first.

    `count` is of those that gave an answer; errors are not in it.
    """

    phase: Phase = Phase.PENDING
    count: int = 0
    successful: int = 0
    failed: int = 0
    inconclusive: int = 0
    errors: int = 0
    consecutive_errors: int = 0
    consecutive_successes: int = 0
    message: str = ""
    measurements: tuple[Measurement, ...] = ()


@dataclass(frozen=True, slots=True)
class SecretArgument:
    """An argument whose value is read from a Secret of the project each time that it is needed."""

    name: str
    secret: str
    key: str


@dataclass(frozen=True, slots=True)
class AnalysisRun:
    """One verification of what a Stage has: frozen metrics, and everything measured so far.

    `promotion` is the one that brought the Freight, `actor` who asked for it again, empty for the first time.
    `settled` tells that what it found has been noted on the Freight; only then it is done with.
    """

    id: str
    project: str
    stage: str
    collection: str
    freight: tuple[FreightName, ...]
    promotion: str
    created_at: datetime
    actor: str = ""
    metrics: tuple[Metric, ...] = ()
    dry_run: frozenset[str] = frozenset()
    kept: Mapping[str, int] = field(default_factory=dict)
    """How many measurements of a metric are kept, where the template says."""
    secrets: tuple[SecretArgument, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    results: Mapping[str, MetricResult] = field(default_factory=dict)
    phase: Phase = Phase.PENDING
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    settled: bool = False

    def result(self, metric: Metric) -> MetricResult:
        """What is known of one metric."""
        return self.results.get(metric.name, MetricResult())


# -- deciding --------------------------------------------------------------------------------------------------


def next_measurement(run: AnalysisRun, metric: Metric) -> datetime | None:
    """When a metric is measured next, None if it is not any more."""
    result = run.result(metric)
    if run.started_at is None or run.phase.ended or result.phase.ended:
        return None
    if not result.measurements:
        return run.started_at + timedelta(seconds=metric.initial_delay)
    last = result.measurements[-1]
    pause = metric.interval
    if last.phase is Phase.ERROR or pause is None:
        pause = ERROR_PAUSE
    return last.finished_at + timedelta(seconds=pause)


def next_time(run: AnalysisRun) -> datetime | None:
    """When the next measurement of any metric is due, None if none is."""
    times = (next_measurement(run, metric) for metric in run.metrics)
    return min((at for at in times if at is not None), default=None)


def find_due(run: AnalysisRun, now: datetime) -> tuple[Metric, ...]:
    """The metrics that are to be measured now."""
    times = [(metric, next_measurement(run, metric)) for metric in run.metrics]
    return tuple(metric for metric, at in times if at is not None and at <= now)


def record(run: AnalysisRun, taken: Sequence[tuple[Metric, Measurement]]) -> AnalysisRun:
    """The run with measurements that were taken together, and with the phases that follow from them.

    What comes after the end is not counted.
    """
    if run.phase.ended or not taken:
        return run
    results = dict(run.results)
    for metric, measurement in taken:
        kept = run.kept.get(metric.name) or KEPT
        results[metric.name] = _counted(results.get(metric.name, MetricResult()), measurement, kept)
    return assess(replace(run, results=results), max(measurement.finished_at for _, measurement in taken))


def _counted(result: MetricResult, taken: Measurement, kept: int) -> MetricResult:
    short = replace(taken, value=_cut(taken.value), message=_cut(taken.message))
    answered = taken.phase is not Phase.ERROR
    return replace(
        result,
        count=result.count + answered,
        successful=result.successful + (taken.phase is Phase.SUCCESSFUL),
        failed=result.failed + (taken.phase is Phase.FAILED),
        inconclusive=result.inconclusive + (taken.phase is Phase.INCONCLUSIVE),
        errors=result.errors + (not answered),
        consecutive_errors=0 if answered else result.consecutive_errors + 1,
        consecutive_successes=result.consecutive_successes + 1 if taken.phase is Phase.SUCCESSFUL else 0,
        message=short.message,
        measurements=(*result.measurements, short)[-kept:],
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def assess_metric(metric: Metric, result: MetricResult, *, stopping: bool = False) -> tuple[Phase, str]:
    """Where a metric stands after its measurements, and why if it is over.

    `stopping` tells that the run ends anyway: whatever has not failed by then counts as successful.
    """
    if result.phase.ended:
        return result.phase, ""
    if not result.measurements:
        return (Phase.SUCCESSFUL, "not measured: the run was over") if stopping else (Phase.PENDING, "")
    broken = _broken_limit(metric, result)
    if broken is not None:
        return broken
    limit = metric.consecutive_success_limit
    if limit > 0 and result.consecutive_successes >= limit:
        return Phase.SUCCESSFUL, f"{result.consecutive_successes} successes in a row"
    if metric.wanted is not None and result.count >= metric.wanted:
        if limit > 0:
            return Phase.INCONCLUSIVE, f"after {result.count} measurements never {limit} successes in a row"
        return Phase.SUCCESSFUL, ""
    return (Phase.SUCCESSFUL, "the run was over") if stopping else (Phase.RUNNING, "")


def _broken_limit(metric: Metric, result: MetricResult) -> tuple[Phase, str] | None:
    """The limit that is broken; of several the one that Argo Rollouts names."""
    errors, limit = result.consecutive_errors, metric.consecutive_error_limit
    if errors > limit:
        return Phase.ERROR, f"consecutive errors ({errors}) > consecutiveErrorLimit ({limit})"
    unclear, limit = result.inconclusive, metric.inconclusive_limit
    if unclear > limit:
        return Phase.INCONCLUSIVE, f"inconclusive ({unclear}) > inconclusiveLimit ({limit})"
    failed, limit = result.failed, metric.failure_limit
    if 0 <= limit < failed:
        return Phase.FAILED, f"failed ({failed}) > failureLimit ({limit})"
    return None


def assess(run: AnalysisRun, now: datetime) -> AnalysisRun:
    """The run with the phases that its measurements lead to. A metric that goes wrong ends the others."""
    if run.phase.ended:
        return run
    run = _assess_metrics(run, stopping=False)
    if any(run.result(m).phase in _BAD and m.name not in run.dry_run for m in run.metrics):
        run = _assess_metrics(run, stopping=True)
    results = [(metric, run.result(metric)) for metric in run.metrics]
    if not all(result.phase.ended for _, result in results):
        return replace(run, phase=Phase.RUNNING)
    counted = [(metric, result) for metric, result in results if metric.name not in run.dry_run]
    worst = max(counted, key=lambda pair: _WORST_LAST.index(pair[1].phase), default=None)
    phase = worst[1].phase if worst is not None else Phase.SUCCESSFUL
    said = "" if worst is None or phase is Phase.SUCCESSFUL else _blame(*worst)
    return replace(run, phase=phase, message=said, finished_at=now)


def _assess_metrics(run: AnalysisRun, *, stopping: bool) -> AnalysisRun:
    results = dict(run.results)
    for metric in run.metrics:
        result = run.result(metric)
        phase, _ = assess_metric(metric, result, stopping=stopping)
        results[metric.name] = replace(result, phase=phase)
    return replace(run, results=results)


def _blame(metric: Metric, result: MetricResult) -> str:
    """Why a metric ended badly, with what its last measurement said."""
    _, why = assess_metric(metric, replace(result, phase=Phase.RUNNING))
    said = f": {result.message}" if result.message else ""
    return f'metric "{metric.name}" assessed {result.phase} due to {why}{said}'


def begin(run: AnalysisRun, now: datetime) -> AnalysisRun:
    """The run as it starts: initial delays count from here."""
    return replace(run, phase=Phase.RUNNING, started_at=now)


def end(run: AnalysisRun, phase: Phase, message: str, now: datetime) -> AnalysisRun:
    """The run ended from outside, unless it was over."""
    return run if run.phase.ended else replace(run, phase=phase, message=message, finished_at=now)


def verdict(run: AnalysisRun) -> Verdict:
    """What a finished run says: success verifies and failure revokes; anything else proves nothing."""
    match run.phase:
        case Phase.SUCCESSFUL:
            return Verdict.VERIFIED
        case Phase.FAILED:
            return Verdict.REVOKED
        case _:
            return Verdict.NOTHING


# -- words -----------------------------------------------------------------------------------------------------


def describe_run(run: AnalysisRun, *, elsewhere: bool = False) -> str:
    """Where a run stands, as people read it: how far it is and when it goes on, or how and why it ended.

    `elsewhere` is for people of another Stage: the Stage is named, and what its metrics said is left out.
    """
    where = f" in {run.stage}" if elsewhere else ""
    if run.phase.ended:
        said = f": {run.message}" if run.message and not elsewhere else ""
        return f"verification {_ENDED[run.phase]}{where}{said}"
    if run.message:
        return f"waits for verification{where}: {run.message}"
    at = next_time(run)
    later = f", next at {at:%Y-%m-%d %H:%M:%S} UTC" if at is not None else ""
    return f"waits for verification{where}: {count_words(run)}{later}"


_ENDED = {
    Phase.SUCCESSFUL: "succeeded",
    Phase.FAILED: "failed",
    Phase.ERROR: "could not be carried out",
    Phase.INCONCLUSIVE: "was inconclusive",
    Phase.ABORTED: "was aborted",
}


def count_words(run: AnalysisRun) -> str:
    """How many measurements there are, of how many if that is known: `2 of 5 measurements`."""
    done = sum(run.result(metric).count for metric in run.metrics)
    wanted = [metric.wanted for metric in run.metrics]
    if not run.metrics or any(count is None for count in wanted):
        return f"{done} measurement{'' if done == 1 else 's'} so far"
    total = sum(count for count in wanted if count is not None)
    return f"{done} of {total} measurement{'' if total == 1 else 's'}"
