"""Answers of people: the first for a step and person stays, and nobody reads them without the key."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from sqlalchemy import select

from bot.adapters.store.store import DatabaseStore
from bot.adapters.store.tables import answers
from bot.domain.promotion import PromotionId
from bot.domain.questions import GivenAnswer
from tests.adapters.store.rows import AT, SOON

NAME = PromotionId("dev.01abc.fffffff")
FIRST = GivenAnswer("ask", "ada", AT, "7", values={"region": "atlantis"})
OTHER = replace(FIRST, by="bob", comment="8", at=SOON)


async def test_of_two_answers_at_once_one_stays(store: DatabaseStore) -> None:
    added = await asyncio.gather(store.add_answer(NAME, FIRST), store.add_answer(NAME, OTHER))
    assert sorted(added) == [False, True]
    (kept,) = await store.list_answers(NAME)
    assert kept == (FIRST if added[0] else OTHER)


async def test_an_answer_is_replaced_only_by_who_has_seen_it(store: DatabaseStore) -> None:
    assert await store.add_answer(NAME, FIRST)
    assert not await store.add_answer(NAME, OTHER, replacing=replace(FIRST, comment="9"))
    assert await store.add_answer(NAME, OTHER, replacing=FIRST)
    assert list(await store.list_answers(NAME)) == [OTHER]


async def test_people_steps_and_promotions_are_told_apart(store: DatabaseStore) -> None:
    people = [replace(FIRST, person="2", at=SOON), replace(FIRST, person="1"), replace(FIRST, alias="other")]
    assert all([await store.add_answer(NAME, answer) for answer in people])
    assert await store.add_answer(PromotionId("dev.2"), FIRST)
    assert {(a.alias, a.person) for a in await store.list_answers(NAME)} == {
        ("ask", "2"),
        ("ask", "1"),
        ("other", ""),
    }
    assert (await store.list_answers(NAME))[-1].person == "2"


async def test_what_was_said_is_sealed(store: DatabaseStore) -> None:
    assert await store.add_answer(NAME, FIRST)
    rows = await store._database.run(lambda c: c.scalars(select(answers.c.sealed)).all())
    assert len(rows) == 1
    assert b"atlantis" not in rows[0]
    assert b"ada" not in rows[0]
