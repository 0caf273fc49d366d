"""Drift: one row per Stage, with what the last look found."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from sqlalchemy import Connection, and_, select, update

from bot.adapters.store.database import Database, document, insert_unless, to_number
from bot.adapters.store.tables import drifts
from bot.domain.codec import decode
from bot.domain.drift import DriftRecord
from bot.ports import Vault


class Drifts:
    """The part of the store that looks for drift rest on."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._keys = vault

    async def get_drift(self, project: str, stage: str) -> DriftRecord | None:
        query = select(drifts.c.sealed).where(drifts.c.project == project, drifts.c.stage == stage)
        sealed = await self._database.run(lambda c: c.scalar(query))
        return self._open(sealed, project, stage) if sealed is not None else None

    async def list_drifts(self, project: str = "") -> Sequence[DriftRecord]:
        query = select(drifts).order_by(drifts.c.project, drifts.c.stage)
        if project:
            query = query.where(drifts.c.project == project)
        rows = await self._database.run(lambda c: c.execute(query).all())
        return [self._open(row.sealed, row.project, row.stage) for row in rows]

    async def change_drift(
        self, project: str, stage: str, change: Callable[[DriftRecord], DriftRecord]
    ) -> DriftRecord:
        where = and_(drifts.c.project == project, drifts.c.stage == stage)
        blank = DriftRecord(project, stage, datetime.now(UTC))

        def work(connection: Connection) -> DriftRecord:
            new = insert_unless(connection, drifts).values(project=project, stage=stage, **self._row(blank))
            connection.execute(new.on_conflict_do_nothing())
            sealed = connection.scalar(select(drifts.c.sealed).where(where).with_for_update())
            before = self._open(sealed, project, stage) if sealed is not None else blank
            changed = change(before)
            if changed != before:
                connection.execute(update(drifts).where(where).values(**self._row(changed)))
            return changed

        return await self._database.run(work)

    def _row(self, record: DriftRecord) -> dict[str, object]:
        last = record.last
        return {
            "looked_at": to_number(last.at) if last is not None else None,
            "finding": last.finding.value if last is not None else "",
            "resources": last.count if last is not None else 0,
            "sealed": self._keys.seal(document(record).encode(), _purpose(record.project, record.stage)),
        }

    def _open(self, sealed: bytes, project: str, stage: str) -> DriftRecord:
        return decode(DriftRecord, json.loads(self._keys.open(sealed, _purpose(project, stage))))


def _purpose(project: str, stage: str) -> str:
    return f"drift of {project}/{stage}"
