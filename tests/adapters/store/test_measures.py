"""What monitoring counts: what waits, and since when."""

from __future__ import annotations

from datetime import timedelta

from bot.adapters.store.store import DatabaseStore
from bot.domain.promotion import State
from bot.ports import Look, Post
from tests.adapters.store.rows import AT, SOON, delivery, promotion

NOW = AT + timedelta(hours=1)


async def test_nothing_waits_in_an_empty_store(store: DatabaseStore) -> None:
    work = await store.measure(NOW)
    assert (work.deliveries, work.looks, work.posts, work.ended) == (0, 0, 0, 0)
    assert (work.oldest_delivery, work.oldest_look) == (None, None)
    assert work.promotions == dict.fromkeys((state for state in State if not state.ended), 0)


async def test_what_is_done_or_not_due_is_not_counted(store: DatabaseStore) -> None:
    for name in ("a", "b", "c"):
        await store.store_delivery(delivery(name))
    await store.finish_delivery("a", [Look("stage", "shop/dev", "x"), Look("stage", "shop/prod", "x")], "")
    for due in await store.list_due_looks(SOON):
        if due.key == "shop/prod":
            await store.finish_look(due)
    await store.request_looks([Look("stage", "shop/later", "a timer")], at=SOON)
    for key in ("one", "two"):
        await store.queue_post(Post(key, "check", "1", 0, {}))
    await store.finish_post((await store.list_due_posts(SOON))[0])
    assert await store.create_promotion(promotion(1, stage="dev", state=State.REVIEW))
    assert await store.create_promotion(promotion(2, stage="test", state=State.REVIEW))
    assert await store.create_promotion(promotion(3, stage="prod", state=State.HELD))
    assert await store.create_promotion(promotion(4, stage="dev", state=State.FAILED))
    work = await store.measure(SOON - timedelta(days=1))
    assert (work.deliveries, work.oldest_delivery) == (2, AT)
    assert work.looks == 1
    assert work.oldest_look is not None
    assert work.posts == 1
    assert (work.promotions[State.REVIEW], work.promotions[State.HELD]) == (2, 1)
    assert work.promotions[State.QUEUED] == 0
    assert work.ended == 1
