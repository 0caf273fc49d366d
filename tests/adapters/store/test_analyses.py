"""Verifications in the store."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from bot.adapters.store.store import DatabaseStore
from bot.domain.analysis import AnalysisRun, Metric, Phase, PrometheusQuery, WebQuery, begin
from tests.adapters.store.rows import AT, freight


def analysis(number: int = 1, **changes: object) -> AnalysisRun:
    made = AnalysisRun(
        id=f"dev.{number:04}.aaaaaaa",
        project="shop",
        stage="dev",
        collection="c" * 40,
        freight=(freight().name,),
        promotion="dev.1.aaaaaaa",
        created_at=AT + timedelta(seconds=number),
        metrics=(
            Metric("a", WebQuery("https://x.example")),
            Metric("b", PrometheusQuery("https://p.example", "up")),
        ),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


async def test_a_run_is_kept_once_and_read_as_it_was(store: DatabaseStore) -> None:
    run = analysis(message="\0 odd \ud800 text")
    assert await store.add_run(run)
    assert not await store.add_run(replace(run, actor="twin"))
    assert await store.get_run(run.id) == run
    assert await store.get_run("other") is None


async def test_of_two_that_change_a_run_one_wins(store: DatabaseStore, twin: DatabaseStore) -> None:
    run = analysis()
    await store.add_run(run)
    changes = [replace(begin(run, AT), actor=name) for name in ("one", "two")]
    answers = await asyncio.gather(
        store.save_run(changes[0], expected=run), twin.save_run(changes[1], expected=run)
    )
    assert sorted(answers) == [False, True]
    assert await store.get_run(run.id) == changes[answers.index(True)]


async def test_the_newest_of_each_stage_and_what_is_open(store: DatabaseStore) -> None:
    first, second = analysis(1, settled=True, phase=Phase.FAILED), analysis(2)
    elsewhere = replace(analysis(3), stage="prod")
    for run in (second, first, elsewhere):
        await store.add_run(run)
    assert list(await store.list_runs("shop", "dev")) == [second, first]
    assert {run.id for run in await store.list_newest_runs("shop")} == {second.id, elsewhere.id}
    assert [run.id for run in await store.list_open_runs()] == [elsewhere.id, second.id]
    assert await store.list_newest_runs("other") == []


async def test_old_runs_go_unless_they_are_open(store: DatabaseStore) -> None:
    await store.add_run(analysis(0))
    for number in range(1, 25):
        await store.add_run(analysis(number, settled=True))
    kept = await store.list_runs("shop", "dev", limit=100)
    assert len(kept) == 21
    assert kept[-1] == analysis(0)
