"""Whether an Application runs what we released and is well: a pure judgement on one reading of it.

Argo CD compares, syncs and watches health in different loops, so each word in its status may be from before our
commit. Nothing counts here that was not observed after what it depends on.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.domain.argocd import Application, Operation
from bot.domain.urls import normalize_git_url

FAILING_CONDITIONS = frozenset({"ComparisonError", "InvalidSpecError", "SyncError"})
"""Types of conditions after which Argo CD does nothing more until somebody changes something."""

_RUNNING = frozenset({"Running", "Terminating"})
_FAILED = frozenset({"Failed", "Error"})
_LISTED = 5


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an Application must show before it counts as released.

    `acceptable_revisions` holds our commit and its descendants that leave the Application's paths as they are; empty
    means that the revision does not matter. `repo_url` names which sources that is about. `asked_at` is when we
    asked for a refresh, by Argo CD's clock as far as it is known: nothing that was compared before counts.
    `settle` and `grace` are seconds: how long all must stay good, and how long Degraded is watched before it is a
    failure.
    """

    asked_at: datetime
    repo_url: str = ""
    acceptable_revisions: frozenset[str] = frozenset()
    settle: float = 20.0
    grace: float = 60.0


@dataclass(frozen=True, slots=True)
class Done:
    """It runs ours, is synced and has been healthy for the settle time."""


@dataclass(frozen=True, slots=True)
class NotYet:
    """Look again; `reason` says what is waited for.

    `good_since` and `degraded_since` are handed back at the next look. `paused` tells that a person has to act in
    the cluster (a paused rollout).
    """

    reason: str
    good_since: datetime | None = None
    degraded_since: datetime | None = None
    paused: bool = False


@dataclass(frozen=True, slots=True)
class GoneWrong:
    """It will not become good by waiting."""

    reason: str


Verdict = Done | NotYet | GoneWrong


@dataclass(frozen=True, slots=True)
class Memory:
    """What the last look found, as its `NotYet` said."""

    good_since: datetime | None = None
    degraded_since: datetime | None = None


def judge(application: Application, wanted: Wanted, *, now: datetime, memory: Memory = Memory()) -> Verdict:
    """What one reading of an Application means; the caller hands `memory` from one look to the next."""
    verdict = (
        _judge_operation_in_flight(application)
        or _judge_comparison(application, wanted)
        or _judge_operation(application, wanted)
        or _judge_freshness(application)
        or _judge_conditions(application)
        or _judge_revisions(application, wanted)
        or _judge_sync(application)
        or _judge_health(application, wanted, now, memory)
    )
    if verdict is not None:
        return verdict
    good_since = memory.good_since or now
    left = wanted.settle - (now - good_since).total_seconds()
    if left > 0:
        return NotYet(f"it is healthy; it must stay so for {left:.0f} s more", good_since=good_since)
    return Done()


def _judge_operation_in_flight(application: Application) -> Verdict | None:
    if application.operation_pending:
        return NotYet("a sync operation waits to begin")
    if application.operation is not None and application.operation.phase in _RUNNING:
        return NotYet(
            f"a sync operation is {application.operation.phase.lower()}{_message(application.operation)}"
        )
    return None


def _judge_comparison(application: Application, wanted: Wanted) -> Verdict | None:
    # Argo CD writes whole seconds, so a comparison in the second in which we asked may be from before.
    asked_at = wanted.asked_at.replace(microsecond=0)
    if application.reconciled_at is None or application.reconciled_at < asked_at:
        return NotYet("Argo CD has not compared it since we asked")
    return None


def _judge_freshness(application: Application) -> Verdict | None:
    """Revision, sync and health are compared by another loop than the one that ends an operation."""
    finished = application.operation.finished_at if application.operation is not None else None
    if (
        finished is not None
        and application.reconciled_at is not None
        and application.reconciled_at < finished
    ):
        return NotYet("its revision and health are from before the sync operation ended")
    return None


def _judge_conditions(application: Application) -> Verdict | None:
    for kind, message in application.conditions:
        if kind in FAILING_CONDITIONS:
            return GoneWrong(f"{kind}: {message}")
    return None


def _judge_revisions(application: Application, wanted: Wanted) -> Verdict | None:
    if not wanted.acceptable_revisions:
        return None
    ours = _our_sources(application, wanted)
    if not ours:
        return GoneWrong(f"none of its sources is {wanted.repo_url}")
    for index in ours:
        revision = application.sources[index].revision
        if revision not in wanted.acceptable_revisions:
            return NotYet(f"Argo CD still sees revision {revision[:12] or 'none'}")
    return None


def _judge_operation(application: Application, wanted: Wanted) -> Verdict | None:
    """The last operation: its failure counts if it was about our revision, else it is history."""
    operation = application.operation
    if operation is None or operation.phase not in _FAILED:
        return None
    if _is_about_ours(application, operation, wanted):
        return GoneWrong(f"its sync operation {operation.phase.lower()}{_message(operation)}")
    return None


def _judge_sync(application: Application) -> Verdict | None:
    if application.sync_status == "Synced":
        return None
    if application.operation is None and application.sync_status == "OutOfSync":
        return NotYet("it is OutOfSync and no sync operation was started (a sync window may be closed)")
    return NotYet(f"it is {application.sync_status or 'Unknown'}")


def _judge_health(application: Application, wanted: Wanted, now: datetime, memory: Memory) -> Verdict | None:
    what = _describe_health(application)
    match application.health:
        case "Healthy":
            return None
        case "Degraded":
            since = memory.degraded_since or now
            if now - since >= timedelta(seconds=wanted.grace):
                return GoneWrong(what)
            return NotYet(what, degraded_since=since)
        case "Suspended":
            return NotYet(f"{what}; it is paused until somebody resumes it", paused=True)
        case _:
            return NotYet(what)


def _our_sources(application: Application, wanted: Wanted) -> list[int]:
    url = normalize_git_url(wanted.repo_url)
    return [
        index
        for index, source in enumerate(application.sources)
        if not wanted.repo_url or (not source.chart and normalize_git_url(source.repo_url) == url)
    ]


def _is_about_ours(application: Application, operation: Operation, wanted: Wanted) -> bool:
    """Whether an operation synced a revision that is acceptable; one that names none was about what is there now."""
    if not wanted.acceptable_revisions or not any(operation.revisions):
        return operation.finished_at is None or operation.finished_at >= wanted.asked_at.replace(
            microsecond=0
        )
    return any(
        index < len(operation.revisions) and operation.revisions[index] in wanted.acceptable_revisions
        for index in _our_sources(application, wanted)
    )


def _describe_health(application: Application) -> str:
    listed = ", ".join(application.unhealthy[:_LISTED])
    more = len(application.unhealthy) - _LISTED
    parts = [application.health_message, f"{listed} and {more} more" if more > 0 else listed]
    rest = "; ".join(part for part in parts if part)
    health = application.health or "Unknown"
    return f"its health is {health}: {rest}" if rest else f"its health is {health}"


def _message(operation: Operation) -> str:
    return f": {operation.message}" if operation.message else ""
