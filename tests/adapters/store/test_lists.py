"""What the bot's pages list is read in few queries, however many Stages there are."""

from __future__ import annotations

from datetime import timedelta

from bot.adapters.store.store import DatabaseStore
from bot.domain.promotion import PromotionId, State
from bot.ports import StageRecord
from tests.adapters.store.rows import AT, promotion


async def test_what_a_list_shows_is_read_at_once(store: DatabaseStore) -> None:
    for number, stage in enumerate(["dev", "dev", "dev", "prod"]):
        made = promotion(
            id=PromotionId(f"{stage}.{number}"),
            stage=stage,
            created_at=AT + timedelta(seconds=number),
            state=State.FAILED,
            reason=f"no {number}",
        )
        assert await store.create_promotion(made)
    assert await store.create_promotion(promotion(id=PromotionId("else"), project="other"))
    found = await store.list_newest_promotions("shop", 2)
    assert [line.id for line in found] == ["prod.3", "dev.2", "dev.1"]
    assert (found[0].state, found[0].reason, found[0].freight.alias) == (State.FAILED, "no 3", "")


async def test_all_stages_of_a_project_are_read_at_once(store: DatabaseStore) -> None:
    for project, stage in (("shop", "dev"), ("shop", "prod"), ("other", "dev")):
        await store.save_stage(StageRecord(project, stage, frozen="incident"))
    assert {record.stage for record in await store.list_stages("shop")} == {"dev", "prod"}
