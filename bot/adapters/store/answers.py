"""Answers of people to steps: sealed rows, of which the first for a step and person stays."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import Connection, and_, select, update

from bot.adapters.store.database import Database, document, insert_unless
from bot.adapters.store.tables import answers
from bot.domain.codec import decode
from bot.domain.promotion import PromotionId
from bot.domain.questions import GivenAnswer
from bot.ports import Vault


class Answers:
    """The part of the store that steps which ask people rest on."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._sealing = vault

    async def add_answer(
        self, promotion: PromotionId, answer: GivenAnswer, *, replacing: GivenAnswer | None = None
    ) -> bool:
        key = {"promotion": promotion, "alias": answer.alias, "person": answer.person}
        sealed = self._sealing.seal(document(answer).encode(), _purpose(promotion))
        where = and_(*(answers.c[name] == value for name, value in key.items()))

        def work(connection: Connection) -> bool:
            new = insert_unless(connection, answers).values(**key, sealed=sealed).on_conflict_do_nothing()
            # How many rows an insert made is not told by every database; which it made is.
            if connection.execute(new.returning(answers.c.alias)).first() is not None:
                return True
            found = connection.scalar(select(answers.c.sealed).where(where).with_for_update())
            if replacing is None or found is None or self._opened(found, promotion) != replacing:
                return False
            return connection.execute(update(answers).where(where).values(sealed=sealed)).rowcount == 1

        return await self._database.run(work)

    async def list_answers(self, promotion: PromotionId) -> Sequence[GivenAnswer]:
        query = select(answers.c.sealed).where(answers.c.promotion == promotion)
        rows = await self._database.run(lambda c: c.scalars(query).all())
        return sorted((self._opened(row, promotion) for row in rows), key=lambda answer: answer.at)

    def _opened(self, sealed: bytes, promotion: PromotionId) -> GivenAnswer:
        return decode(GivenAnswer, json.loads(self._sealing.open(sealed, _purpose(promotion))))


def _purpose(promotion: PromotionId) -> str:
    return f"answers to {promotion}"
