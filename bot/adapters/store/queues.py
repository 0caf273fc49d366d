"""Deliveries, looks, the outbox and commands: what waits to be done."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import BindParameter, Connection, RowMapping, bindparam, case, insert, select, update
from sqlalchemy.exc import IntegrityError

from bot.adapters.store.database import Database, insert_unless, plain_text, to_number, to_time
from bot.adapters.store.tables import commands, deliveries, looks, outbox
from bot.ports import Delivery, DueLook, DuePost, Look, Post

_BATCH = 500
"""Deliveries of one commit; a statement may not have many thousands of values."""

# What an idle bot asks ten times a second, made once: making a statement costs more than asking.
_NOW: BindParameter[float] = bindparam("now")
_LIMIT: BindParameter[int] = bindparam("limit")
_PENDING = select(deliveries).where(deliveries.c.done.is_(False)).order_by(deliveries.c.seq).limit(_LIMIT)
_RIPE = looks.c.later_at.is_not(None) & (looks.c.later_at <= _NOW)
_IS_RIPE = select(looks.c.kind).where(_RIPE).limit(1)
_RIPEN = update(looks).where(_RIPE).values(number=looks.c.number + 1, due_at=looks.c.later_at, later_at=None)
_DUE_LOOKS = (
    select(looks).where(looks.c.number > looks.c.done, looks.c.due_at <= _NOW).order_by(looks.c.due_at)
)
_DUE_POSTS = (
    select(outbox)
    .where(outbox.c.number > outbox.c.done, outbox.c.due_at <= _NOW)
    .order_by(outbox.c.rank, outbox.c.due_at)
    .limit(_LIMIT)
)


class Queues:
    """The part of the store that other parts of the program take work from."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._arriving: list[tuple[Delivery, asyncio.Future[bool]]] = []
        self._writer: asyncio.Task[None] | None = None

    # -- deliveries ------------------------------------------------------------------------------------------------

    async def store_delivery(self, delivery: Delivery) -> bool:
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._arriving.append((delivery, answer))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_arrivals())
        return await answer

    async def _write_arrivals(self) -> None:
        """Store all that has arrived in one commit, again while more arrive."""
        while self._arriving:
            batch, self._arriving = self._arriving[:_BATCH], self._arriving[_BATCH:]
            try:
                fresh = await self._database.run(lambda c, b=batch: _insert_deliveries(c, [d for d, _ in b]))  # type: ignore[misc]
            except Exception as error:  # noqa: BLE001  Every waiting request must hear of it.
                for _, answer in batch:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            for delivery, answer in batch:
                if not answer.done():
                    answer.set_result(delivery.id in fresh)
                # A twin in the same commit is no longer the first.
                fresh.discard(delivery.id)

    async def get_delivery(self, delivery_id: str) -> Delivery | None:
        query = select(deliveries).where(deliveries.c.id == delivery_id)
        row = await self._database.run(lambda c: c.execute(query).mappings().first())
        return _delivery(row) if row is not None else None

    async def list_pending_deliveries(self, limit: int = 200) -> Sequence[Delivery]:
        rows = await self._database.run(lambda c: c.execute(_PENDING, {"limit": limit}).mappings().all())
        return [_delivery(row) for row in rows]

    async def finish_delivery(self, delivery_id: str, wanted: Sequence[Look], note: str) -> None:
        now = to_number(datetime.now(UTC))

        def work(connection: Connection) -> None:
            for look in _in_order(wanted):
                _request(connection, look, now)
            done = (
                update(deliveries)
                .where(deliveries.c.id == delivery_id)
                .values(done=True, note=plain_text(note))
            )
            connection.execute(done)

        await self._database.run(work)

    # -- looks -----------------------------------------------------------------------------------------------------

    async def request_looks(self, wanted: Sequence[Look], *, at: datetime | None = None) -> None:
        def work(connection: Connection) -> None:
            if at is None:
                request_now(connection, wanted)
                return
            for look in _in_order(wanted):
                _request_later(connection, look, to_number(at))

        if wanted:
            await self._database.run(work)

    async def list_due_looks(self, now: datetime) -> Sequence[DueLook]:
        moment = {"now": to_number(now)}

        def work(connection: Connection) -> list[DueLook]:
            # A timer that has come is a wish like any other.
            if connection.execute(_IS_RIPE, moment).first() is not None:
                connection.execute(_RIPEN, moment)
            return [DueLook(row.kind, row.key, row.number) for row in connection.execute(_DUE_LOOKS, moment)]

        return await self._database.run(work)

    async def finish_look(self, look: DueLook) -> None:
        done = (
            update(looks)
            .where(looks.c.kind == look.kind, looks.c.key == look.key, looks.c.done < look.number)
            .values(done=look.number)
        )
        await self._database.run(lambda c: c.execute(done).rowcount)

    # -- outbox ----------------------------------------------------------------------------------------------------

    async def queue_post(self, post: Post) -> bool:
        payload = json.dumps(post.payload, sort_keys=True)
        now = to_number(datetime.now(UTC))

        fresh = {
            "kind": post.kind,
            "lane": post.lane,
            "rank": post.rank,
            "number": 1,
            "done": 0,
            "attempts": 0,
            "due_at": now,
        }

        def work(connection: Connection) -> bool:
            new = insert_unless(connection, outbox).values(key=post.key, payload=payload, **fresh)
            added = new.on_conflict_do_nothing().returning(outbox.c.key)
            if connection.execute(added).first() is not None:
                return True
            # Two replicas that change a post at once must not give both versions the same number.
            query = select(outbox.c.payload, outbox.c.number).where(outbox.c.key == post.key)
            row = connection.execute(query.with_for_update()).one()
            if row.payload == payload:
                return False
            connection.execute(
                update(outbox)
                .where(outbox.c.key == post.key)
                .values(payload=payload, number=row.number + 1, attempts=0, due_at=now, error="")
            )
            return True

        return await self._database.run(work)

    async def list_due_posts(self, now: datetime, limit: int = 100) -> Sequence[DuePost]:
        asked = {"now": to_number(now), "limit": limit}
        rows = await self._database.run(lambda c: c.execute(_DUE_POSTS, asked).all())
        return [
            DuePost(
                Post(row.key, row.kind, row.lane, row.rank, json.loads(row.payload)), row.number, row.attempts
            )
            for row in rows
        ]

    async def finish_post(self, due: DuePost) -> None:
        done = (
            update(outbox)
            .where(outbox.c.key == due.post.key, outbox.c.done < due.number)
            .values(done=due.number)
        )
        await self._database.run(lambda c: c.execute(done).rowcount)

    async def postpone_post(self, due: DuePost, until: datetime, error: str) -> None:
        later = (
            update(outbox)
            .where(outbox.c.key == due.post.key, outbox.c.number == due.number)
            .values(attempts=due.attempts + 1, due_at=to_number(until), error=plain_text(error[:2000]))
        )
        await self._database.run(lambda c: c.execute(later).rowcount)

    # -- commands --------------------------------------------------------------------------------------------------

    async def is_command_done(self, repository: str, comment: int | str) -> bool:
        query = select(commands).where(
            commands.c.repository == repository, commands.c.comment == str(comment)
        )
        return await self._database.run(lambda c: c.execute(query).first() is not None)

    async def finish_command(self, repository: str, comment: int | str) -> None:
        def work(connection: Connection) -> None:
            new = insert_unless(connection, commands).values(repository=repository, comment=str(comment))
            connection.execute(new.on_conflict_do_nothing())

        await self._database.run(work)


def _insert_deliveries(connection: Connection, batch: Sequence[Delivery]) -> set[str]:
    """Insert those that are not known; returns the ids that are new."""
    ids = [delivery.id for delivery in batch]
    known = set(connection.scalars(select(deliveries.c.id).where(deliveries.c.id.in_(ids))))
    fresh = {delivery.id: delivery for delivery in batch if delivery.id not in known}
    if fresh:
        rows = [
            {
                "id": d.id,
                "source": d.source,
                "event": d.event,
                "receiver": d.receiver,
                "body": d.body,
                "received_at": to_number(d.received_at),
                "done": False,
                "note": "",
            }
            for d in fresh.values()
        ]
        try:
            with connection.begin_nested():
                connection.execute(insert(deliveries), rows)
        except IntegrityError:
            # Another replica stored one of them between our look and our write.
            return _insert_deliveries(connection, batch)
    return set(fresh)


def _delivery(row: RowMapping) -> Delivery:
    return Delivery(
        id=row["id"],
        source=row["source"],
        event=row["event"],
        body=row["body"],
        received_at=to_time(row["received_at"]),
        receiver=row["receiver"],
    )


def _in_order(wanted: Sequence[Look]) -> list[Look]:
    """Looks in the order in which everybody changes their rows, so that no two transactions wait for each other."""
    return sorted(wanted, key=lambda look: (look.kind, look.key))


def request_now(connection: Connection, wanted: Sequence[Look]) -> None:
    """Ask for looks, as a part of the transaction that makes them necessary."""
    now = to_number(datetime.now(UTC))
    for look in _in_order(wanted):
        _request(connection, look, now)


def _request(connection: Connection, look: Look, now: float) -> None:
    row = {
        "kind": look.kind,
        "key": look.key,
        "number": 1,
        "done": 0,
        "due_at": now,
        "reason": plain_text(look.reason),
    }
    again = {"number": looks.c.number + 1, "due_at": now, "reason": plain_text(look.reason)}
    new = insert_unless(connection, looks).values(**row)
    connection.execute(new.on_conflict_do_update(index_elements=["kind", "key"], set_=again))


def _request_later(connection: Connection, look: Look, at: float) -> None:
    """Set the timer of a look; of two times the earlier one wins."""
    row = {
        "kind": look.kind,
        "key": look.key,
        "number": 0,
        "done": 0,
        "due_at": 0.0,
        "reason": plain_text(look.reason),
    }
    earlier = case((looks.c.later_at <= at, looks.c.later_at), else_=at)
    new = insert_unless(connection, looks).values(**row, later_at=at)
    connection.execute(new.on_conflict_do_update(index_elements=["kind", "key"], set_={"later_at": earlier}))
