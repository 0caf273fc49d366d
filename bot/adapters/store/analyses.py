"""Verifications: one row per run, its measurements in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    delete,
    func,
    insert,
    select,
)
from sqlalchemy.exc import IntegrityError

from bot.adapters.store.database import Database, document, replace_document, to_number
from bot.adapters.store.tables import analysis_runs
from bot.domain.analysis import AnalysisRun
from bot.domain.codec import decode

_KEPT = 20
_NEWEST_FIRST = (analysis_runs.c.created_at.desc(), analysis_runs.c.id.desc())


def _newest(*where: ColumnElement[bool]) -> Select[Any]:
    place = func.row_number().over(partition_by=analysis_runs.c.stage, order_by=_NEWEST_FIRST).label("place")
    # Ranked by id alone: the documents of older rows are not touched.
    ranked = select(analysis_runs.c.id, place).where(*where).subquery()
    query = select(analysis_runs.c.document).join(ranked, ranked.c.id == analysis_runs.c.id)
    return query.where(ranked.c.place == 1)


# Made once, since every look asks them and making a statement takes longer than running it.
_OF_PROJECT = analysis_runs.c.project == bindparam("project")
_NEWEST_OF_EACH = _newest(_OF_PROJECT)
_NEWEST_OF_SOME = _newest(_OF_PROJECT, analysis_runs.c.stage.in_(bindparam("stages", expanding=True)))


class Analyses:
    """The part of the store that verifications rest on."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_run(self, run: AnalysisRun) -> bool:
        def work(connection: Connection) -> None:
            connection.execute(insert(analysis_runs).values(**_row(run)))
            of_stage = and_(analysis_runs.c.project == run.project, analysis_runs.c.stage == run.stage)
            old = select(analysis_runs.c.id).where(of_stage).order_by(*_NEWEST_FIRST).offset(_KEPT)
            gone = connection.scalars(old).all()
            connection.execute(
                delete(analysis_runs).where(analysis_runs.c.id.in_(gone), analysis_runs.c.settled.is_(True))
            )

        try:
            await self._database.run(work)
        except IntegrityError:
            return False
        return True

    async def save_run(self, run: AnalysisRun, *, expected: AnalysisRun) -> bool:
        where = analysis_runs.c.id == run.id
        return await self._database.run(
            lambda c: replace_document(c, analysis_runs, where, expected, _row(run))
        )

    async def get_run(self, run: str) -> AnalysisRun | None:
        found = await self._read(select(analysis_runs.c.document).where(analysis_runs.c.id == run))
        return found[0] if found else None

    async def list_runs(self, project: str, stage: str, *, limit: int = 20) -> Sequence[AnalysisRun]:
        query = select(analysis_runs.c.document).where(
            analysis_runs.c.project == project, analysis_runs.c.stage == stage
        )
        return await self._read(query.order_by(*_NEWEST_FIRST).limit(limit))

    async def list_newest_runs(
        self, project: str, stages: Sequence[str] | None = None
    ) -> Sequence[AnalysisRun]:
        given: dict[str, object] = {"project": project}
        if stages is None:
            return await self._read(_NEWEST_OF_EACH, given)
        return await self._read(_NEWEST_OF_SOME, given | {"stages": list(stages)})

    async def list_open_runs(self) -> Sequence[AnalysisRun]:
        query = select(analysis_runs.c.document).where(analysis_runs.c.settled.is_(False))
        return await self._read(query.order_by(*_NEWEST_FIRST))

    async def _read(self, query: Select[Any], given: Mapping[str, object] | None = None) -> list[AnalysisRun]:
        texts = await self._database.run(lambda c: c.scalars(query, given).all())
        return [decode(AnalysisRun, json.loads(text)) for text in texts]


def _row(run: AnalysisRun) -> dict[str, object]:
    return {
        "id": run.id,
        "project": run.project,
        "stage": run.stage,
        "settled": run.settled,
        "created_at": to_number(run.created_at),
        "document": document(run),
    }
