"""What is remembered of drift."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from bot.adapters.store.store import DatabaseStore
from bot.domain.drift import DriftRecord, Finding, Question, StageLook, StateLook
from bot.domain.promotion import PromotionId
from bot.domain.terraform import Action, AttributeChange, ResourceChange
from bot.domain.values import Sensitive
from tests.adapters.store.rows import AT

CHANGE = ResourceChange(
    "a.b", "a", Action.UPDATE, (AttributeChange("key", Sensitive("key", None), "\ud800"),)
)
DRIFTED = StageLook(
    AT,
    "calm-otter",
    PromotionId("dev.1.a"),
    (StateLook("s", "env/dev", Finding.DRIFT, changes=(CHANGE,), count=3, digest="d"),),
)


async def test_a_record_is_made_by_its_first_change_and_read_as_it_was(store: DatabaseStore) -> None:
    assert await store.get_drift("shop", "dev") is None

    def seen(record: DriftRecord) -> DriftRecord:
        return replace(record, since=AT, last=DRIFTED, issue=7, asked=(Question("acme/ops", 1, "k"),))

    made = await store.change_drift("shop", "dev", seen)
    assert made.last == DRIFTED
    assert await store.get_drift("shop", "dev") == made
    await store.change_drift("shop", "prod", lambda r: r)
    await store.change_drift("other", "dev", lambda r: r)
    assert [(r.project, r.stage) for r in await store.list_drifts()] == [
        ("other", "dev"),
        ("shop", "dev"),
        ("shop", "prod"),
    ]
    assert [r.stage for r in await store.list_drifts("shop")] == ["dev", "prod"]


async def test_no_change_of_two_at_once_is_lost(store: DatabaseStore, twin: DatabaseStore) -> None:
    def ask(key: str) -> object:
        question = Question("acme/ops", 1, key)
        one = store if key in "ac" else twin
        return one.change_drift("shop", "dev", lambda r: replace(r, asked=(*r.asked, question)))

    await asyncio.gather(*(ask(key) for key in "abcd"))  # type: ignore[call-overload]
    record = await store.get_drift("shop", "dev")
    assert record is not None
    assert sorted(question.key for question in record.asked) == ["a", "b", "c", "d"]


async def test_what_drifted_is_counted_for_monitoring(store: DatabaseStore) -> None:
    work = await store.measure(AT)
    assert (work.drifted, work.oldest_drift_look, work.drift[Finding.DRIFT]) == (0, None, 0)
    clean = replace(DRIFTED, at=AT - timedelta(hours=1), states=())
    for stage, look in (("dev", DRIFTED), ("prod", DRIFTED), ("test", clean), ("new", None)):
        await store.change_drift("shop", stage, lambda r, look=look: replace(r, last=look))  # type: ignore[misc]
    work = await store.measure(AT)
    assert (work.drift[Finding.DRIFT], work.drift[Finding.NONE], work.drifted) == (2, 1, 6)
    assert work.oldest_drift_look == AT - timedelta(hours=1)
