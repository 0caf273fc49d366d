"""The timeline: what people are told has happened, in the order in which it is told."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, insert, select

from bot.adapters.store.audit import append_audit
from bot.adapters.store.database import Database, plain_text, take_turns, to_number, to_time
from bot.adapters.store.tables import events
from bot.domain.audit import AuditEntry
from bot.ports import Event

_NOT_AUDITED = ("waits", "error")
"""Kinds that tell of what was not done."""


class Timeline:
    """The part of the store that people read."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_event(self, event: Event) -> None:
        await self._database.run(lambda c: insert_event(c, event))

    async def list_events(
        self, *, project: str = "", promotion: str = "", after: int = 0, limit: int = 200
    ) -> Sequence[Event]:
        query = select(events).where(events.c.seq > after).order_by(events.c.seq.desc()).limit(limit)
        if project:
            query = query.where(events.c.project == project)
        if promotion:
            query = query.where(events.c.promotion == promotion)
        rows = await self._database.run(lambda c: c.execute(query).all())
        return [Event(to_time(r.at), r.project, r.stage, r.promotion, r.kind, r.message, r.seq) for r in rows]


def insert_event(connection: Connection, event: Event) -> None:
    """Tell it, as a part of the transaction in which it happens, and behind everything else that this one locks."""
    # Who reads the timeline asks for what is after the last number it has seen, so a lower one must not appear later.
    take_turns(connection, "events")
    row = {
        "at": to_number(event.at),
        "project": event.project,
        "stage": event.stage,
        "promotion": event.promotion,
        "kind": event.kind,
        "message": plain_text(event.message),
    }
    connection.execute(insert(events).values(**row))
    if event.kind not in _NOT_AUDITED:
        message = f"{event.message}: {event.detail}" if event.detail else event.message
        append_audit(
            connection,
            AuditEntry(
                event.at,
                event.kind,
                message,
                project=event.project,
                stage=event.stage,
                promotion=event.promotion,
            ),
        )
