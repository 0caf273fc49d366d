"""When an Application counts as released: every stale or partial word that Argo CD may show has a row here."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.argocd import Application, ApplicationSource, Operation
from bot.domain.argocd_health import Done, GoneWrong, Memory, NotYet, Verdict, Wanted, judge

OPS = "https://github.com/acme/ops.git"
CHARTS = "https://charts.example/stable"
OURS, LATER, OLD = "a" * 40, "b" * 40, "c" * 40
ASKED = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
NOW = ASKED + timedelta(minutes=2)
WANTED = Wanted(ASKED, OPS, frozenset({OURS, LATER}), settle=20.0, grace=60.0)
SETTLED = Memory(good_since=NOW - timedelta(seconds=20))


def at(seconds: float) -> datetime:
    return ASKED + timedelta(seconds=seconds)


def operation(**changes: object) -> Operation:
    base = Operation("Succeeded", "", at(5), at(20), (OURS,))
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def application(**changes: object) -> Application:
    base = Application(
        name="otel",
        namespace="argocd",
        project="default",
        annotations={},
        sources=(ApplicationSource(OPS, "env/dev", revision=OURS),),
        sync_status="Synced",
        health="Healthy",
        reconciled_at=at(30),
        operation=operation(),
    )
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


def source(revision: str, url: str = OPS, chart: str = "") -> tuple[ApplicationSource, ...]:
    return (ApplicationSource(url, "env/dev", chart, revision=revision),)


MULTI = (
    ApplicationSource(CHARTS, chart="otel", revision="1.2.3"),
    ApplicationSource("https://github.com/acme/ops", "env/dev", revision=OURS),
)

DONE = [
    pytest.param({}, id="our revision synced, healthy and settled"),
    pytest.param({"sources": source(LATER)}, id="a descendant that leaves our paths as they are"),
    pytest.param({"operation": None}, id="no operation was needed since nothing changed for it"),
    pytest.param(
        {"operation": operation(revisions=(OLD,), started_at=at(-90), finished_at=at(-60))},
        id="the last operation was for an older revision with the same manifests",
    ),
    pytest.param(
        {"operation": operation(phase="Failed", revisions=(OLD,), finished_at=at(-60))},
        id="an older revision's failure is history",
    ),
    pytest.param(
        {"sources": source(OURS, "https://github.com/acme/ops")}, id="the same repository, spelt short"
    ),
    pytest.param(
        {"sources": MULTI, "operation": operation(revisions=("1.2.3", OURS))}, id="our source is the second"
    ),
    pytest.param({"conditions": (("OrphanedResourceWarning", "2 orphans"),)}, id="a warning is no failure"),
    pytest.param(
        {"reconciled_at": at(0), "operation": None}, id="compared in the very second in which we asked"
    ),
]

NOT_YET = [
    pytest.param({"operation_pending": True}, "waits to begin", id="an operation is queued"),
    pytest.param(
        {"operation": operation(phase="Running", message="syncing wave 2", finished_at=None)},
        "is running: syncing wave 2",
        id="an operation runs",
    ),
    pytest.param(
        {"operation": operation(phase="Terminating")}, "is terminating", id="an operation is being stopped"
    ),
    pytest.param({"reconciled_at": None}, "has not compared", id="never compared"),
    pytest.param({"reconciled_at": at(-1)}, "has not compared", id="compared before we asked"),
    pytest.param(
        {"reconciled_at": at(-1), "conditions": (("ComparisonError", "x"),)},
        "has not compared",
        id="an error from before we asked",
    ),
    pytest.param(
        {"sources": source(OLD)},
        "still sees revision cccccccccccc",
        id="Synced and Healthy at the old revision",
    ),
    pytest.param({"sources": source("")}, "revision none", id="no revision yet"),
    pytest.param(
        {"sources": (*source(OURS), ApplicationSource(OPS, "env/other", revision=OLD))},
        "still sees",
        id="one of two sources from our repository is behind",
    ),
    pytest.param({"sync_status": "OutOfSync"}, "is OutOfSync", id="drifted right after the operation"),
    pytest.param(
        {"sync_status": "OutOfSync", "operation": None},
        "sync window may be closed",
        id="nobody started an operation",
    ),
    pytest.param({"sync_status": "Unknown"}, "is Unknown", id="the comparison failed for now"),
    pytest.param(
        {"reconciled_at": at(10)},
        "from before the sync operation ended",
        id="Healthy from before the operation ended",
    ),
    pytest.param(
        {"reconciled_at": at(10), "health": "Degraded"},
        "from before the sync operation ended",
        id="Degraded from before the operation ended",
    ),
    pytest.param(
        {"reconciled_at": at(10), "conditions": (("SyncError", "x"),)},
        "from before the sync operation ended",
        id="a sync error from before the operation ended",
    ),
    pytest.param(
        {"health": "Progressing", "unhealthy": ("Deployment otel is Progressing (1 of 3 updated)",)},
        "its health is Progressing: Deployment otel",
        id="a rollout goes on",
    ),
    pytest.param({"health": "Missing"}, "Missing", id="resources are missing right after the sync"),
    pytest.param({"health": "Unknown"}, "Unknown", id="health is not known"),
    pytest.param({"health": ""}, "Unknown", id="health is empty"),
    pytest.param({"health": "Degraded"}, "Degraded", id="Degraded for the first time"),
]

GONE_WRONG = [
    pytest.param(
        {"conditions": (("ComparisonError", "chart is broken"),)},
        "ComparisonError: chart is broken",
        id="manifests do not render",
    ),
    pytest.param(
        {"conditions": (("InvalidSpecError", "no such project"),)},
        "InvalidSpecError",
        id="its spec is invalid",
    ),
    pytest.param({"conditions": (("SyncError", "tried 5 times"),)}, "SyncError", id="auto-sync gave up"),
    pytest.param(
        {"operation": operation(phase="Failed", message="hook failed")},
        "failed: hook failed",
        id="the operation failed",
    ),
    pytest.param(
        {"operation": operation(phase="Error", message="no access")},
        "error: no access",
        id="the operation broke",
    ),
    pytest.param(
        {"operation": operation(phase="Failed", revisions=()), "sync_status": "OutOfSync"},
        "failed",
        id="the operation failed before it had a revision",
    ),
    pytest.param(
        {"operation": operation(phase="Failed"), "reconciled_at": at(10)},
        "failed",
        id="a failure needs no newer comparison",
    ),
    pytest.param(
        {"sources": source(OURS, "https://github.com/acme/other")},
        "none of its sources",
        id="it is about another repository",
    ),
    pytest.param(
        {"sources": source(OURS, OPS, chart="otel")}, "none of its sources", id="a chart is no git source"
    ),
    pytest.param(
        {"sources": MULTI, "operation": operation(phase="Failed", revisions=("1.2.3", OURS))},
        "failed",
        id="a failed operation of several sources",
    ),
]


@pytest.mark.parametrize("changes", DONE)
def test_it_is_released(changes: dict[str, object]) -> None:
    assert judge(application(**changes), WANTED, now=NOW, memory=SETTLED) == Done()


@pytest.mark.parametrize(("changes", "reason"), NOT_YET)
def test_it_is_waited_for(changes: dict[str, object], reason: str) -> None:
    verdict = judge(application(**changes), WANTED, now=NOW, memory=SETTLED)
    assert isinstance(verdict, NotYet)
    assert reason in verdict.reason
    # Whatever interrupts the good state starts the settle time anew.
    assert verdict.good_since is None


@pytest.mark.parametrize(("changes", "reason"), GONE_WRONG)
def test_waiting_cannot_help(changes: dict[str, object], reason: str) -> None:
    verdict = judge(application(**changes), WANTED, now=NOW, memory=SETTLED)
    assert isinstance(verdict, GoneWrong)
    assert reason in verdict.reason


def test_the_settle_time_begins_with_the_first_good_look() -> None:
    first = judge(application(), WANTED, now=NOW)
    assert first == NotYet("it is healthy; it must stay so for 20 s more", good_since=NOW)
    later = judge(application(), WANTED, now=NOW + timedelta(seconds=5), memory=Memory(good_since=NOW))
    assert later == NotYet("it is healthy; it must stay so for 15 s more", good_since=NOW)


def test_without_a_settle_time_the_first_good_look_is_enough() -> None:
    assert judge(application(), dataclasses.replace(WANTED, settle=0.0), now=NOW) == Done()


def test_degraded_is_a_failure_only_after_the_grace() -> None:
    degraded = application(health="Degraded", unhealthy=("Pod otel is Degraded",))
    first = judge(degraded, WANTED, now=NOW)
    assert isinstance(first, NotYet)
    assert first.degraded_since == NOW
    memory = Memory(degraded_since=NOW)
    assert isinstance(judge(degraded, WANTED, now=NOW + timedelta(seconds=59), memory=memory), NotYet)
    last = judge(degraded, WANTED, now=NOW + timedelta(seconds=60), memory=memory)
    assert last == GoneWrong("its health is Degraded: Pod otel is Degraded")


def test_a_recovery_forgets_that_it_was_degraded() -> None:
    verdict = judge(application(), WANTED, now=NOW, memory=Memory(degraded_since=NOW - timedelta(hours=1)))
    assert isinstance(verdict, NotYet)
    assert verdict.degraded_since is None


def test_a_paused_rollout_waits_for_a_person() -> None:
    verdict = judge(application(health="Suspended"), WANTED, now=NOW)
    assert isinstance(verdict, NotYet)
    assert verdict.paused


def test_many_unhealthy_resources_are_counted_not_listed() -> None:
    names = tuple(f"Pod p{number} is Progressing" for number in range(9))
    verdict: Verdict = judge(application(health="Progressing", unhealthy=names), WANTED, now=NOW)
    assert isinstance(verdict, NotYet)
    assert verdict.reason.endswith("Pod p4 is Progressing and 4 more")


def test_without_revisions_only_sync_and_health_count() -> None:
    wanted = Wanted(ASKED, settle=0.0)
    assert judge(application(sources=source(OLD, CHARTS)), wanted, now=NOW) == Done()
