"""People's own pull requests: one row each, with the re-promotions that are planned for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from sqlalchemy import Connection, and_, delete, insert, select
from sqlalchemy.exc import IntegrityError

from bot.adapters.store.database import Database, document, replace_document
from bot.adapters.store.tables import bundles, peoples_pulls, previews, promotions
from bot.domain.codec import decode
from bot.domain.peoples_pulls import PeoplesPull
from bot.domain.promotion import PromotionId
from bot.ports import TransientError

_TRIES = 20


class PeoplesPulls:
    """The part of the store that people's pull requests rest on."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get_peoples_pull(self, url: str, pull: int) -> PeoplesPull | None:
        query = select(peoples_pulls.c.document).where(
            peoples_pulls.c.url == url, peoples_pulls.c.pull == pull
        )
        text = await self._database.run(lambda c: c.scalar(query))
        return decode(PeoplesPull, json.loads(text)) if text is not None else None

    async def list_peoples_pulls(self, *, merged: bool = False) -> Sequence[PeoplesPull]:
        texts = await self._database.run(lambda c: c.scalars(_MERGED if merged else _OPEN).all())
        return [decode(PeoplesPull, json.loads(text)) for text in texts]

    async def change_peoples_pull(
        self, blank: PeoplesPull, change: Callable[[PeoplesPull], PeoplesPull]
    ) -> PeoplesPull:
        for _ in range(_TRIES):
            before = await self.get_peoples_pull(blank.url, blank.pull)
            after = change(before or blank)
            if after == before or await self._replace(before, after):
                return after
        raise TransientError(f"#{blank.pull} changes too fast to note what is planned for it")

    async def _replace(self, before: PeoplesPull | None, after: PeoplesPull) -> bool:
        """Write the row if it is still as it was; False if somebody else was quicker."""
        row = {
            "url": after.url,
            "pull": after.pull,
            "merged": after.merge is not None,
            "over": after.over,
            "document": document(after),
        }
        if before is None:
            try:
                await self._database.run(lambda c: c.execute(insert(peoples_pulls).values(**row)))
            except IntegrityError:
                return False
            return True
        where = and_(peoples_pulls.c.url == after.url, peoples_pulls.c.pull == after.pull)
        return await self._database.run(lambda c: replace_document(c, peoples_pulls, where, before, row))

    async def forget_peoples_pull(self, url: str, pull: int) -> None:
        where = and_(peoples_pulls.c.url == url, peoples_pulls.c.pull == pull)
        known = select(peoples_pulls.c.document).where(where).with_for_update()

        def work(connection: Connection) -> None:
            text = connection.scalar(known)
            if text is None:
                return
            connection.execute(delete(peoples_pulls).where(where))
            for plan in decode(PeoplesPull, json.loads(text)).plans:
                _drop(connection, plan.promotion.id)

        await self._database.run(work)

    async def drop_unbegun(self, promotion: PromotionId) -> None:
        await self._database.run(lambda c: _drop(c, promotion))


_DUE = (
    select(peoples_pulls.c.document)
    .where(peoples_pulls.c.over.is_(False))
    .order_by(peoples_pulls.c.url, peoples_pulls.c.pull)
)
_OPEN = _DUE.where(peoples_pulls.c.merged.is_(False))
_MERGED = _DUE.where(peoples_pulls.c.merged.is_(True))


def _drop(connection: Connection, promotion: PromotionId) -> None:
    if connection.scalar(select(promotions.c.id).where(promotions.c.id == promotion)) is not None:
        return
    for table in (previews, bundles):
        connection.execute(delete(table).where(table.c.promotion == promotion))
