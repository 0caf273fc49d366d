"""Opening the store: twice at once, after a newer program, with rows of an older one, and after a death."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, inspect, text

from bot.adapters.store.database import open_database
from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.store.tables import SCHEMA
from bot.adapters.vault import KeyFileVault
from bot.domain.freight import FreightStatus
from bot.ports import Event, Look, Post, StageRecord, TerminalError, TransientError
from tests.adapters.store.rows import AT, SOON, delivery, freight, promotion
from tests.postgres import PostgresServer, open_postgres

DYING = """
import asyncio, os, signal, sys
from pathlib import Path
from sqlalchemy import Engine, event
from bot.adapters.store.store import open_store
from bot.adapters.vault import KeyFileVault
from bot.ports import Look

store = open_store(sys.argv[1], KeyFileVault(Path(sys.argv[2])))
event.listen(Engine, "commit", lambda connection: os.kill(os.getpid(), signal.SIGKILL))
looks = [Look("stage", "shop/dev", "x"), Look("stage", "shop/prod", "x")]
asyncio.run(store.finish_delivery("a", looks, "done"))
"""


@contextmanager
def plain_engine(url: str) -> Iterator[Engine]:
    """The database as somebody else sees it."""
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    yield engine
    engine.dispose()


def execute(url: str, statement: str, **values: object) -> None:
    """Change the database behind the store's back."""
    with plain_engine(url) as engine, engine.begin() as connection:
        assert connection.execute(text(statement), values).rowcount == 1


def read(url: str, query: str) -> object:
    """One value of the database."""
    with plain_engine(url) as engine, engine.begin() as connection:
        return connection.scalar(text(query))


def test_replicas_that_start_at_once_make_the_tables_once(postgres: PostgresServer) -> None:
    url = postgres.create_database()
    with ThreadPoolExecutor(4) as threads:
        opened = list(threads.map(open_database, [url] * 4))
    for database in opened:
        database.close()
    assert read(url, "SELECT count(*) FROM lockstep_meta") == 1


def test_a_database_of_a_newer_program_is_refused_and_left_alone(url: str, store: DatabaseStore) -> None:
    execute(url, "UPDATE lockstep_meta SET value = :v WHERE name = 'schema'", v=str(SCHEMA + 1))
    with plain_engine(url) as engine, engine.begin() as connection:
        connection.execute(text("DROP TABLE lockstep_events"))
    with pytest.raises(TerminalError, match=f"has schema {SCHEMA + 1}, this program knows {SCHEMA}"):
        open_database(url)
    with plain_engine(url) as engine:
        assert not inspect(engine).has_table("lockstep_events")


def test_another_key_than_that_of_the_other_replicas_is_refused(
    url: str, store: DatabaseStore, tmp_path: Path
) -> None:
    open_store(url, KeyFileVault(tmp_path / "vault.key")).close()
    with pytest.raises(TerminalError, match=r"give every replica the same vault\.key"):
        open_store(url, KeyFileVault(tmp_path / "other.key"))


@pytest.mark.parametrize("url", ["mysql://root@db/lockstep", "lockstep.db", "postgresql//db"])
def test_another_address_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(TerminalError, match="must begin with sqlite:/// or postgresql://") as refused:
        open_database(url)
    assert url not in str(refused.value)


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(TerminalError, match=r"127\.0\.0\.1:1/lockstep") as refused:
        open_database("postgresql://bot:hunter2@127.0.0.1:1/lockstep")
    assert "hunter2" not in str(refused.value)


def test_a_user_who_may_not_make_tables_is_told_what_is_missing(postgres: PostgresServer) -> None:
    url = postgres.create_database()
    postgres.execute("DROP ROLE IF EXISTS guest")
    postgres.execute("CREATE ROLE guest LOGIN")
    with pytest.raises(TerminalError, match=r"permission denied .* check that .* its user owns it"):
        open_database(url.replace("postgres@", "guest@"))


async def test_rows_of_an_older_program_without_newer_fields_are_read(url: str, store: DatabaseStore) -> None:
    made = promotion(1)
    await store.create_promotion(made)
    added = await store.add_freight(freight())
    await store.save_stage(StageRecord("shop", "dev"))
    for table, fields in {
        "lockstep_promotions": ("cancel_requested", "accepted", "wake_at", "blocked", "reason"),
        "lockstep_stages": ("frozen",),
    }.items():
        stored = json.loads(str(read(url, f"SELECT document FROM {table}")))
        for name in fields:
            del stored[name]
        execute(url, f"UPDATE {table} SET document = :d", d=json.dumps(stored))
    execute(url, "UPDATE lockstep_freight SET status = '{}'")
    assert await store.get_promotion(made.id) == made
    assert await store.get_stage("shop", "dev") == StageRecord("shop", "dev")
    assert await store.get_freight("shop", "a" * 40) == (added, FreightStatus())


NEWER = ("corrects", "why", "first_attempt", "early", "drop", "follows", "source")
"""Fields of a Promotion's row that came after the first ones, all at their defaults."""


def make_older(url: str) -> None:
    """Have the one Promotion's row say the same as an older program would have written it."""
    stored = json.loads(str(read(url, "SELECT document FROM lockstep_promotions")))
    stored = {name: value for name, value in stored.items() if name not in NEWER}
    execute(url, "UPDATE lockstep_promotions SET document = :d", d=json.dumps(stored))


async def test_a_row_of_an_older_program_is_changed_as_any_other(url: str, store: DatabaseStore) -> None:
    made = promotion(1)
    await store.create_promotion(made)
    make_older(url)
    looks = [Look("stage", "shop/dev", "x")]
    other = replace(made, reason="changed meanwhile")
    assert not await store.save_promotion(replace(made, attempt=2), expected=other, looks=looks)
    assert not await store.list_due_looks(SOON)
    assert await store.save_promotion(replace(made, attempt=2), expected=made, looks=looks)
    assert await store.get_promotion(made.id) == replace(made, attempt=2)
    assert [look.key for look in await store.list_due_looks(SOON)] == ["shop/dev"]


async def test_of_twins_that_change_a_row_of_an_older_program_one_wins(
    url: str, store: DatabaseStore, twin: DatabaseStore
) -> None:
    made = promotion(1)
    await store.create_promotion(made)
    make_older(url)
    answers = await asyncio.gather(
        store.save_promotion(replace(made, reason="one"), expected=made),
        twin.save_promotion(replace(made, reason="two"), expected=made),
    )
    assert sorted(answers) == [False, True]


async def test_a_death_before_the_commit_leaves_nothing_half_done_and_no_lock(
    url: str, store: DatabaseStore, tmp_path: Path
) -> None:
    await store.store_delivery(delivery("a"))
    command = [sys.executable, "-c", DYING, url, str(tmp_path / "vault.key")]
    assert subprocess.run(command, timeout=60, check=False).returncode == -signal.SIGKILL
    assert [d.id for d in await store.list_pending_deliveries()] == ["a"]
    assert not await store.list_due_looks(SOON)
    await store.finish_delivery("a", [Look("stage", "shop/dev", "x")], "")
    assert [look.key for look in await store.list_due_looks(SOON)] == ["shop/dev"]


async def test_texts_that_no_database_takes_are_kept_as_far_as_possible(store: DatabaseStore) -> None:
    hostile = "zero \0 half \ud800 whole \N{GRINNING FACE}"
    await store.add_event(Event(AT, "shop", "dev", "", "note", hostile))
    (event,) = await store.list_events()
    assert event.message == "zero \N{REPLACEMENT CHARACTER} half ? whole \N{GRINNING FACE}"
    await store.queue_post(Post("check/a", "check", "acme/ops", 0, {"text": hostile}))
    (due,) = await store.list_due_posts(SOON)
    assert due.post.payload == {"text": hostile}
    await store.postpone_post(due, AT, hostile)
    made = promotion(1, reason=hostile)
    await store.create_promotion(made)
    assert await store.get_promotion(made.id) == made


async def test_a_server_that_goes_away_is_a_reason_to_try_again(tmp_path: Path) -> None:
    with open_postgres() as server:
        database = open_database(server.url("postgres"))
        assert await database.run(lambda c: c.scalar(text("SELECT 1"))) == 1
        server.stop()
        with pytest.raises(TransientError, match="the database did not answer"):
            await database.run(lambda c: c.scalar(text("SELECT 1")))
        server.start()
        assert await database.run(lambda c: c.scalar(text("SELECT 1"))) == 1
        database.close()
