"""Deliveries, looks, the outbox and commands: what waits to be done."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import Connection, RowMapping, insert, select, update
from sqlalchemy.exc import IntegrityError

from bot.adapters.store.database import Database, to_number, to_time
from bot.adapters.store.tables import commands, deliveries, looks, outbox
from bot.ports import Delivery, DueLook, DuePost, Look, Post


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
            batch, self._arriving = self._arriving, []
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
        query = select(deliveries).where(deliveries.c.done.is_(False)).order_by(deliveries.c.seq).limit(limit)
        rows = await self._database.run(lambda c: c.execute(query).mappings().all())
        return [_delivery(row) for row in rows]

    async def finish_delivery(self, delivery_id: str, wanted: Sequence[Look], note: str) -> None:
        now = to_number(datetime.now(UTC))

        def work(connection: Connection) -> None:
            for look in wanted:
                _request(connection, look, now)
            done = update(deliveries).where(deliveries.c.id == delivery_id).values(done=True, note=note)
            connection.execute(done)

        await self._database.run(work)

    # -- looks -----------------------------------------------------------------------------------------------------

    async def request_looks(self, wanted: Sequence[Look], *, at: datetime | None = None) -> None:
        now = to_number(datetime.now(UTC))

        def work(connection: Connection) -> None:
            for look in wanted:
                if at is None:
                    _request(connection, look, now)
                else:
                    _request_later(connection, look, to_number(at))

        if wanted:
            await self._database.run(work)

    async def list_due_looks(self, now: datetime) -> Sequence[DueLook]:
        moment = to_number(now)

        def work(connection: Connection) -> list[DueLook]:
            # A timer that has come is a wish like any other.
            ripe = (looks.c.later_at.is_not(None)) & (looks.c.later_at <= moment)
            if connection.execute(select(looks.c.kind).where(ripe).limit(1)).first() is not None:
                connection.execute(
                    update(looks)
                    .where(ripe)
                    .values(number=looks.c.number + 1, due_at=looks.c.later_at, later_at=None)
                )
            query = (
                select(looks)
                .where(looks.c.number > looks.c.done, looks.c.due_at <= moment)
                .order_by(looks.c.due_at)
            )
            return [DueLook(row.kind, row.key, row.number) for row in connection.execute(query)]

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

        def work(connection: Connection) -> bool:
            row = connection.execute(select(outbox).where(outbox.c.key == post.key)).first()
            if row is None:
                connection.execute(
                    insert(outbox).values(
                        key=post.key,
                        kind=post.kind,
                        lane=post.lane,
                        rank=post.rank,
                        payload=payload,
                        number=1,
                        done=0,
                        attempts=0,
                        due_at=now,
                    )
                )
                return True
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
        query = (
            select(outbox)
            .where(outbox.c.number > outbox.c.done, outbox.c.due_at <= to_number(now))
            .order_by(outbox.c.rank, outbox.c.due_at)
            .limit(limit)
        )
        rows = await self._database.run(lambda c: c.execute(query).all())
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
            .values(attempts=due.attempts + 1, due_at=to_number(until), error=error[:2000])
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
            query = select(commands).where(
                commands.c.repository == repository, commands.c.comment == str(comment)
            )
            if connection.execute(query).first() is None:
                connection.execute(insert(commands).values(repository=repository, comment=str(comment)))

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


def _request(connection: Connection, look: Look, now: float) -> None:
    where = (looks.c.kind == look.kind, looks.c.key == look.key)
    changed = connection.execute(
        update(looks).where(*where).values(number=looks.c.number + 1, due_at=now, reason=look.reason)
    )
    if changed.rowcount == 0:
        row = {
            "kind": look.kind,
            "key": look.key,
            "number": 1,
            "done": 0,
            "due_at": now,
            "reason": look.reason,
        }
        connection.execute(insert(looks).values(**row))


def _request_later(connection: Connection, look: Look, at: float) -> None:
    """Set the timer of a look; of two times the earlier one wins."""
    row = connection.execute(select(looks).where(looks.c.kind == look.kind, looks.c.key == look.key)).first()
    if row is None:
        values = {
            "kind": look.kind,
            "key": look.key,
            "number": 0,
            "done": 0,
            "due_at": 0.0,
            "reason": look.reason,
        }
        connection.execute(insert(looks).values(**values, later_at=at))
    elif row.later_at is None or at < row.later_at:
        connection.execute(
            update(looks).where(looks.c.kind == look.kind, looks.c.key == look.key).values(later_at=at)
        )
