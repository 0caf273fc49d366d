"""Filling a database from what markers say, in one transaction: after a crash there is all of it, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy import Connection, Table, func, insert, or_, select

from bot.adapters.store.audit import append_audit, continue_audit
from bot.adapters.store.database import Database, document, take_turns, to_number
from bot.adapters.store.freight_cache import stamp_freight
from bot.adapters.store.records import promotion_row
from bot.adapters.store.tables import applied, freight, promotions, stages
from bot.domain.audit import AuditEntry
from bot.domain.identity import freight_alias
from bot.domain.promotion import Promotion
from bot.ports import AppliedState, StageRecord
from bot.ports.restoring import Rebuilt, RestoredFreight


class Restoring:
    """The part of the store that is filled by `lockstep rebuild`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def is_fresh(self) -> bool:
        """Whether it knows of no Freight, no Promotion and no Stage."""
        return await self._database.run(_is_fresh)

    async def restore(self, rebuilt: Rebuilt, entry: AuditEntry) -> Rebuilt:
        """Add what is not known; no row that is there is changed. The answer is what was added."""
        return await self._database.run(lambda c: _restore(c, rebuilt, entry))


def _is_fresh(connection: Connection) -> bool:
    tables = (freight, promotions, stages)
    return not any(connection.scalar(select(func.count()).select_from(table)) for table in tables)


def _restore(connection: Connection, rebuilt: Rebuilt, entry: AuditEntry) -> Rebuilt:
    take_turns(connection, "retention")
    fresh = _is_fresh(connection)
    added = Rebuilt(
        freight=tuple(item for item in rebuilt.freight if _add_freight(connection, item)),
        promotions=tuple(item for item in rebuilt.promotions if _add_promotion(connection, item)),
        stages=tuple(item for item in rebuilt.stages if _add_stage(connection, item)),
        applied=tuple(item for item in rebuilt.applied if _add_applied(connection, item)),
        audit=rebuilt.audit,
    )
    if not added.is_empty:
        if fresh:
            continue_audit(connection, rebuilt.audit)
        append_audit(connection, entry)
    return added


def _add_freight(connection: Connection, item: RestoredFreight) -> bool:
    """Under the alias that people know, unless other Freight has it by now."""
    wanted = item.freight
    rows = connection.execute(
        select(freight.c.name, freight.c.alias).where(freight.c.project == wanted.project)
    ).all()
    if any(row.name == wanted.name for row in rows):
        return False
    taken = {row.alias for row in rows}
    alias = wanted.alias if wanted.alias not in taken else freight_alias(wanted.name, taken)
    connection.execute(
        insert(freight).values(
            project=wanted.project,
            name=wanted.name,
            alias=alias,
            discovered_at=to_number(wanted.discovered_at),
            document=document(replace(wanted, alias=alias)),
            status=document(item.status),
        )
    )
    stamp_freight(connection, wanted.project)
    return True


def _add_promotion(connection: Connection, item: Promotion) -> bool:
    table = promotions.c
    there = select(table.id).where(table.id == item.id)
    if item.pull is not None:
        same_pull = (table.pull == item.pull) & (table.url == promotion_row(item)["url"])
        there = select(table.id).where(or_(table.id == item.id, same_pull))
    unfinished = select(table.id).where(
        table.project == item.project, table.stage == item.stage, table.ended.is_(False)
    )
    if connection.scalar(there.limit(1)) is not None:
        return False
    if not item.state.ended and connection.scalar(unfinished.limit(1)) is not None:
        return False
    connection.execute(insert(promotions).values(**promotion_row(item)))
    return True


def _add_stage(connection: Connection, item: StageRecord) -> bool:
    key = {"project": item.project, "stage": item.stage}
    return _add(connection, stages, key, document(item))


def _add_applied(connection: Connection, item: AppliedState) -> bool:
    return _add(connection, applied, {"state": item.state}, document(item))


def _add(connection: Connection, table: Table, key: Mapping[str, str], text: str) -> bool:
    where = [table.c[name] == value for name, value in key.items()]
    if connection.scalar(select(func.count()).select_from(table).where(*where)):
        return False
    connection.execute(insert(table).values(**key, document=text))
    return True
