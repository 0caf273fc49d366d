"""Two replicas do the same thing at the same time: one of them is first, and both are told the truth."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TypeVar

from bot.adapters.store.store import DatabaseStore
from bot.domain.availability import enter_stage
from bot.domain.promotion import State
from bot.ports import DueLook, Event, Look, Post, StageRecord
from tests.adapters.store.rows import AT, SOON, delivery, freight, promotion

T = TypeVar("T")

ROUNDS = 15
"""How often a race is run; each time on rows of its own."""
RUNNERS = 3
"""How many at once of each replica."""


async def race(
    store: DatabaseStore, twin: DatabaseStore, work: Callable[[DatabaseStore, int], Awaitable[T]]
) -> list[T]:
    """What all runners of both replicas are answered; each gets its replica and a number of its own."""
    runs = [
        work(replica, number)
        for number, replica in enumerate([s for _ in range(RUNNERS) for s in (store, twin)])
    ]
    return list(await asyncio.gather(*runs))


async def test_of_twins_one_creates_the_promotion(store: DatabaseStore, twin: DatabaseStore) -> None:
    for number in range(ROUNDS):
        made = [promotion(10 * number + n, stage=f"s{number}") for n in range(2 * RUNNERS)]
        answers = await race(store, twin, lambda s, n: s.create_promotion(made[n]))  # noqa: B023
        assert sorted(answers) == [False] * (2 * RUNNERS - 1) + [True]
        winner = made[answers.index(True)]
        assert await twin.find_current_promotion("shop", f"s{number}") == winner


async def test_of_twins_one_saves_the_promotion(store: DatabaseStore, twin: DatabaseStore) -> None:
    now = promotion(1)
    await store.create_promotion(now)
    for number in range(ROUNDS):
        before, wanted = now, [replace(now, reason=f"{number}/{n}") for n in range(2 * RUNNERS)]
        answers = await race(store, twin, lambda s, n: s.save_promotion(wanted[n], expected=before))  # noqa: B023
        assert sorted(answers) == [False] * (2 * RUNNERS - 1) + [True]
        now = wanted[answers.index(True)]
        assert await store.get_promotion(now.id) == now


async def test_an_end_and_a_new_begin_never_leave_two_unfinished(
    store: DatabaseStore, twin: DatabaseStore
) -> None:
    current = promotion(0)
    await store.create_promotion(current)
    for number in range(1, ROUNDS):
        ended, following = replace(current, state=State.ABORTED), promotion(number)
        saved, created = await asyncio.gather(
            store.save_promotion(ended, expected=current),
            twin.create_promotion(following),
        )
        assert saved
        if not created:
            assert await twin.create_promotion(following)
        assert [p.id for p in await store.list_unfinished_promotions()] == [following.id]
        current = following


async def test_the_same_freight_is_added_once(store: DatabaseStore, twin: DatabaseStore) -> None:
    for number in range(ROUNDS):
        new = freight(f"{number:040x}")
        answers = await race(store, twin, lambda s, n: s.add_freight(new))  # noqa: B023
        (added,) = [answer for answer in answers if answer is not None]
        assert await twin.get_freight("shop", new.name) is not None
        assert added.alias


async def test_different_freight_gets_different_aliases(store: DatabaseStore, twin: DatabaseStore) -> None:
    answers = await race(store, twin, lambda s, n: s.add_freight(freight(f"{n:040x}")))
    aliases = {answer.alias for answer in answers if answer is not None}
    assert len(aliases) == len(answers) == len(await store.list_freight("shop"))


async def test_what_one_keeps_of_freight_is_never_older_than_what_another_wrote(
    store: DatabaseStore, twin: DatabaseStore
) -> None:
    assert await store.list_freight("shop") == []
    added = await twin.add_freight(freight("a" * 40))
    assert added is not None
    first = await store.list_freight("shop")
    assert [known.name for known, _ in first] == [added.name]
    assert await store.list_freight("shop") is first
    await twin.add_freight(replace(freight("b" * 40), project="other"))
    assert await store.list_freight("shop") is first
    await twin.change_freight_status("shop", added.name, lambda status: enter_stage(status, "dev", AT))
    ((_, status),) = await store.list_freight("shop")
    assert set(status.currently_in) == {"dev"}
    await twin.rename_freight("shop", added.name, "renamed")
    ((known, status),) = await store.list_freight("shop")
    assert (known.alias, set(status.currently_in)) == ("renamed", {"dev"})


async def test_a_delivery_that_arrives_at_both_is_new_at_one(
    store: DatabaseStore, twin: DatabaseStore
) -> None:
    for number in range(ROUNDS):
        # Batches with the same deliveries in different orders.
        names = [f"{number}/{n}" for n in range(4)]

        async def post(to: DatabaseStore, n: int, names: list[str] = names) -> list[bool]:
            turned = names if n % 2 else names[::-1]
            return list(await asyncio.gather(*(to.store_delivery(delivery(name)) for name in turned)))

        answers = await race(store, twin, post)
        assert sum(map(sum, answers)) == len(names)
    assert len(await twin.list_pending_deliveries()) == 4 * ROUNDS


async def test_many_deliveries_at_once_are_all_stored(store: DatabaseStore) -> None:
    answers = await asyncio.gather(*(store.store_delivery(delivery(f"{n}")) for n in range(1200)))
    assert all(answers)
    assert len(await store.list_pending_deliveries(5000)) == 1200


async def test_no_version_of_a_post_is_lost(store: DatabaseStore, twin: DatabaseStore) -> None:
    for number in range(ROUNDS):

        async def change(to: DatabaseStore, n: int, number: int = number) -> bool:
            return await to.queue_post(Post(f"check/{number}", "check", "acme/ops", 0, {"n": n}))

        assert await race(store, twin, change) == [True] * (2 * RUNNERS)
        due = {post.post.key: post for post in await twin.list_due_posts(SOON)}[f"check/{number}"]
        # Every version has a number of its own, so that who has sent one has not sent the next.
        assert due.number == 2 * RUNNERS
        await store.finish_post(due)


async def test_an_equal_post_is_queued_once(store: DatabaseStore, twin: DatabaseStore) -> None:
    for number in range(ROUNDS):
        post = Post(f"check/{number}", "check", "acme/ops", 0, {"n": 1})
        answers = await race(store, twin, lambda s, n: s.queue_post(post))  # noqa: B023
        assert sorted(answers) == [False] * (2 * RUNNERS - 1) + [True]


async def test_every_wish_for_a_look_counts(store: DatabaseStore, twin: DatabaseStore) -> None:
    keys = [f"shop/{n}" for n in range(5)]
    for _ in range(ROUNDS):

        async def wish(to: DatabaseStore, n: int) -> None:
            turned = keys if n % 2 else keys[::-1]
            await to.request_looks([Look("stage", key, "x") for key in turned])

        await race(store, twin, wish)
    due = await store.list_due_looks(SOON)
    assert {(look.key, look.number) for look in due} == {(key, ROUNDS * 2 * RUNNERS) for key in keys}


async def test_of_timers_set_at_once_the_earliest_wins(store: DatabaseStore, twin: DatabaseStore) -> None:
    for number in range(ROUNDS):
        look = Look("stage", f"shop/{number}", "x")

        async def wind(to: DatabaseStore, n: int, look: Look = look) -> None:
            await to.request_looks([look], at=AT + timedelta(hours=1 + n))

        await race(store, twin, wind)
    assert len(await store.list_due_looks(AT + timedelta(hours=1))) == ROUNDS


async def test_a_timer_rings_once_for_both(store: DatabaseStore, twin: DatabaseStore) -> None:
    for number in range(ROUNDS):
        await store.request_looks([Look("stage", f"shop/{number}", "x")], at=AT)
        answers = await race(store, twin, lambda s, n: s.list_due_looks(AT))
        for found in answers:
            assert all(look.number == 1 for look in found)
    assert {look.number for look in await store.list_due_looks(SOON)} == {1}


async def test_an_older_look_that_ends_late_does_not_undo_a_newer_one(
    store: DatabaseStore, twin: DatabaseStore
) -> None:
    for number in range(ROUNDS):
        look = Look("stage", f"shop/{number}", "x")
        await store.request_looks([look])
        await store.request_looks([look])
        older, newer = DueLook("stage", look.key, 1), DueLook("stage", look.key, 2)
        await asyncio.gather(store.finish_look(newer), twin.finish_look(older))
    assert not await store.list_due_looks(SOON)


async def test_a_wish_during_the_end_of_a_look_is_not_lost(store: DatabaseStore, twin: DatabaseStore) -> None:
    look = Look("stage", "shop/dev", "x")
    await store.request_looks([look])
    for _ in range(ROUNDS):
        (due,) = await store.list_due_looks(SOON)
        await asyncio.gather(store.finish_look(due), twin.request_looks([look]))
        (again,) = await store.list_due_looks(SOON)
        assert again.number == due.number + 1


async def test_no_change_of_freight_or_a_stage_is_lost(store: DatabaseStore, twin: DatabaseStore) -> None:
    new = freight()
    await store.add_freight(new)
    for number in range(ROUNDS):

        async def enter(to: DatabaseStore, n: int, number: int = number) -> None:
            entered = partial(enter_stage, stage=f"{number}/{n}", at=AT)
            await to.change_freight_status("shop", new.name, entered)
            await to.change_stage("shop", "dev", lambda record: replace(record, frozen=f"{record.frozen}x"))

        await race(store, twin, enter)
    found = await store.get_freight("shop", new.name)
    assert found is not None
    assert len(found[1].currently_in) == ROUNDS * 2 * RUNNERS
    assert (await twin.get_stage("shop", "dev")).frozen == "x" * (ROUNDS * 2 * RUNNERS)


async def test_rows_that_are_replaced_may_be_made_by_both(store: DatabaseStore, twin: DatabaseStore) -> None:
    for number in range(ROUNDS):
        name = f"s{number}"

        async def save(to: DatabaseStore, n: int, name: str = name) -> None:
            await to.save_stage(StageRecord("shop", name, frozen=f"{n}"))
            await to.finish_command("acme/ops", name)

        await race(store, twin, save)
        assert (await store.get_stage("shop", name)).frozen in {f"{n}" for n in range(2 * RUNNERS)}
        assert await twin.is_command_done("acme/ops", name)


async def test_who_reads_the_timeline_by_numbers_misses_nothing(
    store: DatabaseStore, twin: DatabaseStore
) -> None:
    seen: list[str] = []
    writing = True

    async def read() -> None:
        last = 0
        while True:
            stop = not writing
            for event in sorted(await store.list_events(after=last, limit=1000), key=lambda e: e.number):
                seen.append(event.message)
                last = event.number
            if stop:
                return

    async def write(to: DatabaseStore, n: int) -> None:
        for m in range(10):
            await to.add_event(Event(AT, "shop", "dev", "", "note", f"{n}/{m}"))

    reader = asyncio.create_task(read())
    await race(store, twin, write)
    writing = False
    await reader
    assert len(seen) == len(set(seen)) == 10 * 2 * RUNNERS
