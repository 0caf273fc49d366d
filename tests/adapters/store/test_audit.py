"""The audit log holds on either database: it grows alone, and what is forgotten leaves its last hash."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from bot.adapters.store.store import DatabaseStore
from bot.domain.audit import AuditEntry, AuditHead, verify_chain
from bot.domain.freight import FreightStatus
from bot.domain.promotion import State
from bot.domain.retention import Horizon
from bot.ports import AppliedState, Event, StageRecord
from bot.ports.restoring import Rebuilt, RestoredFreight
from tests.adapters.store.rows import AT, freight, promotion


async def verify(store: DatabaseStore) -> list[str]:
    return list(verify_chain(await store.list_audit(), await store.get_audit_bounds()))


async def kinds(store: DatabaseStore) -> list[str]:
    return [row.entry.kind for row in await store.list_audit()]


async def test_writers_at_once_make_one_chain(store: DatabaseStore, twin: DatabaseStore) -> None:
    entries = [AuditEntry(AT, "command", f"{number}\0") for number in range(10)]
    await asyncio.gather(*((store, twin)[n % 2].add_audit(entry) for n, entry in enumerate(entries)))
    assert await verify(twin) == []
    assert [row.number for row in await store.list_audit()] == list(range(1, 11))


async def test_what_happens_is_in_the_log_and_what_waits_is_not(store: DatabaseStore) -> None:
    made = promotion(1)
    await store.create_promotion(made)
    ended = replace(made, state=State.SUCCEEDED)
    told = Event(AT, "shop", "dev", made.id, "succeeded", "every step is done", detail="by rafael")
    assert await store.save_promotion(ended, expected=made, event=told)
    await store.add_event(Event(AT, "shop", "dev", made.id, "waits", "0 of 1 approvals"))
    await store.record_applied(AppliedState("s", "i", "c", made.id, succeeded=True, at=AT))
    await store.save_pipeline("r1", {})
    await store.save_pipeline("r1", {})
    assert await kinds(store) == ["succeeded", "apply", "config"]
    rows = await store.list_audit()
    assert rows[0].entry.message == "every step is done: by rafael"
    assert await store.find_audit_of(made.id) == AuditHead(2, rows[1].hash)
    assert await store.find_audit_of("other") is None
    assert await verify(store) == []


async def test_what_is_forgotten_leaves_its_last_hash_and_the_newest_entry_stays(
    store: DatabaseStore,
) -> None:
    for day in range(5):
        await store.add_audit(AuditEntry(AT + timedelta(days=day), "command", str(day)))
    assert await store.forget_audit(Horizon(AT)) == 0
    assert await store.forget_audit(Horizon(AT, audit_before=AT + timedelta(days=2))) == 2
    assert [row.number for row in await store.list_audit()] == [3, 4, 5]
    assert await verify(store) == []
    assert await store.forget_audit(Horizon(AT, audit_before=AT + timedelta(days=99))) == 2
    assert await store.forget_audit(Horizon(AT, audit_before=AT + timedelta(days=99))) == 0
    assert [row.number for row in await store.list_audit()] == [5]
    await store.add_audit(AuditEntry(AT, "command", "next"))
    assert await verify(store) == []


REBUILT = Rebuilt(
    freight=(
        RestoredFreight(replace(freight(), alias="calm-otter"), FreightStatus(currently_in={"dev": AT})),
    ),
    promotions=(promotion(1, state=State.SUCCEEDED), promotion(2)),
    stages=(StageRecord("shop", "dev", frozen="holidays"),),
    applied=(AppliedState("s", "i", "c", promotion(1).id, succeeded=True, at=AT),),
    audit=AuditHead(40, "4" * 64),
)
TOLD = AuditEntry(AT, "rebuild", "read back")


async def test_a_fresh_database_is_filled_once_and_its_log_goes_on_behind_the_lost_one(
    store: DatabaseStore,
) -> None:
    await store.save_pipeline("r1", {})
    assert await store.is_fresh()
    assert await store.restore(REBUILT, TOLD) == REBUILT
    assert not await store.is_fresh()
    found = await store.get_freight("shop", "calm-otter")
    assert found is not None
    assert found[1].currently_in == {"dev": AT}
    assert await store.find_current_promotion("shop", "dev") == promotion(2)
    assert [row.number for row in await store.list_audit()] == [41, 42]
    assert await kinds(store) == ["config", "rebuild"]
    assert await verify(store) == []
    assert (await store.restore(REBUILT, TOLD)).is_empty
    assert len(await store.list_audit()) == 2


async def test_what_is_there_already_is_never_changed(store: DatabaseStore) -> None:
    await store.add_freight(freight())
    await store.create_promotion(promotion(3))
    await store.save_stage(StageRecord("shop", "dev", frozen="now"))
    added = await store.restore(REBUILT, TOLD)
    # dev has an unfinished promotion, so the other open one would be a second.
    assert [item.id for item in added.promotions] == [promotion(1).id]
    assert (added.freight, added.stages, len(added.applied)) == ((), (), 1)
    assert (await store.get_stage("shop", "dev")).frozen == "now"
    assert [row.number for row in await store.list_audit()] == [1]
