"""What is forgotten, and what is not because something still needs it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from bot.adapters.store.store import DatabaseStore
from bot.domain.auto_promotion import Hold
from bot.domain.availability import approve_for_stage, enter_stage
from bot.domain.discovery import Discovery, encode_discovery
from bot.domain.files import CommitId
from bot.domain.freight import Freight, FreightOrigin
from bot.domain.github import PullNumber
from bot.domain.history import FreightCollection
from bot.domain.promotion import Promotion, PromotionId, State, StepRun, StepStatus, Target
from bot.domain.questions import GivenAnswer
from bot.domain.retention import Horizon
from bot.ports import AppliedState, Event, Look, Post, StageRecord
from tests.adapters.store.rows import AT, SOON, delivery, freight, promotion
from tests.adapters.store.test_analyses import analysis

LATER = AT + timedelta(days=30)
ORIGIN = FreightOrigin("apps")
URL = "https://git.example/acme/ops.git"


def keeping(promotions: int = 2, count: int = 1) -> Horizon:
    return Horizon(LATER, promotions, count)


def ended(number: int, **changes: object) -> Promotion:
    return promotion(number, **{"state": State.SUCCEEDED, **changes})


async def ids(store: DatabaseStore, stage: str = "dev") -> list[str]:
    return [p.id.split(".")[1] for p in await store.list_promotions("shop", stage)]


def named(number: int) -> Freight:
    made = freight(f"{number:040}")
    return replace(made, discovered_at=AT + timedelta(seconds=number))


async def left(store: DatabaseStore) -> set[int]:
    return {int(item.name) for item, _ in await store.list_freight("shop")}


async def drain(store: DatabaseStore, horizon: Horizon) -> int:
    """Forget Freight until nothing is left to forget; what was listed before must not be listed again from memory."""
    await store.list_freight("shop")
    total = 0
    while gone := await store.forget_freight(horizon):
        total += gone
    return total


# -- Promotions --------------------------------------------------------------------------------------------------------


async def test_old_promotions_go_with_all_that_belongs_to_them(store: DatabaseStore) -> None:
    for number in range(1, 6):
        made = ended(number)
        await store.create_promotion(made)
        await store.begin_step(made.id, StepRun("a", "fail", 1, StepStatus.RUNNING))
        await store.keep_bundle(made.id, "plan", b"sealed")
        await store.add_answer(made.id, GivenAnswer("ask", "ada", AT, "7"))
        await store.add_event(Event(AT, "shop", "dev", made.id, "waits", "x"))
    await store.create_promotion(promotion(6))
    assert await store.forget_promotions(keeping()) == 3
    assert await ids(store) == ["6", "5", "4"]
    gone = PromotionId("dev.1.aaaaaaa")
    assert not await store.list_steps(gone)
    assert await store.get_bundle(gone, "plan") is None
    assert not await store.list_answers(gone)
    assert not await store.list_events(promotion=gone)
    kept = ended(5).id
    assert await store.list_steps(kept)
    assert await store.get_bundle(kept, "plan") == b"sealed"
    assert await store.list_answers(kept)
    assert await store.list_events(promotion=kept)
    assert await store.forget_promotions(keeping()) == 0


async def test_young_promotions_stay_however_many_there_are(store: DatabaseStore) -> None:
    for number in range(1, 4):
        await store.create_promotion(ended(number))
    assert await store.forget_promotions(Horizon(AT, promotions=1)) == 0


async def test_every_stage_keeps_its_own_newest_promotions(store: DatabaseStore) -> None:
    for number in range(1, 4):
        await store.create_promotion(ended(number))
    await store.create_promotion(ended(0, stage="prod"))
    assert await store.forget_promotions(keeping(1)) == 2
    assert (await ids(store), await ids(store, "prod")) == (["3"], ["0"])


async def test_promotions_that_something_names_stay(store: DatabaseStore) -> None:
    for number in range(1, 7):
        await store.create_promotion(ended(number))
    await store.create_promotion(ended(7, state=State.FAILED, blocked=True))
    for number in (8, 9):
        await store.create_promotion(ended(number))
    await store.add_run(replace(analysis(), promotion=ended(2).id))
    await store.add_run(replace(analysis(2), promotion=ended(3).id, settled=True))
    hold = Hold(ORIGIN, freight().name, ended(4).id)
    await store.save_stage(StageRecord("shop", "dev", holds={ORIGIN: hold}))
    await store.record_applied(AppliedState("s", "i", "c", ended(5).id, succeeded=True, at=AT))
    assert await store.forget_promotions(keeping(1)) == 4
    assert await ids(store) == ["9", "7", "5", "4", "2"]


async def test_that_a_pull_request_was_a_promotions_is_never_forgotten(store: DatabaseStore) -> None:
    target = Target(URL, "main")
    merged = ended(1, target=target, pull=PullNumber(7), merge_commit=CommitId("c" * 40))
    closed = ended(2, target=target, pull=PullNumber(8), state=State.ABORTED)
    for made in (merged, closed, ended(3)):
        await store.create_promotion(made)
    for _ in range(2):
        assert await store.find_merge_of_pull(URL.upper(), 7) == "c" * 40
        assert await store.find_merge_of_pull(URL, 8) == ""
        assert await store.find_merge_of_pull(URL, 9) is None
        await store.forget_promotions(keeping(1))
    assert await store.find_promotion_by_pull(URL, 7) is None


async def test_pull_requests_that_follow_up_are_remembered_as_ours(store: DatabaseStore) -> None:
    assert await store.find_merge_of_pull(URL, 12) is None
    for merge in ("", "d" * 40):
        await store.note_own_pull(URL.upper(), 12, merge)
        assert await store.find_merge_of_pull(URL, 12) == merge
    assert await store.find_promotion_by_pull(URL, 12) is None


# -- Freight -----------------------------------------------------------------------------------------------------------


async def test_freight_that_nobody_needs_goes(store: DatabaseStore) -> None:
    for number in range(1, 8):
        await store.add_freight(named(number))
    await store.change_freight_status("shop", named(5).name, lambda s: enter_stage(s, "dev", AT))
    await store.add_freight(replace(named(1), project="other"))
    assert await drain(store, keeping()) == 3
    assert await left(store) == {4, 5, 6, 7}
    assert len(await store.list_freight("other")) == 1


async def test_freight_that_something_needs_stays(store: DatabaseStore) -> None:
    for number in range(1, 13):
        await store.add_freight(named(number))
    history = tuple(FreightCollection({ORIGIN: named(number).name}) for number in (11, 1))
    hold = Hold(ORIGIN, named(2).name)
    await store.save_stage(
        StageRecord("shop", "dev", history=history, holds={ORIGIN: hold}, quarantine=(named(3).name,))
    )
    await store.change_freight_status("shop", named(4).name, lambda s: approve_for_stage(s, "prod", AT))
    failed = ended(1, state=State.FAILED, blocked=True, freight=named(5), collection=(named(5), named(6)))
    await store.create_promotion(failed)
    look = encode_discovery(Discovery((), "", named(7).name))
    await store.add_discovery("shop", "apps", look, AT)
    assert await drain(store, keeping()) == 2
    assert await left(store) == {1, 2, 3, 4, 5, 6, 7, 10, 11, 12}


async def test_freight_of_an_unfinished_promotion_or_verification_stays_with_all_that_is_newer(
    store: DatabaseStore,
) -> None:
    for number in range(1, 9):
        await store.add_freight(named(number))
    await store.create_promotion(promotion(1, freight=named(6), collection=(named(6),)))
    await store.add_run(replace(analysis(), freight=(named(4).name,)))
    assert await drain(store, keeping()) == 2
    assert await left(store) == {3, 4, 5, 6, 7, 8}


async def test_two_replicas_that_forget_at_once_forget_everything_once(
    store: DatabaseStore, twin: DatabaseStore
) -> None:
    for number in range(1, 30):
        await store.add_freight(named(number))
        await store.create_promotion(ended(number))
    assert sum(await asyncio.gather(drain(store, keeping()), drain(twin, keeping()))) == 28
    both = await asyncio.gather(store.forget_promotions(keeping(1)), twin.forget_promotions(keeping(1)))
    assert sum(both) == 28
    assert await left(store) == {29}
    assert await ids(store) == ["29"]


async def test_freight_of_a_promotion_that_is_made_meanwhile_is_there_or_seen_to_be_gone(
    store: DatabaseStore, twin: DatabaseStore
) -> None:
    for number in range(1, 4):
        await store.add_freight(named(number))
    wanted = promotion(1, freight=named(1), collection=(named(1),))

    async def start() -> bool:
        assert await twin.create_promotion(wanted)
        return await twin.get_freight("shop", named(1).name) is not None

    there, _ = await asyncio.gather(start(), drain(store, keeping()))
    assert (named(1).name in {item.name for item, _ in await store.list_freight("shop")}) == there


# -- what waited to be done --------------------------------------------------------------------------------------------


async def test_deliveries_go_once_their_work_and_their_command_are_done(store: DatabaseStore) -> None:
    for name in ("done", "pending", "command"):
        await store.store_delivery(delivery(name))
    await store.finish_delivery("done", [], "")
    await store.finish_delivery("command", [Look("command", "command", "x")], "")
    assert await store.forget_deliveries(Horizon(AT)) == 0
    assert await store.forget_deliveries(keeping()) == 1
    assert await store.get_delivery("done") is None
    (due,) = await store.list_due_looks(SOON)
    await store.finish_look(due)
    assert await store.forget_deliveries(keeping()) == 1
    assert [d.id for d in await store.list_pending_deliveries()] == ["pending"]


async def test_the_newest_events_stay_and_those_of_promotions_that_do(store: DatabaseStore) -> None:
    made = ended(1)
    await store.create_promotion(made)
    for number in range(4):
        event = Event(AT, "shop", "dev", made.id if number == 1 else "", "waits", str(number))
        await store.add_event(event)
    assert await store.forget_events(replace(keeping(), events=4)) == 0
    assert await store.forget_events(Horizon(AT, events=1)) == 0
    assert await store.forget_events(replace(keeping(), events=1)) == 2
    assert [event.message for event in await store.list_events()] == ["3", "1"]
    await store.add_event(Event(AT, "shop", "dev", "", "waits", "4"))
    assert [event.number for event in await store.list_events()] == [5, 4, 2]


async def test_posts_go_once_they_are_out_unless_they_are_shown_again_and_again(store: DatabaseStore) -> None:
    head = CommitId("d" * 40)
    last = ended(3, target=Target(URL, "main"), pull=PullNumber(7), head=head)
    for made in (ended(1), last):
        await store.create_promotion(made)
    keys = (
        "reaction/acme/ops/15003/eyes",
        f"check/acme/ops/{'e' * 40}/lockstep",
        f"check/acme/ops/{head}/lockstep",
        "pull/acme/ops/7",
        "comment/acme/ops/7/lockstep:plan:shop:dev",
        f"deployment/{last.id}",
        "comment/acme/ops/5/lockstep:plan:shop:dev",
        "pull/acme/ops/9",
    )
    for key in keys:
        await store.queue_post(Post(key, "check", "acme/ops", 1, {}))
    due = {item.post.key: item for item in await store.list_due_posts(SOON)}
    for key in keys[:-1]:
        await store.finish_post(due[key])
    await store.queue_post(Post(keys[1], "check", "acme/ops", 1, {"changed": True}))
    assert await store.forget_posts(Horizon(SOON)) == 2
    assert await store.queue_post(Post(keys[0], "check", "acme/ops", 1, {}))
    assert not await store.queue_post(Post(keys[3], "check", "acme/ops", 1, {}))
    assert not await store.queue_post(Post(keys[7], "check", "acme/ops", 1, {}))
