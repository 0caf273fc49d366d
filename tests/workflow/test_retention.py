"""When what nobody needs is forgotten, and how a round that was cut short goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.domain.audit import AuditEntry
from bot.domain.model import Metadata, Stage
from bot.domain.promotion import State
from bot.ports import ConfigSource, Git, GitHub
from bot.workflow.configuration import Configuration, Load
from bot.workflow.follow_ups import OpenFollowUps
from bot.workflow.publish import Publisher
from bot.workflow.reporting import Reporter
from bot.workflow.retention import Retention
from bot.workflow.snapshots import Gatherer
from bot.workflow.stages import StageLooker
from tests.adapters.store.rows import AT, delivery, freight, promotion


@dataclass(slots=True)
class Clock:
    """A clock that is turned by hand."""

    at: datetime

    def now(self) -> datetime:
        return self.at


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DatabaseStore]:
    opened = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", KeyFileVault(tmp_path / "vault.key"))
    yield opened
    opened.close()


async def fill(store: DatabaseStore, first: int, count: int) -> None:
    for number in range(first, first + count):
        await store.create_promotion(promotion(number, state=State.SUCCEEDED))
    await store.store_delivery(delivery(f"d{first}"))
    await store.finish_delivery(f"d{first}", [], "")


async def count(store: DatabaseStore) -> int:
    return len(await store.list_promotions("shop", "dev", limit=1000))


async def test_a_round_comes_once_an_hour(store: DatabaseStore) -> None:
    clock = Clock(AT + timedelta(days=15))
    retention = Retention(store, clock)
    await fill(store, 1, 52)
    await retention.tidy(lambda: True)
    assert await count(store) == 50
    assert await store.get_delivery("d1") is None
    await fill(store, 60, 2)
    clock.at += timedelta(minutes=59)
    await retention.tidy(lambda: True)
    assert await count(store) == 52
    clock.at += timedelta(minutes=1)
    await retention.tidy(lambda: True)
    assert await count(store) == 50


async def test_nothing_young_is_forgotten(store: DatabaseStore) -> None:
    await fill(store, 1, 52)
    await Retention(store, Clock(AT + timedelta(days=13))).tidy(lambda: True)
    assert await count(store) == 52
    assert await store.get_delivery("d1") is not None


async def test_a_replica_that_leads_no_longer_stops_and_is_not_done(store: DatabaseStore) -> None:
    await fill(store, 1, 52)
    retention = Retention(store, Clock(AT + timedelta(days=15)))
    answers = iter([True, False])
    await retention.tidy(lambda: next(answers))
    # Its Promotions are gone, its deliveries are left for whoever leads now.
    assert await count(store) == 50
    assert await store.get_delivery("d1") is not None
    await retention.tidy(lambda: True)
    assert await store.get_delivery("d1") is None


async def test_a_promotion_of_freight_that_was_forgotten_meanwhile_is_refused(store: DatabaseStore) -> None:
    nobody = cast("GitHub", None)
    configuration = Configuration(cast("ConfigSource", None), store, cast("Load", None))
    gatherer = Gatherer(store, cast("Git", None), nobody, Clock(AT), configuration)
    looker = StageLooker(
        gatherer, cast("Reporter", None), cast("Publisher", None), store, nobody, cast("OpenFollowUps", None)
    )
    stage = Stage(Metadata("dev", "shop"), ())
    answer = await looker.start(stage, freight(), actor="olivia")
    assert isinstance(answer, str)
    assert "choose other Freight" in answer
    assert await store.find_current_promotion("shop", "dev") is None
    known = await store.add_freight(freight())
    assert known is not None
    assert not isinstance(await looker.start(stage, known, actor="olivia"), str)


async def test_the_engines_work_goes_with_the_rest_and_the_audit_log_later(store: DatabaseStore) -> None:
    asked: list[datetime] = []

    async def forget_work(before: datetime) -> int:
        asked.append(before)
        return 1 if len(asked) == 1 else 0

    for day in range(2):
        await store.add_audit(AuditEntry(AT + timedelta(days=day), "command", str(day)))
    now = AT + timedelta(days=15)
    await Retention(store, Clock(now)).tidy(lambda: True, forget_work)
    assert asked == [now - timedelta(days=14)] * 2
    assert len(await store.list_audit()) == 2
    await Retention(store, Clock(AT + timedelta(days=401))).tidy(lambda: True)
    assert [row.number for row in await store.list_audit()] == [2]
