"""Forgetting what nobody needs any longer, a batch of rows in each transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import Connection, and_, delete, func, or_, select

from bot.adapters.store.database import Database, insert_unless, take_turns, to_number, to_time
from bot.adapters.store.freight_cache import stamp_freight
from bot.adapters.store.tables import (
    analysis_runs,
    answers,
    applied,
    bundles,
    deliveries,
    discoveries,
    events,
    freight,
    looks,
    merges,
    outbox,
    previews,
    promotions,
    stages,
    steps,
)
from bot.domain.analysis import AnalysisRun
from bot.domain.codec import decode
from bot.domain.discovery import decode_discovery
from bot.domain.freight import FreightName, FreightStatus
from bot.domain.promotion import Promotion
from bot.domain.retention import FreightAge, FreightNeeds, Horizon, select_forgettable
from bot.ports import AppliedState, StageRecord

_BATCH = 200
_REPORTED = 2
"""Promotions of a Stage, newest first, that are reported again at every look: the unfinished and the last one."""
_BLOCKED = promotions.c.document.contains('"blocked":true')
"""Failed Promotions that `/retry` would take up; a false find only keeps a row."""


class Retention:
    """The part of the store that forgets. Each method forgets one batch, and answers how many rows it was about."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def forget_promotions(self, horizon: Horizon) -> int:
        return await self._database.run(lambda c: _forget_promotions(c, horizon))

    async def forget_freight(self, horizon: Horizon) -> int:
        projects = await self._database.run(
            lambda c: c.scalars(select(freight.c.project).distinct().order_by(freight.c.project)).all()
        )
        for project in projects:
            # Reading all Freight takes a while, in which nothing is locked; what is needed is asked again below.
            names = await self._database.run(lambda c, p=project: _forgettable(c, p, horizon))  # type: ignore[misc]
            gone = 0
            for start in range(0, len(names), _BATCH):
                batch = names[start : start + _BATCH]
                gone += await self._database.run(lambda c, p=project, b=batch: _forget_freight(c, p, b))  # type: ignore[misc]
                if gone:
                    return gone
        return 0

    async def forget_deliveries(self, horizon: Horizon) -> int:
        asked = select(looks.c.key).where(looks.c.kind == "command", looks.c.number > looks.c.done)
        old = (
            select(deliveries.c.seq)
            .where(
                deliveries.c.done.is_(True),
                deliveries.c.received_at < to_number(horizon.before),
                deliveries.c.id.not_in(asked),
            )
            .order_by(deliveries.c.seq)
            .limit(_BATCH)
        )

        def work(connection: Connection) -> int:
            found = connection.scalars(old).all()
            return connection.execute(delete(deliveries).where(deliveries.c.seq.in_(found))).rowcount

        return await self._database.run(work)

    async def forget_events(self, horizon: Horizon) -> int:
        def work(connection: Connection) -> int:
            newest = connection.scalar(select(func.max(events.c.seq))) or 0
            old = (
                select(events.c.seq)
                .where(
                    events.c.seq <= newest - horizon.events,
                    events.c.at < to_number(horizon.before),
                    events.c.promotion.not_in(select(promotions.c.id)),
                )
                .order_by(events.c.seq)
                .limit(_BATCH)
            )
            found = connection.scalars(old).all()
            return connection.execute(delete(events).where(events.c.seq.in_(found))).rowcount

        return await self._database.run(work)

    async def forget_posts(self, horizon: Horizon) -> int:
        def work(connection: Connection) -> int:
            shown = _shown(connection)
            where = and_(outbox.c.number <= outbox.c.done, outbox.c.due_at < to_number(horizon.before))
            keys = connection.scalars(select(outbox.c.key).where(where).order_by(outbox.c.due_at)).all()
            gone = [key for key in keys if shown.isdisjoint(key.split("/"))][:_BATCH]
            # Asked again, since a post that is wished for meanwhile must not get lost.
            return connection.execute(delete(outbox).where(where, outbox.c.key.in_(gone))).rowcount

        return await self._database.run(work)


def _forget_promotions(connection: Connection, horizon: Horizon) -> int:
    newest = (promotions.c.created_at.desc(), promotions.c.id.desc())
    place = func.row_number().over(partition_by=(promotions.c.project, promotions.c.stage), order_by=newest)
    ranked = select(promotions.c.id, place.label("place")).where(promotions.c.ended.is_(True)).subquery()
    old = (
        select(promotions.c.id, promotions.c.url, promotions.c.document)
        .join(ranked, ranked.c.id == promotions.c.id)
        .where(
            ranked.c.place > horizon.promotions,
            promotions.c.created_at < to_number(horizon.before),
            promotions.c.id.not_in(_named_promotions(connection)),
            ~_BLOCKED,
        )
        .order_by(promotions.c.created_at)
        .limit(_BATCH)
        .with_for_update(of=promotions)
    )
    rows = connection.execute(old).all()
    for row in rows:
        promotion = decode(Promotion, json.loads(row.document))
        if promotion.pull is not None and promotion.follows is None:
            merge = {"url": row.url, "pull": promotion.pull, "commit": promotion.merge_commit or ""}
            connection.execute(insert_unless(connection, merges).values(**merge).on_conflict_do_nothing())
    gone = [row.id for row in rows]
    for table in (steps, previews, bundles, answers, events):
        connection.execute(delete(table).where(table.c.promotion.in_(gone)))
    return connection.execute(delete(promotions).where(promotions.c.id.in_(gone))).rowcount


def _named_promotions(connection: Connection) -> set[str]:
    """Promotions that something else names: open verifications, holds, and the last apply of every state."""
    open_runs = select(analysis_runs.c.document).where(analysis_runs.c.settled.is_(False))
    named = {decode(AnalysisRun, json.loads(text)).promotion for text in connection.scalars(open_runs)}
    for text in connection.scalars(select(stages.c.document)):
        named |= {hold.promotion for hold in decode(StageRecord, json.loads(text)).holds.values()}
    for text in connection.scalars(select(applied.c.document)):
        named.add(decode(AppliedState, json.loads(text)).promotion)
    return named


def _forgettable(connection: Connection, project: str, horizon: Horizon) -> Sequence[FreightName]:
    of_project = freight.c.project == project
    old = select(func.count()).where(of_project, freight.c.discovered_at < to_number(horizon.before))
    if (connection.scalar(old) or 0) == 0:
        return ()
    query = select(freight.c.name, freight.c.discovered_at, freight.c.document).where(of_project)
    ages = [
        FreightAge(row.name, json.loads(row.document)["origin"]["name"], to_time(row.discovered_at))
        for row in connection.execute(query)
    ]
    return select_forgettable(ages, _needs(connection, project), horizon)


def _forget_freight(connection: Connection, project: str, names: Sequence[FreightName]) -> int:
    """Forget what still nobody needs; a Promotion is created before this, and seen, or after it."""
    take_turns(connection, "retention")
    where = and_(freight.c.project == project, freight.c.name.in_(names))
    locked = connection.scalars(select(freight.c.name).where(where).with_for_update()).all()
    needs = _needs(connection, project)
    gone = [name for name in locked if name not in needs]
    removed = connection.execute(delete(freight).where(where, freight.c.name.in_(gone))).rowcount
    stamp_freight(connection, project)
    return removed


def _needs(connection: Connection, project: str) -> FreightNeeds:
    present: set[FreightName] = set()
    needed: set[FreightName] = set()
    for text in connection.scalars(select(stages.c.document).where(stages.c.project == project)):
        record = decode(StageRecord, json.loads(text))
        for place, collection in enumerate(record.history):
            (needed if place else present).update(collection.items.values())
        needed.update(record.quarantine, (hold.freight for hold in record.holds.values()))
    query = select(promotions.c.document).where(
        promotions.c.project == project, or_(promotions.c.ended.is_(False), _BLOCKED)
    )
    for text in connection.scalars(query):
        promotion = decode(Promotion, json.loads(text))
        names = {promotion.freight.name, *(item.name for item in promotion.collection)}
        (needed if promotion.state.ended else present).update(names)
    runs = select(analysis_runs.c.document).where(
        analysis_runs.c.project == project, analysis_runs.c.settled.is_(False)
    )
    for text in connection.scalars(runs):
        present.update(decode(AnalysisRun, json.loads(text)).freight)
    for text in connection.scalars(select(discoveries.c.found).where(discoveries.c.project == project)):
        # Forgotten, it would be made anew of the same artifacts, and then be the newest.
        needed.add(FreightName(decode_discovery(json.loads(text)).freight))
    for row in connection.execute(
        select(freight.c.name, freight.c.status).where(freight.c.project == project)
    ):
        status = decode(FreightStatus, json.loads(row.status))
        if status.currently_in:
            present.add(row.name)
        if status.approved_for:
            needed.add(row.name)
    return FreightNeeds(frozenset(present), frozenset(needed))


def _shown(connection: Connection) -> set[str]:
    """Parts of the keys of posts that are wished for again and again: forgotten, they would be posted twice."""
    newest = (promotions.c.created_at.desc(), promotions.c.id.desc())
    place = func.row_number().over(partition_by=(promotions.c.project, promotions.c.stage), order_by=newest)
    ranked = select(promotions.c.id, place.label("place")).subquery()
    query = (
        select(promotions.c.document)
        .join(ranked, ranked.c.id == promotions.c.id)
        .where(or_(ranked.c.place <= _REPORTED, promotions.c.ended.is_(False)))
    )
    found: set[str] = set()
    for text in connection.scalars(query):
        promotion = decode(Promotion, json.loads(text))
        commits = (promotion.head, promotion.merge_commit, promotion.release_commit)
        found |= {promotion.id, *promotion.heads, *(str(commit) for commit in commits if commit is not None)}
        if promotion.pull is not None:
            found.add(str(promotion.pull))
    return found
