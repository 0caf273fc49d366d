"""Several replicas on one PostgreSQL: work is shared, taken over from the dead, and never done by two at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from dbos import DBOS

from bot.workflow import liveness
from tests.postgres import PostgresServer, open_postgres

pytestmark = pytest.mark.crash

PROGRAM = """
import asyncio, os, signal, sys, time
from bot.ports import TerminalError
from bot.workflow import engine

url, log, executor = sys.argv[1:4]

def note(what, argument=""):
    line = f"{time.monotonic():.3f} {executor} {what} {argument}\\n"
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line.encode())
    os.close(descriptor)

async def work(argument):
    note("begin", argument)
    await asyncio.sleep(float(argument.split("/")[2]))
    note("end", argument)

def lost(reason):
    note("lost", reason)
    os._exit(1)

async def main():
    stop, led = asyncio.Event(), False
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    try:
        running = await engine.start(url, {"work": work}, executor=executor, on_lost=lost)
    except TerminalError as error:
        note("refused", str(error))
        sys.exit(3)
    for name in sys.argv[4:]:
        queue = engine.LOOKS if name[0] < "m" else engine.SEGMENTS
        await running.submit(queue, "work", name, work_id=name, key=name.split("/")[0])
    note("ready")
    while not stop.is_set():
        if running.leads and not led:
            led = True
            note("leads")
        await asyncio.sleep(0.05)
    await running.stop()

asyncio.run(main())
"""


@dataclass(frozen=True, slots=True)
class Line:
    """Something that a replica did; `at` is in seconds of the machine's clock."""

    at: float
    executor: str
    what: str
    argument: str

    @property
    def key(self) -> str:
        return self.argument.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Replicas:
    """Small programs on one database. The name of a piece of work is `KEY/NUMBER/SECONDS`."""

    url: str
    directory: Path
    processes: dict[str, subprocess.Popen[bytes]]

    def start(self, executor: str, *work: str) -> None:
        """Start a replica that submits this work, and wait until it has."""
        before = len(self.find("ready", executor))
        self.launch(executor, *work)
        self.until(lambda: len(self.find("ready", executor)) > before)

    def launch(self, executor: str, *work: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", PROGRAM, self.url, str(self.directory / "log"), executor, *work]
        with (self.directory / "errors").open("ab") as errors:
            started = subprocess.Popen(command, stderr=errors, stdin=subprocess.DEVNULL)
        self.processes[executor] = started
        return started

    def kill(self, executor: str, number: int = signal.SIGKILL) -> float:
        """Send a signal to a replica; the answer is when."""
        self.processes[executor].send_signal(number)
        return time.monotonic()

    def lines(self) -> list[Line]:
        """What all of them did, oldest first."""
        log = self.directory / "log"
        parts = [line.split(" ", 3) for line in log.read_text().splitlines()] if log.exists() else []
        return [Line(float(at), executor, what, argument) for at, executor, what, argument in parts]

    def find(self, what: str, executor: str = "", argument: str = "") -> list[Line]:
        """The lines of a kind."""
        return [
            line
            for line in self.lines()
            if line.what == what
            and executor in ("", line.executor)
            and (not argument or line.argument == argument)
        ]

    def until(self, probe: Callable[[], object], patience: float = 40.0) -> float:
        """Wait until something holds; the answer is when it was seen."""
        end = time.monotonic() + patience
        while not probe():
            if time.monotonic() > end:
                log = "\n".join(str(line) for line in self.lines())
                raise AssertionError(f"{log}\n{(self.directory / 'errors').read_text()[-3000:]}")
            time.sleep(0.02)
        return time.monotonic()

    def until_done(self, *work: str) -> None:
        """Wait until all of this work has ended."""
        self.until(lambda: set(work) <= {line.argument for line in self.find("end")})

    def overlaps(self, deaths: dict[str, float]) -> list[str]:
        """Pieces of work of one key that ran at the same time; what a dead replica ran has ended with its death."""
        spans: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
        lines = self.lines()
        for line in lines:
            if line.what == "begin":
                ends = [
                    later.at
                    for later in lines
                    if (later.what, later.executor, later.argument) == ("end", line.executor, line.argument)
                    and later.at >= line.at
                ]
                end = min([*ends, deaths.get(line.executor, float("inf"))])
                spans[line.key].append((line.at, end, f"{line.executor} {line.argument}"))
        found = []
        for of_key in spans.values():
            of_key.sort()
            found += [f"{one[2]}, {two[2]}" for one, two in pairwise(of_key) if two[0] < one[1]]
        return found


@contextmanager
def open_replicas(url: str, directory: Path) -> Iterator[Replicas]:
    """Nobody runs yet; whoever still runs at the end is killed."""
    made = Replicas(url, directory, {})
    try:
        yield made
    finally:
        for process in made.processes.values():
            process.kill()
            process.wait()


@pytest.fixture
def replicas(postgres_url: str, tmp_path: Path) -> Iterator[Replicas]:
    """Replicas on the tests' server."""
    with open_replicas(postgres_url, tmp_path) as made:
        yield made


def names(keys: str, count: int, seconds: float) -> list[str]:
    """Work for each key of a text, in the order in which it is submitted."""
    return [f"{key}/{number}/{seconds}" for number in range(count) for key in keys]


def test_the_engine_has_what_taking_over_needs() -> None:
    # It is not among the engine's documented functions, so a newer one may lack it.
    assert callable(DBOS._recover_pending_workflows)


def test_the_clocks_of_the_lost_and_of_the_next_never_meet() -> None:
    assert liveness.LOST_AFTER + 2 * liveness.BEAT <= liveness.TAKEOVER_AFTER
    assert liveness.TAKEOVER_AFTER + 2 * liveness.BEAT < 10
    # A silent client's session lives on at the server for longer than the client waits for an answer.
    assert liveness.SILENT_AFTER < 10 + 3 * 5


def test_what_a_killed_replica_was_at_is_taken_over_within_ten_seconds(replicas: Replicas) -> None:
    # Enough that there is work left for this replica whatever the other one takes.
    work = names("abcdxyz", 9, 0.4)
    replicas.start("one")
    replicas.start("two", *work)
    replicas.until(lambda: replicas.find("end", "two"))

    def at_work() -> list[str]:
        ended = {line.argument for line in replicas.find("end")}
        return [line.argument for line in replicas.find("begin", "two") if line.argument not in ended]

    replicas.until(at_work)
    died = replicas.kill("two")
    replicas.processes["two"].wait()
    interrupted = at_work()
    assert interrupted
    replicas.until_done(*work)
    assert replicas.overlaps({"two": died}) == []
    for name in interrupted:
        (again,) = replicas.find("begin", "one", name)
        assert again.at - died <= 10
    # What a replica had ended is done once; a death between the end of work and its record may cost one repetition.
    twice = {line.argument for line in replicas.find("begin")}
    twice = {name for name in twice if len(replicas.find("begin", "", name)) > 1}
    assert twice >= set(interrupted)
    assert all(replicas.find("begin", "two", name) for name in twice)
    assert all(len(replicas.find("end", "", name)) == 1 for name in work if name not in twice)


def test_work_that_a_replica_leaves_at_its_stop_is_done_by_another(replicas: Replicas) -> None:
    work = names("ax", 6, 0.6)
    replicas.start("one")
    replicas.start("two", *work)
    replicas.until(lambda: replicas.find("begin", "two"))
    replicas.kill("two", signal.SIGTERM)
    replicas.until_done(*work)
    assert replicas.processes["two"].wait(timeout=30) == 0
    assert replicas.overlaps({}) == []
    assert len(replicas.find("end")) == len(work)


def test_a_second_process_of_the_same_name_is_refused(replicas: Replicas) -> None:
    replicas.start("one")
    first = replicas.processes["one"]
    assert replicas.launch("one").wait(timeout=30) == 3
    (refused,) = replicas.find("refused")
    assert "another living process is executor 'one'" in refused.argument
    assert "LOCKSTEP_EXECUTOR" in refused.argument
    assert first.poll() is None
    # The name of a dead process is free at once, and its work is taken up at the start.
    first.kill()
    first.wait()
    replicas.start("one", "a/0/0.1")
    replicas.until_done("a/0/0.1")


def test_a_name_that_is_free_again_begins_with_its_own_work(replicas: Replicas) -> None:
    replicas.start("one", "a/0/1.5", "a/1/0.1")
    replicas.until(lambda: replicas.find("begin"))
    replicas.kill("one")
    replicas.processes["one"].wait()
    replicas.start("one")
    replicas.until_done("a/0/1.5", "a/1/0.1")
    begun = [line.argument for line in replicas.find("begin")]
    assert begun == ["a/0/1.5", "a/0/1.5", "a/1/0.1"]


def test_replicas_that_start_at_once_on_an_empty_database(postgres: PostgresServer, tmp_path: Path) -> None:
    with open_replicas(postgres.create_database(), tmp_path) as replicas:
        for name in ("one", "two", "three"):
            replicas.launch(name, *names(name[0], 2, 0.1), f"b/{name}/0.1")
        replicas.until(lambda: len(replicas.find("ready")) == 3)
        replicas.until(lambda: len(replicas.find("end")) == 2 * 2 + 3)
        assert replicas.overlaps({}) == []


def test_one_leads_until_it_dies_or_resigns(replicas: Replicas) -> None:
    replicas.start("one")
    replicas.until(lambda: replicas.find("leads", "one"))
    replicas.start("two")
    died = replicas.kill("one")
    assert not replicas.find("leads", "two")
    replicas.until(lambda: replicas.find("leads", "two"))
    assert liveness.TAKEOVER_AFTER - 1 <= replicas.find("leads", "two")[0].at - died <= 10
    replicas.start("three")
    replicas.kill("two", signal.SIGTERM)
    assert replicas.processes["two"].wait(timeout=30) == 0
    stopped = time.monotonic()
    replicas.until(lambda: replicas.find("leads", "three"))
    assert replicas.find("leads", "three")[0].at - stopped <= 3
    # A leader that is started again under its name need not wait either.
    replicas.kill("three")
    replicas.processes["three"].wait()
    replicas.start("three")
    replicas.until(lambda: len(replicas.find("leads", "three")) == 2, patience=3)


def test_a_server_that_falls_silent_ends_the_replica(postgres: PostgresServer, replicas: Replicas) -> None:
    replicas.start("one", "a/0/60")
    replicas.until(lambda: replicas.find("begin"))
    ((backend,),) = postgres.execute(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'lockstep one' "
        f"AND datname = '{replicas.url.rpartition('/')[2]}'"
    )
    assert isinstance(backend, int)
    os.kill(backend, signal.SIGSTOP)
    try:
        silent = time.monotonic()
        assert replicas.processes["one"].wait(timeout=30) == 1
    finally:
        os.kill(backend, signal.SIGCONT)
    (lost,) = replicas.find("lost")
    assert "PostgreSQL has not answered executor 'one'" in lost.argument
    assert lost.at - silent <= liveness.SILENT_AFTER + 1


def test_a_server_that_restarts_costs_nothing(tmp_path: Path) -> None:
    work = names("abxy", 4, 1.0)
    with open_postgres() as server, open_replicas(server.create_database(), tmp_path) as replicas:
        replicas.start("one")
        replicas.start("two", *work)
        replicas.until(lambda: len(replicas.find("begin")) >= 4)
        server.stop()
        time.sleep(4)
        server.start()
        replicas.until_done(*work)
        assert not replicas.find("lost")
        assert replicas.overlaps({}) == []
        # Nobody was taken for dead, so nothing was done twice.
        assert len(replicas.find("begin")) == len(replicas.find("end")) == len(work)


def test_a_server_that_stays_away_ends_the_replicas(tmp_path: Path) -> None:
    with open_postgres() as server, open_replicas(server.create_database(), tmp_path) as replicas:
        replicas.start("one", "a/0/60")
        replicas.until(lambda: replicas.find("begin"))
        server.stop()
        stopped = time.monotonic()
        assert replicas.processes["one"].wait(timeout=30) == 1
        (lost,) = replicas.find("lost")
        assert lost.at - stopped <= 10
        assert "the lock of executor 'one' has been lost" in lost.argument


def test_a_replica_that_was_cut_off_and_stood_still_ends_when_it_wakes_up(
    postgres: PostgresServer, replicas: Replicas
) -> None:
    replicas.start("one", "a/0/60")
    replicas.until(lambda: replicas.find("begin", "one"))
    replicas.start("two")
    replicas.kill("one", signal.SIGSTOP)
    database = replicas.url.rpartition("/")[2]
    cut = postgres.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE datname = '{database}' AND application_name = 'lockstep one'"
    )
    assert cut == [(True,)]
    begun = time.monotonic()
    taken = replicas.until(lambda: replicas.find("begin", "two"))
    assert liveness.TAKEOVER_AFTER - 1 <= taken - begun <= 10
    replicas.kill("one", signal.SIGCONT)
    assert replicas.processes["one"].wait(timeout=5) == 1
    assert replicas.find("lost", "one")


def test_a_connection_that_is_cut_comes_back(postgres: PostgresServer, replicas: Replicas) -> None:
    replicas.start("one", "a/0/12")
    replicas.until(lambda: replicas.find("begin", "one"))
    replicas.start("two")
    postgres.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lockstep one'"
    )
    replicas.until_done("a/0/12")
    assert [line.executor for line in replicas.find("begin")] == ["one"]
    assert not replicas.find("lost")
