"""Durable work: once under its id, alone under its key, taken up after a crash; nothing is ever unpickled."""

from __future__ import annotations

import base64
import pickle
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from bot.ports import TerminalError
from bot.workflow import engine

PROGRAM = """
import asyncio, os, sys
from bot.ports import TransientError
from bot.workflow import engine

tried = []

async def work(argument):
    with open(sys.argv[2], "a") as log:
        log.write(f"begin {argument}\\n")
    if argument == "flaky" and not tried:
        tried.append(argument)
        raise TransientError("the database did not answer")
    if argument == "die" and sys.argv[3] == "first":
        os._exit(9)
    await asyncio.sleep(0.05)
    with open(sys.argv[2], "a") as log:
        log.write(f"end {argument}\\n")

async def main():
    running = await engine.start(
        f"sqlite:///{sys.argv[1]}", {"work": work}, executor="lockstep", on_lost=print, poll=0.05
    )
    waited = ["a/0", "a/1", "a/2", "once"] if sys.argv[3] == "first" else []
    if sys.argv[3] == "first":
        for number in range(3):
            await running.submit(engine.LOOKS, "work", f"a{number}", work_id=f"a/{number}", key="a")
        for _ in range(3):
            await running.submit(engine.LOOKS, "work", "once", work_id="once", key="b")
        await running.submit(engine.SEGMENTS, "work", "bad-kind", work_id="bad", key="c")
    if sys.argv[5] == "flaky":
        await running.submit(engine.SEGMENTS, "work", "flaky", work_id="flaky", key="e")
    if sys.argv[4] == "die":
        while not all([await running.is_finished(work_id) for work_id in waited]):
            await asyncio.sleep(0.05)
        await running.submit(engine.SEGMENTS, "work", "die", work_id="die", key="d")
    for _ in range(200):
        await asyncio.sleep(0.05)
        if await running.is_finished(sys.argv[5]):
            break
    await running.stop()

asyncio.run(main())
"""


def run(database: Path, log: Path, *arguments: str) -> int:
    command = [sys.executable, "-c", PROGRAM, str(database), str(log), *arguments]
    return subprocess.run(command, check=False, timeout=60).returncode


def test_work_is_done_once_and_in_order_and_taken_up_after_a_crash(tmp_path: Path) -> None:
    database, log = tmp_path / "engine.db", tmp_path / "log"
    assert run(database, log, "first", "die", "die") == 9
    first = log.read_text().splitlines()
    assert first.count("begin once") == 1
    assert [line for line in first if " a" in line] == [
        f"{when} a{n}" for n in range(3) for when in ("begin", "end")
    ]
    assert first[-1] == "begin die"
    assert run(database, log, "second", "live", "die") == 0
    later = log.read_text().splitlines()[len(first) :]
    assert later == ["begin die", "end die"]


def test_work_that_the_database_cut_short_is_done_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert run(tmp_path / "engine.db", log, "first", "live", "flaky") == 0
    assert [line for line in log.read_text().splitlines() if "flaky" in line] == [
        "begin flaky", "begin flaky", "end flaky",
    ]  # fmt: skip


def test_a_second_process_on_the_same_file_is_refused(tmp_path: Path) -> None:
    guard = engine.lock_sqlite(tmp_path / "engine.db")
    with pytest.raises(TerminalError, match="another process works on"):
        engine.lock_sqlite(tmp_path / "engine.db")
    guard.close()
    engine.lock_sqlite(tmp_path / "engine.db").close()


def test_a_pickled_row_is_refused(tmp_path: Path) -> None:
    database, log = tmp_path / "engine.db", tmp_path / "log"
    assert run(database, log, "first", "live", "a/2") == 0
    poison = base64.b64encode(pickle.dumps("harmless")).decode()
    with sqlite3.connect(database) as connection:
        changed = connection.execute(
            "UPDATE workflow_status SET status='PENDING', serialization='py_pickle', inputs=?, output=NULL "
            "WHERE workflow_uuid='once'",
            (poison,),
        ).rowcount
    assert changed == 1
    before = log.read_text()
    run(database, log, "second", "live", "none")
    assert log.read_text() == before


@pytest.mark.parametrize("value", [None, "x", 1, [1, {"a": None}]])
def test_the_journal_is_json(value: object) -> None:
    serializer = engine.JsonSerializer()
    assert serializer.deserialize(serializer.serialize(value)) == value


def test_an_error_is_kept_as_its_text_and_other_objects_are_refused() -> None:
    serializer = engine.JsonSerializer()
    assert "boom" in str(serializer.deserialize(serializer.serialize(ValueError("boom"))))
    with pytest.raises(TypeError):
        serializer.serialize(object())


FORGET = """
import asyncio, sys
from datetime import UTC, datetime, timedelta
from bot.workflow import engine

async def work(argument):
    await asyncio.sleep(600 if argument == "long" else 0)

async def main():
    running = await engine.start(
        f"sqlite:///{sys.argv[1]}", {"work": work}, executor="lockstep", on_lost=print, poll=0.05
    )
    for name in ("one", "two", "long"):
        await running.submit(engine.LOOKS, "work", name, work_id=name, key=name)
    while not (await running.is_finished("one") and await running.is_finished("two")):
        await asyncio.sleep(0.05)
    now = datetime.now(UTC)
    print(await running.forget(now - timedelta(days=14)))
    print(await running.forget(now + timedelta(days=1)))
    print(await running.forget(now + timedelta(days=1)))
    await running.submit(engine.LOOKS, "work", "one", work_id="one", key="one")
    while not await running.is_finished("one"):
        await asyncio.sleep(0.05)
    engine._DRAIN = 0.1
    await running.stop()

asyncio.run(main())
"""


def test_finished_work_is_forgotten_and_what_runs_is_not(tmp_path: Path) -> None:
    database = tmp_path / "engine.db"
    command = [sys.executable, "-c", FORGET, str(database)]
    done = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True)
    assert done.stdout.split() == ["0", "2", "0"]
    with sqlite3.connect(database) as connection:
        left = connection.execute("SELECT workflow_uuid, status FROM workflow_status").fetchall()
        steps = connection.execute("SELECT DISTINCT workflow_uuid FROM operation_outputs").fetchall()
    assert sorted(left) == [("long", "PENDING"), ("one", "SUCCESS")]
    assert steps == [("one",)]
