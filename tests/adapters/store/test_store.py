"""The store keeps its promises about twins, order and what is read back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from bot.adapters.store.store import DatabaseStore
from bot.domain.freight import FreightStatus
from bot.domain.github import PullNumber
from bot.domain.promotion import PromotionId, State, StepRun, StepStatus, Target
from bot.ports import Event, Look, Post, StageRecord, Store
from tests.adapters.store.rows import AT, SOON, delivery, freight, promotion


def test_the_store_is_a_store(store: DatabaseStore) -> None:
    as_port: Store = store
    assert as_port is store


async def test_a_delivery_is_stored_once_and_worked_once(store: DatabaseStore) -> None:
    answers = await asyncio.gather(*(store.store_delivery(delivery(n)) for n in ("a", "b", "a", "c")))
    assert sorted(answers) == [False, True, True, True]
    assert [d.id for d in await store.list_pending_deliveries()] == ["a", "b", "c"]
    await store.finish_delivery("a", [Look("stage", "shop/dev", "x")], "")
    assert await store.store_delivery(delivery("a")) is False
    assert [d.id for d in await store.list_pending_deliveries()] == ["b", "c"]
    assert [(look.kind, look.key) for look in await store.list_due_looks(SOON)] == [("stage", "shop/dev")]


async def test_a_look_asked_for_during_its_work_is_due_again(store: DatabaseStore) -> None:
    await store.request_looks([Look("stage", "shop/dev", "x")])
    (first,) = await store.list_due_looks(SOON)
    await store.request_looks([Look("stage", "shop/dev", "y")])
    await store.finish_look(first)
    (second,) = await store.list_due_looks(SOON)
    assert second.number == first.number + 1
    await store.finish_look(second)
    assert not await store.list_due_looks(SOON)


async def test_of_two_timers_the_earlier_wins_and_it_rings_once(store: DatabaseStore) -> None:
    look = Look("stage", "shop/dev", "x")
    await store.request_looks([look], at=AT + timedelta(hours=2))
    await store.request_looks([look], at=AT + timedelta(hours=1))
    await store.request_looks([look], at=AT + timedelta(hours=3))
    assert not await store.list_due_looks(AT)
    (due,) = await store.list_due_looks(AT + timedelta(hours=1))
    await store.finish_look(due)
    assert not await store.list_due_looks(AT + timedelta(hours=9))


async def test_a_stage_has_one_unfinished_promotion(store: DatabaseStore) -> None:
    first = promotion(1)
    assert await store.create_promotion(first)
    assert not await store.create_promotion(promotion(2))
    ended = replace(first, state=State.ABORTED)
    assert await store.save_promotion(ended, expected=first)
    assert await store.create_promotion(promotion(2))
    assert not await store.save_promotion(first, expected=ended)
    assert [p.id for p in await store.list_promotions("shop", "dev")] == ["dev.2.aaaaaaa", "dev.1.aaaaaaa"]


async def test_a_row_that_changed_meanwhile_is_not_overwritten(store: DatabaseStore) -> None:
    first = promotion(1)
    await store.create_promotion(first)
    changed = replace(first, cancel_requested=True)
    assert await store.save_promotion(changed, expected=first)
    assert not await store.save_promotion(replace(first, reason="late"), expected=first)
    assert await store.get_promotion(first.id) == changed


async def test_what_is_told_and_looked_at_comes_with_the_row_or_not_at_all(store: DatabaseStore) -> None:
    first = promotion(1)
    await store.create_promotion(first)
    ended = replace(first, state=State.SUCCEEDED)
    told = Event(AT, "shop", "dev", first.id, "succeeded", "every step is done")
    looks = [Look("stage", "shop/prod", "Freight moved on"), Look("stage", "shop/dev", "it ended")]
    stale = replace(first, reason="another")
    assert not await store.save_promotion(ended, expected=stale, event=told, looks=looks)
    assert not await store.list_events()
    assert not await store.list_due_looks(SOON)
    assert await store.save_promotion(ended, expected=first, event=told, looks=looks)
    assert [event.message for event in await store.list_events()] == ["every step is done"]
    assert sorted(due.key for due in await store.list_due_looks(SOON)) == ["shop/dev", "shop/prod"]


async def test_a_promotion_is_found_by_its_pull_request_however_the_address_is_written(
    store: DatabaseStore,
) -> None:
    made = promotion(1, pull=PullNumber(7), target=Target("https://git.example/Acme/Ops.git", "main"))
    await store.create_promotion(made)
    assert await store.find_promotion_by_pull("https://git.example/acme/ops", 7) == made


async def test_freight_gets_a_free_alias_and_is_known_once(store: DatabaseStore) -> None:
    first = await store.add_freight(freight())
    assert first is not None
    assert first.alias
    assert await store.add_freight(freight()) is None
    assert await store.get_freight("shop", first.alias) == (first, FreightStatus())
    assert await store.get_freight("shop", "a" * 9) == (first, FreightStatus())
    assert await store.get_freight("shop", "a" * 6) is None


async def test_the_newest_attempt_of_a_step_wins(store: DatabaseStore) -> None:
    name = PromotionId("dev.1.a")
    await store.begin_step(name, StepRun("tf-apply", "tf-apply", 1, StepStatus.RUNNING, begun_at=AT))
    await store.finish_step(
        name, StepRun("tf-apply", "tf-apply", 1, StepStatus.FAILED, begun_at=AT, finished_at=AT)
    )
    await store.begin_step(name, StepRun("tf-apply", "tf-apply", 2, StepStatus.RUNNING, begun_at=AT))
    runs = await store.list_steps(name)
    assert (runs["tf-apply"].attempt, runs["tf-apply"].status) == (2, StepStatus.RUNNING)


async def test_a_post_is_sent_once_unless_it_changes(store: DatabaseStore) -> None:
    post = Post("check/a", "check", "acme/ops", 0, {"n": 1})
    assert await store.queue_post(post)
    assert not await store.queue_post(post)
    (due,) = await store.list_due_posts(SOON)
    assert await store.queue_post(replace(post, payload={"n": 2}))
    await store.finish_post(due)
    (newer,) = await store.list_due_posts(SOON)
    assert newer.post.payload == {"n": 2}
    await store.postpone_post(newer, SOON + timedelta(hours=1), "busy")
    assert not await store.list_due_posts(SOON)


async def test_a_stage_without_a_row_has_nothing(store: DatabaseStore) -> None:
    assert await store.get_stage("shop", "dev") == StageRecord("shop", "dev")
    await store.save_stage(StageRecord("shop", "dev", frozen="incident"))
    assert (await store.get_stage("shop", "dev")).frozen == "incident"
