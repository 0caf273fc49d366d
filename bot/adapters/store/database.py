"""One database and the threads that talk to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Table,
    and_,
    create_engine,
    event,
    insert,
    inspect,
    make_url,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool

from bot.adapters.store.tables import SCHEMA, meta, metadata
from bot.domain.codec import decode, encode
from bot.domain.doctor_facts import DatabaseFacts
from bot.ports import TerminalError, TransientError

T = TypeVar("T")

_TWIN_FAILURES = ("40001", "40P01")
"""PostgreSQL's codes for a transaction that was undone because of another one, so that it may be done again."""

_TRIES = 5

_CONNECTION = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "application_name": "lockstep",
}
"""A server that is gone without a word is noticed within half a minute (libpq, "Parameter Key Words")."""


@dataclass(slots=True)
class Database:
    """Runs units of work, each one transaction, in a small pool of threads."""

    engine: Engine
    threads: ThreadPoolExecutor

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Do the work in one transaction; raises TransientError if the database cannot be reached or is locked.

        The work may be done again from its start, in a new transaction, after the database has undone it.
        """
        return await asyncio.get_running_loop().run_in_executor(self.threads, self._transact, work)

    def _transact(self, work: Callable[[Connection], T]) -> T:
        for rest in reversed(range(_TRIES)):
            try:
                with self.engine.begin() as connection:
                    return work(connection)
            except (OperationalError, InterfaceError) as error:
                if rest and getattr(error.orig, "sqlstate", None) in _TWIN_FAILURES:
                    continue
                raise TransientError(f"the database did not answer: {error.orig}", retry_after=1.0) from error
            except PoolTimeout as error:
                raise TransientError(f"the database is too busy: {error}", retry_after=1.0) from error
        raise AssertionError("unreachable: the last try returns or raises")

    def close(self) -> None:
        """Wait for what runs, then close every connection."""
        self.threads.shutdown(wait=True)
        self.engine.dispose()


def open_database(url: str) -> Database:
    """Open (and on first use create) the tables.

    Raises TerminalError if the address is wrong, the database cannot be reached or may not be changed, or a newer
    program wrote it.
    """
    if url.startswith("sqlite:///"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(
            url, poolclass=QueuePool, pool_size=2, connect_args={"check_same_thread": False}
        )
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_immediate)
        # SQLite has one writer, so more threads would only wait for each other.
        threads = 1
    else:
        engine = _connect_postgres(url)
        threads = 8
    try:
        _prepare_schema(engine)
    except DBAPIError as error:
        engine.dispose()
        shown = engine.url.render_as_string(hide_password=True)
        said = str(error.orig).strip().partition("\n")[0]
        raise TerminalError(
            f"the tables at {shown} cannot be opened or made: {said}; check that the database is "
            "there, and that its user owns it (PostgreSQL lets no other create tables)"
        ) from error
    except TerminalError:
        engine.dispose()
        raise
    return Database(engine, ThreadPoolExecutor(threads, thread_name_prefix="store"))


def _connect_postgres(url: str) -> Engine:
    try:
        address = make_url(url)
    except ArgumentError:
        address = None
    if address is None or address.drivername not in ("postgresql", "postgres"):
        # The address is not repeated, since it may hold a password.
        raise TerminalError("the database's address must begin with sqlite:/// or postgresql://")
    return create_engine(
        address.set(drivername="postgresql+psycopg"),
        pool_pre_ping=True,
        pool_timeout=10,
        connect_args=_CONNECTION,
    )


def _prepare_sqlite(connection: object, _record: object) -> None:
    assert hasattr(connection, "execute")
    # The driver must not begin transactions by itself; `_begin_immediate` does.
    connection.isolation_level = None  # type: ignore[attr-defined]
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _prepare_schema(engine: Engine) -> None:
    """Make what is missing, unless a newer program was here before."""
    with engine.begin() as connection:
        take_turns(connection, "schema")
        meta.create(connection, checkfirst=True)
        found = connection.scalar(select(meta.c.value).where(meta.c.name == "schema"))
        if found is not None and int(found) > SCHEMA:
            raise TerminalError(
                f"the database has schema {found}, this program knows {SCHEMA}; start the newer one"
            )
        metadata.create_all(connection)
        if found is None:
            connection.execute(meta.insert().values(name="schema", value=str(SCHEMA)))


def inspect_database(url: str, key_digest: str) -> DatabaseFacts:
    """What is at an address, looked at without changing it; `key_digest` is our vault's, empty if it has no key."""
    address, engine = "its address", None
    try:
        if url.startswith("sqlite:///"):
            path = Path(url.removeprefix("sqlite:///"))
            address = str(path)
            if not path.exists():
                return DatabaseFacts(address, SCHEMA)
            engine = create_engine(f"sqlite:///file:{quote(address)}?mode=ro&uri=true")
        else:
            engine = _connect_postgres(url)
            address = engine.url.render_as_string(hide_password=True)
        with engine.connect() as connection:
            if not inspect(connection).has_table(meta.name):
                return DatabaseFacts(address, SCHEMA)
            noted = {row.name: row.value for row in connection.execute(select(meta))}
    except TerminalError as error:
        return DatabaseFacts(address, SCHEMA, problem=str(error))
    except SQLAlchemyError as error:
        said = str(error.orig if isinstance(error, DBAPIError) else error).strip().partition("\n")[0]
        return DatabaseFacts(address, SCHEMA, problem=f"cannot be read: {said}")
    finally:
        if engine is not None:
            engine.dispose()
    schema = int(noted["schema"]) if noted.get("schema", "").isdecimal() else None
    same = noted["vault"] == key_digest if key_digest and "vault" in noted else None
    return DatabaseFacts(address, SCHEMA, schema, same)


def bind_once(database: Database, name: str, value: str, refused: str) -> None:
    """Note a fact about the database at the first start; raises TerminalError with a text if another was noted."""
    with database.engine.begin() as connection:
        new = insert_unless(connection, meta).values(name=name, value=value)
        connection.execute(new.on_conflict_do_nothing())
        if connection.scalar(select(meta.c.value).where(meta.c.name == name)) != value:
            raise TerminalError(refused)


def take_turns(connection: Connection, what: str) -> None:
    """Be the only transaction of all replicas that does this, until it ends; on SQLite it always is."""
    if connection.dialect.name == "postgresql":
        connection.execute(
            text("SELECT pg_advisory_xact_lock(hashtextextended(:what, 0))"), {"what": f"lockstep {what}"}
        )


def insert_unless(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """An insert into a table that can say what happens when the row is there already (`on_conflict_…`)."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


def put_row(
    connection: Connection, table: Table, key: Mapping[str, object], values: Mapping[str, object]
) -> None:
    """Insert a row, or replace the one that has its key."""
    where = and_(*(table.c[name] == value for name, value in key.items()))
    if connection.execute(update(table).where(where).values(**values)).rowcount == 0:
        connection.execute(insert(table).values(**key, **values))


def replace_document(
    connection: Connection,
    table: Table,
    where: ColumnElement[bool],
    expected: object,
    values: Mapping[str, object],
) -> bool:
    """Replace the one row found by `where` if its document still says `expected`; False if it does not.

    A row that an older program wrote lacks newer fields, so its text is another although it says the same.
    """
    same = update(table).where(where, table.c.document == document(expected)).values(**values)
    if connection.execute(same).rowcount == 1:
        return True
    found = connection.scalar(select(table.c.document).where(where).with_for_update())
    if found is None or decode(type(expected), json.loads(found)) != expected:
        return False
    return connection.execute(update(table).where(where).values(**values)).rowcount == 1


async def run_again(database: Database, work: Callable[[Connection], T]) -> T:
    """Do work that looks before it inserts; if another replica inserts in between, look again."""
    for _ in range(_TRIES):
        try:
            return await database.run(work)
        except IntegrityError:
            continue
    return await database.run(work)


async def save_row(
    database: Database, table: Table, key: Mapping[str, object], values: Mapping[str, object]
) -> None:
    """Insert a row, or replace the one that has its key, in a transaction of its own."""
    await run_again(database, lambda c: put_row(c, table, key, values))


def document(value: object) -> str:
    """A domain value as the text of its row; equal values give equal texts."""
    return json.dumps(encode(value), sort_keys=True, separators=(",", ":"))


def plain_text(text: str) -> str:
    """A text as both databases can keep it: PostgreSQL takes no zero byte, and neither takes half a character."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def to_number(at: datetime) -> float:
    """Seconds since 1970, as times are stored."""
    return at.timestamp()


def to_time(number: float) -> datetime:
    """The time of a stored number."""
    return datetime.fromtimestamp(number, UTC)
