"""Freight, Stages, Promotions, plans, the pipeline and the timeline: what is remembered."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from sqlalchemy import Connection, and_, bindparam, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from bot.adapters.store.database import (
    Database,
    document,
    replace_document,
    run_again,
    save_row,
    take_turns,
    to_number,
)
from bot.adapters.store.freight_cache import FreightCache, stamp_freight
from bot.adapters.store.queues import request_now
from bot.adapters.store.tables import (
    freight,
    merges,
    previews,
    promotions,
    stages,
    steps,
)
from bot.adapters.store.timeline import insert_event
from bot.domain.codec import decode
from bot.domain.freight import Freight, FreightName, FreightStatus
from bot.domain.identity import freight_alias
from bot.domain.promotion import Promotion, PromotionId, StepRun
from bot.domain.review import Preview
from bot.ports import Event, Look, PromotionLine, StageRecord, Vault

T = TypeVar("T")

_SHORTEST_PREFIX = 7

# Made once, since every look asks them and making a statement takes longer than running it.
_STAGE = select(stages.c.document).where(
    stages.c.project == bindparam("project"), stages.c.stage == bindparam("stage")
)
_PROMOTIONS = (
    select(promotions.c.document)
    .where(promotions.c.project == bindparam("project"), promotions.c.stage == bindparam("stage"))
    .order_by(promotions.c.created_at.desc(), promotions.c.id.desc())
    .limit(bindparam("limit"))
)


class Records:
    """The part of the store that decisions rest on. `vault` seals previews, which hold what nobody else may read."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault
        self._freight = FreightCache()

    # -- Freight ---------------------------------------------------------------------------------------------------

    async def add_freight(self, new: Freight) -> Freight | None:
        def work(connection: Connection) -> Freight | None:
            rows = connection.execute(
                select(freight.c.name, freight.c.alias).where(freight.c.project == new.project)
            ).all()
            if any(row.name == new.name for row in rows):
                return None
            alias = freight_alias(new.name, {row.alias for row in rows})
            added = replace(new, alias=alias)
            connection.execute(
                insert(freight).values(
                    project=new.project,
                    name=new.name,
                    alias=alias,
                    discovered_at=to_number(new.discovered_at),
                    document=document(added),
                    status=document(FreightStatus()),
                )
            )
            stamp_freight(connection, new.project)
            return added

        return await run_again(self._database, work)

    async def list_freight(self, project: str) -> Sequence[tuple[Freight, FreightStatus]]:
        return await self._database.run(lambda c: self._freight.read(c, project))

    async def get_freight(self, project: str, name_or_alias: str) -> tuple[Freight, FreightStatus] | None:
        exact = or_(freight.c.name == name_or_alias, freight.c.alias == name_or_alias)
        query = select(freight).where(freight.c.project == project, exact)
        rows = await self._database.run(lambda c: c.execute(query).all())
        if not rows and len(name_or_alias) >= _SHORTEST_PREFIX and name_or_alias.isalnum():
            begins = freight.c.name.startswith(name_or_alias.lower())
            prefix = select(freight).where(freight.c.project == project, begins)
            rows = await self._database.run(lambda c: c.execute(prefix.limit(2)).all())
        if len(rows) != 1:
            return None
        return _read(Freight, rows[0].document), _read(FreightStatus, rows[0].status)

    async def rename_freight(self, project: str, name: FreightName, alias: str) -> bool:
        def work(connection: Connection) -> bool:
            where = and_(freight.c.project == project, freight.c.name == name)
            text = connection.scalar(select(freight.c.document).where(where).with_for_update())
            if text is None:
                return False
            renamed = replace(_read(Freight, text), alias=alias)
            connection.execute(update(freight).where(where).values(alias=alias, document=document(renamed)))
            stamp_freight(connection, project)
            return True

        try:
            return await self._database.run(work)
        except IntegrityError:
            return False

    async def change_freight_status(
        self, project: str, name: FreightName, change: Callable[[FreightStatus], FreightStatus]
    ) -> None:
        where = and_(freight.c.project == project, freight.c.name == name)

        def work(connection: Connection) -> None:
            text = connection.scalar(select(freight.c.status).where(where).with_for_update())
            if text is not None:
                changed = change(_read(FreightStatus, text))
                connection.execute(update(freight).where(where).values(status=document(changed)))
                stamp_freight(connection, project)

        await self._database.run(work)

    # -- Stages ----------------------------------------------------------------------------------------------------

    async def get_stage(self, project: str, stage: str) -> StageRecord:
        given = {"project": project, "stage": stage}
        text = await self._database.run(lambda c: c.scalar(_STAGE, given))
        return _read(StageRecord, text) if text is not None else StageRecord(project, stage)

    async def list_stages(self, project: str) -> Sequence[StageRecord]:
        query = select(stages.c.document).where(stages.c.project == project)
        rows = await self._database.run(lambda c: c.scalars(query).all())
        return [_read(StageRecord, text) for text in rows]

    async def save_stage(self, record: StageRecord) -> None:
        key = {"project": record.project, "stage": record.stage}
        await save_row(self._database, stages, key, {"document": document(record)})

    async def change_stage(
        self, project: str, stage: str, change: Callable[[StageRecord], StageRecord]
    ) -> None:
        where = and_(stages.c.project == project, stages.c.stage == stage)

        def work(connection: Connection) -> None:
            text = connection.scalar(select(stages.c.document).where(where).with_for_update())
            changed = change(_read(StageRecord, text) if text is not None else StageRecord(project, stage))
            if text is None:
                connection.execute(
                    insert(stages).values(project=project, stage=stage, document=document(changed))
                )
            else:
                connection.execute(update(stages).where(where).values(document=document(changed)))

        await run_again(self._database, work)

    # -- Promotions ------------------------------------------------------------------------------------------------

    async def create_promotion(self, promotion: Promotion) -> bool:
        def work(connection: Connection) -> None:
            # Freight is forgotten either before this, which can be seen, or not at all.
            take_turns(connection, "retention")
            connection.execute(insert(promotions).values(**promotion_row(promotion)))

        try:
            await self._database.run(work)
        except IntegrityError:
            return False
        return True

    async def get_promotion(self, promotion: PromotionId) -> Promotion | None:
        query = select(promotions.c.document).where(promotions.c.id == promotion)
        text = await self._database.run(lambda c: c.scalar(query))
        return _read(Promotion, text) if text is not None else None

    async def find_current_promotion(self, project: str, stage: str) -> Promotion | None:
        query = select(promotions.c.document).where(
            promotions.c.project == project, promotions.c.stage == stage, promotions.c.ended.is_(False)
        )
        text = await self._database.run(lambda c: c.scalar(query))
        return _read(Promotion, text) if text is not None else None

    async def list_unfinished_promotions(self) -> Sequence[Promotion]:
        query = (
            select(promotions.c.document)
            .where(promotions.c.ended.is_(False))
            .order_by(promotions.c.created_at)
        )
        return [_read(Promotion, text) for text in await self._database.run(lambda c: c.scalars(query).all())]

    async def list_promotions(self, project: str, stage: str, *, limit: int = 50) -> Sequence[Promotion]:
        given = {"project": project, "stage": stage, "limit": limit}
        texts = await self._database.run(lambda c: c.scalars(_PROMOTIONS, given).all())
        return [_read(Promotion, text) for text in texts]

    async def list_newest_promotions(self, project: str, count: int) -> Sequence[PromotionLine]:
        order = (promotions.c.created_at.desc(), promotions.c.id.desc())
        place = func.row_number().over(partition_by=promotions.c.stage, order_by=order).label("place")
        # Ranked by id alone: the documents of older rows are not touched.
        ranked = select(promotions.c.id, place).where(promotions.c.project == project).subquery()
        query = (
            select(promotions.c.document)
            .join(ranked, ranked.c.id == promotions.c.id)
            .where(ranked.c.place <= count)
            .order_by(*order)
        )
        rows = await self._database.run(lambda c: c.scalars(query).all())
        return [_read(PromotionLine, text) for text in rows]

    async def find_merge_of_pull(self, url: str, pull: int) -> str | None:
        promotion = await self.find_promotion_by_pull(url, pull)
        if promotion is not None:
            # What a re-promotion follows is a person's own: of that merge a Warehouse may well make Freight.
            return None if promotion.follows is not None else promotion.merge_commit or ""
        query = select(merges.c.commit).where(merges.c.url == _plain(url), merges.c.pull == pull)
        return await self._database.run(lambda c: c.scalar(query))

    async def note_own_pull(self, url: str, pull: int, merge: str) -> None:
        await save_row(self._database, merges, {"url": _plain(url), "pull": pull}, {"commit": merge})

    async def find_promotion_by_pull(self, url: str, pull: int) -> Promotion | None:
        query = (
            select(promotions.c.document)
            .where(promotions.c.url == _plain(url), promotions.c.pull == pull)
            .order_by(promotions.c.created_at.desc(), promotions.c.id.desc())
            .limit(1)
        )
        text = await self._database.run(lambda c: c.scalar(query))
        return _read(Promotion, text) if text is not None else None

    async def save_promotion(
        self,
        promotion: Promotion,
        *,
        expected: Promotion,
        event: Event | None = None,
        looks: Sequence[Look] = (),
    ) -> bool:
        where, row = promotions.c.id == promotion.id, promotion_row(promotion)

        def work(connection: Connection) -> bool:
            if not replace_document(connection, promotions, where, expected, row):
                return False
            if event is not None:
                insert_event(connection, event)
            request_now(connection, looks)
            return True

        try:
            return await self._database.run(work)
        except IntegrityError:
            # It would be a second unfinished promotion of its Stage.
            return False

    async def save_preview(self, promotion: PromotionId, number: int, preview: Preview) -> None:
        sealed = self._vault.seal(document(preview).encode(), f"preview/{promotion}/{number}")
        await save_row(
            self._database, previews, {"promotion": promotion, "number": number}, {"sealed": sealed}
        )

    async def get_preview(self, promotion: PromotionId, number: int) -> Preview | None:
        query = select(previews.c.sealed).where(
            previews.c.promotion == promotion, previews.c.number == number
        )
        sealed = await self._database.run(lambda c: c.scalar(query))
        if sealed is None:
            return None
        return _read(Preview, self._vault.open(sealed, f"preview/{promotion}/{number}").decode())

    async def begin_step(self, promotion: PromotionId, run: StepRun) -> None:
        await self._save_step(promotion, run)

    async def finish_step(self, promotion: PromotionId, run: StepRun) -> None:
        await self._save_step(promotion, run)

    async def list_steps(self, promotion: PromotionId) -> Mapping[str, StepRun]:
        query = select(steps.c.document).where(steps.c.promotion == promotion).order_by(steps.c.attempt)
        runs = [_read(StepRun, text) for text in await self._database.run(lambda c: c.scalars(query).all())]
        return {run.alias: run for run in runs}

    # -- inside ------------------------------------------------------------------------------------------------------

    async def _save_step(self, promotion: PromotionId, run: StepRun) -> None:
        key = {"promotion": promotion, "alias": run.alias, "attempt": run.attempt}
        await save_row(self._database, steps, key, {"document": document(run)})


def promotion_row(promotion: Promotion) -> dict[str, object]:
    """The columns of a Promotion's row."""
    return {
        "id": promotion.id,
        "project": promotion.project,
        "stage": promotion.stage,
        "ended": promotion.state.ended,
        "created_at": to_number(promotion.created_at),
        "url": _plain(promotion.target.url) if promotion.target is not None else "",
        "pull": promotion.pull,
        "document": document(promotion),
    }


def _plain(url: str) -> str:
    """An address as it is searched by: case and the ending do not matter."""
    return url.lower().removesuffix("/").removesuffix(".git")


def _read(kind: type[T], text: str) -> T:
    return decode(kind, json.loads(text))
