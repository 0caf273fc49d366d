"""Replicas on PostgreSQL: who lives, who has died, and when to stop because nobody can know any more.

A replica lives for as long as its connection holds a session's advisory lock on its name: the server gives the lock
back when the process dies, and within half a minute when its host does. Whoever finds a name with unfinished work and
no lock for long enough takes that work over.

Two clocks keep a replica that was cut off and the one that takes over apart. A lost connection may come back within
`LOST_AFTER`; a replica that does not get its lock back by then stops at once. Others wait `TAKEOVER_AFTER`, which is
longer, before they believe that a free lock means death, and they begin to wait anew whenever they were cut off
themselves, as by a restart of the server.

One of them leads: it does what only one may do at a time. Its name stands in a row, which counts for as long as the
leader lives by the same rule.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from bot.ports import TerminalError

log = logging.getLogger(__name__)

BEAT = 0.5
"""Seconds between two looks."""

LOST_AFTER = 7.0
"""Seconds without the lock after which a replica whose connection broke counts as lost."""

SILENT_AFTER = 10.0
"""Seconds without an answer on a connection that did not break; its lock is kept for longer than that."""

TAKEOVER_AFTER = 8.0
"""Seconds for which a name's lock must have been free before its work is taken over."""

_START = 3.0
"""Seconds for which a start waits for its name: the server may not have noticed yet that the last process is gone."""

_TURN = 60.0
"""Seconds for which a start waits for the starts of others."""

_CLIENT = {
    "connect_timeout": 3,
    "keepalives_idle": 3,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 6000,
}
_SESSION = {
    # The server gives up a silent client after 10 + 3 * 5 seconds: a host that is lost is noticed within that time.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "25000",
    "statement_timeout": "5000",
    "idle_session_timeout": "0",
}

_PENDING = (
    "SELECT DISTINCT executor_id FROM dbos.workflow_status WHERE status = 'PENDING' AND executor_id <> %s"
)
_TRY = "SELECT pg_try_advisory_lock(%s)"
_UNLOCK = "SELECT pg_advisory_unlock(%s)"
_TRY_SHARED = "SELECT pg_try_advisory_lock_shared(%s)"
_UNLOCK_SHARED = "SELECT pg_advisory_unlock_shared(%s)"
_MAKE_LEADER = (
    "CREATE TABLE IF NOT EXISTS lockstep_leader "
    "(id integer PRIMARY KEY CHECK (id = 1), executor text NOT NULL)"
)
_LEADER = "SELECT executor FROM lockstep_leader"
_STAND = "INSERT INTO lockstep_leader VALUES (1, %s) ON CONFLICT DO NOTHING"
_SUCCEED = "UPDATE lockstep_leader SET executor = %s WHERE executor = %s"
_RESIGN = "DELETE FROM lockstep_leader WHERE executor = %s"
_LAUNCH = " launch"
"""No executor's name, since it begins with a space."""


def lock_number(executor: str) -> int:
    """The number that stands for an executor's name among the database's advisory locks."""
    digest = hashlib.sha256(f"lockstep executor {executor}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


@dataclass(slots=True)
class Liveness:
    """One replica's lock on its name. `take_over` gets the name of a dead one and recovers its unfinished work.

    All questions to the server are asked in a thread of its own, so that neither waits for the other: a slow server
    does not stop the event loop, and a busy event loop does not look like death.
    """

    url: str
    executor: str
    take_over: Callable[[str], int]
    thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "liveness"))
    connection: psycopg.Connection[Any] | None = None
    seen_at: float = 0.0
    leads: bool = False
    free_since: dict[str, float] = field(default_factory=dict)

    async def acquire(self) -> None:
        """Take the lock, before any work is taken up. Raises TerminalError if somebody else has it."""
        await asyncio.get_running_loop().run_in_executor(self.thread, self._acquire)

    async def launched(self) -> None:
        """The engine's tables are there: let the next replica start."""
        await asyncio.get_running_loop().run_in_executor(self.thread, self._launched)

    async def watch(self) -> str:
        """Keep the lock and take over from the dead, until the lock is lost; the answer says why."""
        loop = asyncio.get_running_loop()
        beat = loop.run_in_executor(self.thread, self._beat)
        while not (reason := self._lost()):
            await asyncio.wait([beat], timeout=BEAT / 2)
            if beat.done():
                beat.result()
                await asyncio.sleep(BEAT)
                beat = loop.run_in_executor(self.thread, self._beat)
        return reason

    def close(self) -> None:
        """Give the lock back; what is still unfinished is taken over by others."""
        self.thread.shutdown(wait=True, cancel_futures=True)
        try:
            if self.leads and self.connection is not None:
                # The next one need not find out that we are gone.
                self.connection.execute(_RESIGN, (self.executor,))
        except psycopg.Error as error:
            log.warning("the lead was not handed on", extra={"error": _said(error)})
        self.leads = False
        self._drop()

    # -- in the thread -----------------------------------------------------------------------------------------------

    def _acquire(self) -> None:
        refused = (
            f"another living process is executor {self.executor!r} on this database; stop it, or give every replica "
            "a name of its own by LOCKSTEP_EXECUTOR"
        )
        _wait_for(self._connect_at_start, _START, refused)
        # Two replicas that start at once must not both make the engine's tables.
        starting = "another replica has been starting for a minute; look at its log"
        _wait_for(lambda: self._ask(_TRY, lock_number(_LAUNCH)), _TURN, starting)
        assert self.connection is not None
        self.connection.execute(_MAKE_LEADER)

    def _connect_at_start(self) -> bool:
        try:
            return self._connect()
        except psycopg.Error as error:
            raise TerminalError(
                f"PostgreSQL did not give executor {self.executor!r} its lock: {_said(error)}"
            ) from error

    def _launched(self) -> None:
        begun = _now()
        self._ask(_UNLOCK, lock_number(_LAUNCH))
        # The lock on the name was ours all the time, since the connection is the same.
        self.seen_at = begun

    def _connect(self) -> bool:
        """A new connection that holds the lock; False if another one has it."""
        self._drop()
        begun = _now()
        name = f"lockstep {self.executor}"[:63]
        connection = psycopg.connect(
            make_conninfo(self.url, application_name=name, **_CLIENT), autocommit=True
        )
        self.connection = connection
        for name, value in _SESSION.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        if not self._ask(_TRY, lock_number(self.executor)):
            self._drop()
            return False
        self.seen_at = begun
        # Others may have been cut off as well, by a restart of the server; they get the time to come back.
        self.free_since.clear()
        return True

    def _beat(self) -> None:
        begun = _now()
        if self._lost():
            # Others may already have begun our work.
            return
        try:
            if self.connection is None:
                self._reconnect()
                return
            busy = {name for (name,) in self.connection.execute(_PENDING, (self.executor,))}
            self.seen_at = begun
            leader = self._find_leader(self.connection)
            self._look_at(busy, leader)
        except psycopg.Error as error:
            log.warning("the liveness connection broke", extra={"error": _said(error)})
            self._drop()

    def _reconnect(self) -> None:
        last = self.seen_at
        if not self._connect():
            return
        if _now() - last > LOST_AFTER:
            # Too late: others may already have begun our work.
            self._drop()
            self.seen_at = last
            return
        log.warning("the liveness connection is back", extra={"executor": self.executor})

    def _find_leader(self, connection: psycopg.Connection[Any]) -> str:
        """The other replica that leads; empty if this one does."""
        row = connection.execute(_LEADER).fetchone()
        if row is None:
            connection.execute(_STAND, (self.executor,))
            row = connection.execute(_LEADER).fetchone()
        leader = str(row[0]) if row is not None else ""
        self.leads = leader == self.executor
        return "" if self.leads else leader

    def _look_at(self, busy: set[str], leader: str) -> None:
        """Try the locks of those who have unfinished work or lead."""
        names = busy | ({leader} if leader else set())
        for gone in set(self.free_since) - names:
            del self.free_since[gone]
        for name in names:
            # A shared lock is refused while the name's owner lives, but not because others look as well.
            if not self._ask(_TRY_SHARED, lock_number(name)):
                self.free_since.pop(name, None)
                continue
            if _now() - self.free_since.setdefault(name, _now()) >= TAKEOVER_AFTER:
                # As long as we have the lock, no new process of that name can begin.
                self._succeed(name, works=name in busy)
                del self.free_since[name]
            self._ask(_UNLOCK_SHARED, lock_number(name))

    def _succeed(self, name: str, *, works: bool) -> None:
        assert self.connection is not None
        count = self.take_over(name) if works else 0
        self.connection.execute(_SUCCEED, (self.executor, name))
        log.warning("took over from a dead replica", extra={"executor": name, "works": count})

    def _ask(self, query: str, number: int) -> bool:
        assert self.connection is not None
        row = self.connection.execute(query.encode(), (number,)).fetchone()
        return row is not None and row[0] is True

    def _drop(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def _lost(self) -> str:
        """Why this replica may no longer count as alive, empty while it does."""
        silent = _now() - self.seen_at
        if self.connection is None and silent > LOST_AFTER:
            return f"the lock of executor {self.executor!r} has been lost for {silent:.0f} s"
        if silent > SILENT_AFTER:
            return f"PostgreSQL has not answered executor {self.executor!r} for {silent:.0f} s"
        return ""


def _now() -> float:
    """Seconds that also pass while the machine sleeps: others do not wait for it to wake up."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _wait_for(probe: Callable[[], bool], seconds: float, refused: str) -> None:
    """Ask again and again; raises TerminalError with a text if the answer is no for too long."""
    end = _now() + seconds
    while not probe():
        if _now() > end:
            raise TerminalError(refused)
        time.sleep(BEAT / 2)


def _said(error: psycopg.Error) -> str:
    return str(error).strip().partition("\n")[0]
