"""Saved plans, what was applied last, the pipeline in force and what Warehouses found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy import Connection, delete, select, update

from bot.adapters.store.audit import append_audit
from bot.adapters.store.database import Database, document, put_row, run_again, save_row, to_number, to_time
from bot.adapters.store.tables import applied, bundles, discoveries, pipelines
from bot.domain.audit import AuditEntry
from bot.domain.codec import decode
from bot.domain.promotion import PromotionId
from bot.domain.terraform import Output
from bot.domain.values import Json
from bot.ports import AppliedState


class Plans:
    """The part of the store that previews and Terraform's steps rest on."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # -- plans -----------------------------------------------------------------------------------------------------

    async def keep_bundle(self, promotion: PromotionId, name: str, sealed: bytes) -> None:
        await save_row(self._database, bundles, {"promotion": promotion, "name": name}, {"sealed": sealed})

    async def get_bundle(self, promotion: PromotionId, name: str) -> bytes | None:
        query = select(bundles.c.sealed).where(bundles.c.promotion == promotion, bundles.c.name == name)
        return await self._database.run(lambda c: c.scalar(query))

    async def drop_bundles(self, promotion: PromotionId) -> None:
        gone = delete(bundles).where(bundles.c.promotion == promotion)
        await self._database.run(lambda c: c.execute(gone).rowcount)

    async def find_applied(self, state: str) -> AppliedState | None:
        query = select(applied.c.document).where(applied.c.state == state)
        text = await self._database.run(lambda c: c.scalar(query))
        return _read_applied(text) if text is not None else None

    async def record_applied(self, record: AppliedState) -> None:
        def work(connection: Connection) -> None:
            put_row(connection, applied, {"state": record.state}, {"document": document(record)})
            append_audit(connection, _told_apply(record))

        await run_again(self._database, work)

    async def record_outputs(self, state: str, outputs: Mapping[str, Output]) -> None:
        def work(connection: Connection) -> None:
            where = applied.c.state == state
            text = connection.scalar(select(applied.c.document).where(where).with_for_update())
            if text is not None:
                known = replace(_read_applied(text), outputs=dict(outputs))
                connection.execute(update(applied).where(where).values(document=document(known)))

        await self._database.run(work)

    # -- pipeline and discoveries ------------------------------------------------------------------------------------

    async def save_pipeline(self, revision: str, files: Mapping[str, str]) -> None:
        values = {"revision": revision, "files": json.dumps(dict(files), sort_keys=True)}

        def work(connection: Connection) -> None:
            before = connection.scalar(select(pipelines.c.revision))
            put_row(connection, pipelines, {"id": 1}, values)
            if before != revision:
                message = f"the configuration {revision} is in force" + (
                    f", after {before}" if before else ""
                )
                append_audit(connection, AuditEntry(datetime.now(UTC), "config", message))

        await run_again(self._database, work)

    async def get_pipeline(self) -> tuple[str, Mapping[str, str]] | None:
        row = await self._database.run(lambda c: c.execute(select(pipelines)).first())
        return (row.revision, json.loads(row.files)) if row is not None else None

    async def get_pipeline_revision(self) -> str:
        return await self._database.run(lambda c: c.scalar(select(pipelines.c.revision))) or ""

    async def add_discovery(self, project: str, warehouse: str, found: Json, at: datetime) -> None:
        values = {"found": json.dumps(found), "at": to_number(at)}
        await save_row(self._database, discoveries, {"project": project, "warehouse": warehouse}, values)

    async def get_discovery(self, project: str, warehouse: str) -> tuple[Json, datetime] | None:
        query = select(discoveries).where(
            discoveries.c.project == project, discoveries.c.warehouse == warehouse
        )
        row = await self._database.run(lambda c: c.execute(query).first())
        return (json.loads(row.found), to_time(row.at)) if row is not None else None

    async def list_discoveries(self, project: str) -> Mapping[str, tuple[Json, datetime]]:
        query = select(discoveries).where(discoveries.c.project == project)
        rows = await self._database.run(lambda c: c.execute(query).all())
        return {row.warehouse: (json.loads(row.found), to_time(row.at)) for row in rows}


def _told_apply(record: AppliedState) -> AuditEntry:
    how = "was applied" if record.succeeded else "failed in the middle of its apply"
    message = f"the Terraform state {record.state} {how}, with inputs {record.inputs} at {record.commit}"
    return AuditEntry(record.at, "apply", message, promotion=record.promotion)


def _read_applied(text: str) -> AppliedState:
    return decode(AppliedState, json.loads(text))
