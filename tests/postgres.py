"""A real PostgreSQL server of the tests' own: started once, with a new database for every test."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg
import pytest

from bot.adapters.store.database import open_database

_SETTINGS = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = ''
fsync = off
full_page_writes = off
max_connections = 200
"""
_TEMPLATE = "lockstep_template"


@dataclass(slots=True)
class PostgresServer:
    """One server below `directory`. It never asks for a password, and is reached over the loopback interface alone."""

    programs: Path
    directory: Path
    port: int
    numbers: Iterator[int] = field(default_factory=count)

    def url(self, database: str) -> str:
        """The address of one of its databases."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def create(self) -> None:
        """Make the cluster; it is not started yet."""
        self._run("initdb", "--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8")
        with (self.directory / "data" / "postgresql.conf").open("a") as settings:
            settings.write(_SETTINGS.format(port=self.port))

    def start(self) -> None:
        """Start it, and return once it answers."""
        self._run("pg_ctl", "start", "-w", "-l", str(self.directory / "server.log"))

    def stop(self, mode: str = "immediate") -> None:
        """Stop it: `immediate` is a crash, with every connection cut."""
        self._run("pg_ctl", "stop", "-w", "-m", mode)

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run one statement in a transaction of its own; the answer is its rows, if it gives any."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            found = connection.execute(statement.encode())
            return found.fetchall() if found.description is not None else []

    def create_database(self, template: str = "template1") -> str:
        """The address of a new database, a copy of the template."""
        name = f"test_{next(self.numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def _run(self, program: str, *arguments: str) -> None:
        # The server refuses to be run by root.
        user = ("runuser", "-u", "postgres", "--") if os.geteuid() == 0 else ()
        command = [*user, str(self.programs / program), "-D", str(self.directory / "data"), *arguments]
        with (self.directory / "programs.log").open("ab") as log:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", timeout=60, check=False
            )
        if done.returncode != 0:
            said = (self.directory / "programs.log").read_text(errors="replace")[-2000:]
            raise RuntimeError(f"{program} ended with {done.returncode}:\n{said}")


@contextmanager
def open_postgres() -> Iterator[PostgresServer]:
    """A new server for as long as the block lasts. Without PostgreSQL on the machine the test fails."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        pytest.fail("these tests need PostgreSQL's server: no /usr/lib/postgresql/*/bin/postgres is here")
    # Not below pytest's directory, which the user postgres may not enter.
    directory = Path(tempfile.mkdtemp(prefix="lockstep-postgres-"))
    if os.geteuid() == 0:
        shutil.chown(directory, "postgres", "postgres")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    server = PostgresServer(found[-1].parent, directory, port)
    try:
        server.create()
        server.start()
        yield server
    finally:
        if (directory / "data" / "postmaster.pid").exists():
            server.stop()
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The server of this run, with a database in it from which those of the tests are copied."""
    with open_postgres() as server:
        server.execute(f"CREATE DATABASE {_TEMPLATE}")
        open_database(server.url(_TEMPLATE)).close()
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    """The address of this test's own database, in which our tables are there and empty."""
    return postgres.create_database(_TEMPLATE)
