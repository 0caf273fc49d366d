"""How much waits to be done, for monitoring: no row that has ended is read, only counted."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime

from sqlalchemy import Connection, func, select

from bot.adapters.store.database import Database, to_number, to_time
from bot.adapters.store.tables import deliveries, drifts, looks, outbox, promotions
from bot.domain.drift import Finding
from bot.domain.promotion import State
from bot.ports.measuring import Workload


class Measures:
    """The part of the store that monitoring asks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def measure(self, now: datetime) -> Workload:
        """See `Workloads.measure`; all of it is of one moment."""
        return await self._database.run(lambda connection: _measure(connection, to_number(now)))


def _measure(connection: Connection, now: float) -> Workload:
    pending = deliveries.c.done.is_(False)
    due = (looks.c.number > looks.c.done) & (looks.c.due_at <= now)
    waiting = connection.execute(
        select(func.count(), func.min(deliveries.c.received_at)).where(pending)
    ).one()
    ripe = connection.execute(select(func.count(), func.min(looks.c.due_at)).where(due)).one()
    posts = connection.scalar(select(func.count()).where(outbox.c.number > outbox.c.done))
    ended = connection.scalar(select(func.count()).where(promotions.c.ended.is_(True)))
    documents = connection.scalars(select(promotions.c.document).where(promotions.c.ended.is_(False)))
    found = Counter(_state(text) for text in documents)
    seen = drifts.c.looked_at.is_not(None)
    looked = connection.execute(
        select(drifts.c.finding, func.count(), func.sum(drifts.c.resources), func.min(drifts.c.looked_at))
        .where(seen)
        .group_by(drifts.c.finding)
    ).all()
    return Workload(
        deliveries=waiting[0],
        oldest_delivery=_time(waiting[1]),
        looks=ripe[0],
        oldest_look=_time(ripe[1]),
        posts=posts or 0,
        promotions={state: found[state] for state in State if not state.ended},
        ended=ended or 0,
        drift={finding: sum(row[1] for row in looked if row[0] == finding) for finding in Finding},
        drifted=sum(row[2] for row in looked),
        oldest_drift_look=_time(min((row[3] for row in looked), default=None)),
    )


def _state(text: str) -> State:
    """The state in a promotion's row; what was stored without one was just created."""
    return State(json.loads(text).get("state", State.QUEUED))


def _time(number: float | None) -> datetime | None:
    return to_time(number) if number is not None else None
