"""The audit log in its table, one entry behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection, Row, delete, insert, select

from bot.adapters.store.database import (
    Database,
    insert_unless,
    plain_text,
    take_turns,
    to_number,
    to_time,
)
from bot.adapters.store.tables import audit, meta
from bot.domain.audit import AuditBounds, AuditEntry, AuditHead, AuditRow, chain_entry
from bot.domain.retention import Horizon

_BATCH = 500
_NEWEST, _FORGOTTEN = "audit_newest", "audit_forgotten"


class Audit:
    """The part of the store that keeps the audit log."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_audit(self, entry: AuditEntry) -> None:
        await self._database.run(lambda c: append_audit(c, entry))

    async def find_audit_of(self, promotion: str) -> AuditHead | None:
        query = (
            select(audit.c.number, audit.c.hash)
            .where(audit.c.promotion == promotion)
            .order_by(audit.c.number.desc())
            .limit(1)
        )
        row = await self._database.run(lambda c: c.execute(query).first())
        return AuditHead(row.number, row.hash) if row is not None else None

    async def get_audit_bounds(self) -> AuditBounds:
        return await self._database.run(
            lambda c: AuditBounds(_read_head(c, _FORGOTTEN), _read_head(c, _NEWEST))
        )

    async def list_audit(self, *, after: int = 0, limit: int = 1000) -> Sequence[AuditRow]:
        query = select(audit).where(audit.c.number > after).order_by(audit.c.number).limit(limit)
        return [_read(row) for row in await self._database.run(lambda c: c.execute(query).all())]

    async def forget_audit(self, horizon: Horizon) -> int:
        return await self._database.run(lambda c: _forget(c, horizon))


def append_audit(connection: Connection, entry: AuditEntry) -> None:
    """Add an entry, as a part of the transaction in which it happens and behind everything else that this one locks."""
    # The link is to the newest entry, so two transactions must not read the same one.
    take_turns(connection, "audit")
    plain = replace(
        entry, kind=plain_text(entry.kind), message=plain_text(entry.message), actor=plain_text(entry.actor)
    )
    # The time as the column gives it back, or else the hash would be of another one.
    kept = replace(plain, at=to_time(to_number(plain.at)))
    row = chain_entry(kept, _read_head(connection, _NEWEST))
    values = {
        "number": row.number,
        "at": to_number(kept.at),
        "kind": kept.kind,
        "actor": kept.actor,
        "project": kept.project,
        "stage": kept.stage,
        "promotion": kept.promotion,
        "message": kept.message,
        "previous": row.previous,
        "hash": row.hash,
    }
    connection.execute(insert(audit).values(**values))
    _write_head(connection, _NEWEST, AuditHead(row.number, row.hash))


def continue_audit(connection: Connection, head: AuditHead) -> None:
    """Have the log of a fresh database, which knows only its configuration, go on behind one that was lost."""
    take_turns(connection, "audit")
    if head.number <= _read_head(connection, _NEWEST).number:
        return
    begun = [_read(row) for row in connection.execute(select(audit).order_by(audit.c.number)).all()]
    connection.execute(delete(audit))
    _write_head(connection, _FORGOTTEN, head)
    _write_head(connection, _NEWEST, head)
    for row in begun:
        append_audit(connection, row.entry)


def _forget(connection: Connection, horizon: Horizon) -> int:
    if horizon.audit_before is None:
        return 0
    take_turns(connection, "audit")
    newest = _read_head(connection, _NEWEST)
    query = (
        select(audit.c.number, audit.c.hash, audit.c.at)
        .where(audit.c.number < newest.number)
        .order_by(audit.c.number)
        .limit(_BATCH)
    )
    last: AuditHead | None = None
    for row in connection.execute(query):
        # Clocks of replicas differ: the first entry that is young enough keeps all behind it.
        if row.at >= to_number(horizon.audit_before):
            break
        last = AuditHead(row.number, row.hash)
    if last is None:
        return 0
    _write_head(connection, _FORGOTTEN, last)
    return connection.execute(delete(audit).where(audit.c.number <= last.number)).rowcount


def _read_head(connection: Connection, name: str) -> AuditHead:
    found = connection.scalar(select(meta.c.value).where(meta.c.name == name))
    if found is None:
        return AuditHead()
    number, _, digest = found.partition(" ")
    return AuditHead(int(number), digest)


def _write_head(connection: Connection, name: str, head: AuditHead) -> None:
    new = insert_unless(connection, meta).values(name=name, value=f"{head.number} {head.hash}")
    connection.execute(
        new.on_conflict_do_update(index_elements=[meta.c.name], set_={"value": new.excluded.value})
    )


def _read(row: Row[tuple[object, ...]]) -> AuditRow:
    entry = AuditEntry(
        at=to_time(row.at),
        kind=row.kind,
        message=row.message,
        actor=row.actor,
        project=row.project,
        stage=row.stage,
        promotion=row.promotion,
    )
    return AuditRow(entry, row.number, row.previous, row.hash)
