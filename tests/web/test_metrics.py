"""The page for monitoring: Prometheus can read it, and it tells nothing that is nobody's business."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import httpx
from starlette.applications import Starlette
from starlette.routing import Route

from bot.domain.drift import Finding
from bot.domain.promotion import State
from bot.ports import TransientError
from bot.ports.measuring import Workload
from bot.web.metrics import Metrics, Readings

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
WORK = Workload(
    deliveries=2,
    oldest_delivery=NOW - timedelta(seconds=1.5),
    looks=1,
    oldest_look=NOW + timedelta(seconds=3),
    posts=4,
    promotions={State.QUEUED: 0, State.REVIEW: 3},
    ended=7,
    drift={Finding.DRIFT: 2, Finding.UNSEEN: 1},
    drifted=5,
    oldest_drift_look=NOW - timedelta(days=1),
)
READINGS = Readings({"app": 4999, "12": 17}, 1, {"plan": 5, "apply": 2}, NOW, leads=True)
LINE = re.compile(
    r"# (?:HELP lockstep_[a-z_]+ \S.*|TYPE lockstep_[a-z_]+ (?:gauge|counter))"
    r'|lockstep_[a-z_]+(?:\{[a-z]+="(?:[^"\\\n]|\\["\\n])*"\})? -?\d+(?:\.\d+)?'
)


class FixedClock:
    def now(self) -> datetime:
        return NOW


class Kept:
    """A store that answers what it was given, or does not answer."""

    def __init__(self, work: Workload | None) -> None:
        self.work = work

    async def measure(self, now: datetime) -> Workload:
        assert now == NOW
        if self.work is None:
            raise TransientError("the database did not answer: gone")
        return self.work


async def ask(work: Workload | None, readings: Readings = READINGS) -> httpx.Response:
    app = Starlette(routes=[Route("/metrics", Metrics(Kept(work), FixedClock(), lambda: readings).page)])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://bot") as client:
        return await client.get("/metrics")


def values(text: str) -> dict[str, float]:
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if not line.startswith("#")
    }


async def test_every_line_is_one_that_prometheus_reads() -> None:
    answer = await ask(WORK)
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = answer.text.splitlines()
    assert [line for line in lines if LINE.fullmatch(line) is None] == []
    named = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(named) == len(set(named))
    assert {line.split()[2] for line in lines if line.startswith("# HELP")} == set(named)


async def test_the_numbers() -> None:
    found = values((await ask(WORK)).text)
    assert found["lockstep_deliveries_pending"] == 2
    assert found["lockstep_deliveries_oldest_seconds"] == 1.5
    # A replica's clock that is behind the one that asked for the look makes no negative lag.
    assert found["lockstep_looks_lag_seconds"] == 0
    assert found["lockstep_outbox_posts"] == 4
    assert found['lockstep_promotions{state="Review"}'] == 3
    assert found['lockstep_promotions{state="Queued"}'] == 0
    assert found["lockstep_promotions_ended"] == 7
    assert found['lockstep_drift_stages{finding="drift"}'] == 2
    assert found['lockstep_drift_stages{finding="could not look"}'] == 1
    assert found["lockstep_drifted_resources"] == 5
    assert found["lockstep_drift_oldest_look_timestamp_seconds"] == (NOW - timedelta(days=1)).timestamp()
    assert found['lockstep_github_requests_left{installation="12"}'] == 17
    assert found['lockstep_terraform_runs_total{operation="apply"}'] == 2
    assert found["lockstep_terraform_running"] == 1
    assert found["lockstep_last_sweep_timestamp_seconds"] == NOW.timestamp()


async def test_before_the_first_sweep_there_is_no_time_of_it() -> None:
    assert "last_sweep" not in (await ask(WORK, Readings())).text


async def test_without_the_database_there_is_no_half_truth() -> None:
    answer = await ask(None)
    assert (answer.status_code, "did not answer" in answer.text) == (503, True)
