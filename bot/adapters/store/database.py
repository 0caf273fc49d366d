"""One database and the threads that talk to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import QueuePool

from bot.adapters.store.tables import SCHEMA, meta, metadata
from bot.domain.codec import encode
from bot.ports import TerminalError, TransientError

T = TypeVar("T")


@dataclass(slots=True)
class Database:
    """Runs units of work, each one transaction, in a small pool of threads."""

    engine: Engine
    threads: ThreadPoolExecutor

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Do the work in one transaction; raises TransientError if the database cannot be reached or is locked."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, self._transact, work)

    def _transact(self, work: Callable[[Connection], T]) -> T:
        try:
            with self.engine.begin() as connection:
                return work(connection)
        except OperationalError as error:
            raise TransientError(f"the database did not answer: {error.orig}", retry_after=1.0) from error

    def close(self) -> None:
        """Wait for what runs, then close every connection."""
        self.threads.shutdown(wait=True)
        self.engine.dispose()


def open_database(url: str) -> Database:
    """Open (and on first use create) the tables. Raises TerminalError if a newer program wrote them."""
    sqlite = url.startswith("sqlite:")
    if sqlite:
        Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(
            url, poolclass=QueuePool, pool_size=2, connect_args={"check_same_thread": False}
        )
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_immediate)
    else:
        engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1), pool_pre_ping=True)
    metadata.create_all(engine)
    _check_schema(engine)
    # SQLite has one writer, so more threads would only wait for each other.
    return Database(engine, ThreadPoolExecutor(1 if sqlite else 8, thread_name_prefix="store"))


def _prepare_sqlite(connection: object, _record: object) -> None:
    assert hasattr(connection, "execute")
    # The driver must not begin transactions by itself; `_begin_immediate` does.
    connection.isolation_level = None  # type: ignore[attr-defined]
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _check_schema(engine: Engine) -> None:
    with engine.begin() as connection:
        found = connection.scalar(select(meta.c.value).where(meta.c.name == "schema"))
        if found is None:
            connection.execute(meta.insert().values(name="schema", value=str(SCHEMA)))
        elif int(found) > SCHEMA:
            raise TerminalError(
                f"the database has schema {found}, this program knows {SCHEMA}; start the newer one"
            )


def document(value: object) -> str:
    """A domain value as the text of its row; equal values give equal texts."""
    return json.dumps(encode(value), sort_keys=True, separators=(",", ":"))


def to_number(at: datetime) -> float:
    """Seconds since 1970, as times are stored."""
    return at.timestamp()


def to_time(number: float) -> datetime:
    """The time of a stored number."""
    return datetime.fromtimestamp(number, UTC)
