"""People's own pull requests in the store."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from bot.adapters.store.store import DatabaseStore
from bot.domain.files import CommitId
from bot.domain.github import PullNumber
from bot.domain.peoples_pulls import PeoplesPull, PlannedStage
from bot.domain.promotion import Following, PromotionId, State
from tests.domain import reviews as r

FOLLOWS = Following(PullNumber(7), r.NOW, r.NOW)
PLAN = PlannedStage(r.promotion(follows=FOLLOWS, head=r.HEAD, target=r.MAIN, pull=PullNumber(7), preview=1))
BLANK = PeoplesPull(r.URL, PullNumber(7), "main")


def pushed(row: PeoplesPull, pusher: int) -> PeoplesPull:
    return replace(row, pushers=(*row.pushers, pusher))


async def test_one_is_read_as_it_was_and_listed_by_what_is_due(store: DatabaseStore) -> None:
    row = await store.change_peoples_pull(BLANK, lambda found: found.with_plan(PLAN, [PLAN.key]))
    assert await store.get_peoples_pull(r.URL, 7) == row
    assert await store.get_peoples_pull(r.URL, 8) is None
    assert (await store.list_peoples_pulls(), await store.list_peoples_pulls(merged=True)) == ([row], [])
    merged = await store.change_peoples_pull(BLANK, lambda found: replace(found, merge=CommitId("d" * 40)))
    assert merged.plans == (PLAN,)
    assert (await store.list_peoples_pulls(), await store.list_peoples_pulls(merged=True)) == ([], [merged])
    await store.change_peoples_pull(BLANK, lambda found: replace(found, over=True))
    assert await store.list_peoples_pulls(merged=True) == []


async def test_of_several_that_change_one_at_once_none_is_lost(
    store: DatabaseStore, twin: DatabaseStore
) -> None:
    await asyncio.gather(
        store.change_peoples_pull(BLANK, lambda row: pushed(row, 1)),
        twin.change_peoples_pull(BLANK, lambda row: pushed(row, 2)),
    )
    found = await store.get_peoples_pull(r.URL, 7)
    assert found is not None
    assert set(found.pushers) == {1, 2}


async def test_plans_are_forgotten_with_it_unless_their_promotion_has_begun(store: DatabaseStore) -> None:
    await store.change_peoples_pull(BLANK, lambda found: found.with_plan(PLAN, [PLAN.key]))
    promotion = PLAN.promotion
    await store.save_preview(promotion.id, 1, r.preview())
    await store.keep_bundle(promotion.id, "plan", b"sealed")
    begun = replace(promotion, state=State.HELD, merge_commit=CommitId("d" * 40))
    await store.add_freight(promotion.freight)
    assert await store.create_promotion(begun)
    assert not await store.create_promotion(begun)
    await store.drop_unbegun(promotion.id)
    assert await store.get_preview(promotion.id, 1) == r.preview()

    other = replace(PLAN, promotion=replace(promotion, id=PromotionId("dev.02.aaaaaaa")))
    await store.change_peoples_pull(BLANK, lambda found: found.with_plan(other, [PLAN.key]))
    await store.save_preview(other.promotion.id, 1, r.preview())
    await store.keep_bundle(other.promotion.id, "plan", b"sealed")
    await store.forget_peoples_pull(r.URL, 7)
    assert await store.get_peoples_pull(r.URL, 7) is None
    assert await store.get_preview(other.promotion.id, 1) is None
    assert await store.get_bundle(other.promotion.id, "plan") is None


async def test_the_merge_that_a_re_promotion_follows_is_a_persons(store: DatabaseStore) -> None:
    begun = replace(PLAN.promotion, state=State.HELD, merge_commit=CommitId("d" * 40))
    await store.create_promotion(begun)
    assert await store.find_promotion_by_pull(r.URL, 7) == begun
    assert await store.find_merge_of_pull(r.URL, 7) is None
