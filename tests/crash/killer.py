"""A bot that kills itself at one chosen write of its journal.

It is forked from a process that has read the program once: the crash tests start a hundred, and reading it takes
longer than what they look at. `KILL_AT` in its environment is the number of the write (from 1, 0 for none; without it
nothing is listened to) or its text, for the first one that reads so; `KILL_WHEN` is `lost` (before its commit, so that
the effect before it has happened and nothing tells) or `kept` (right after it). Every write is noted in the file
`KILL_LOG`.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine
from sqlalchemy.pool import Pool

from bot.__main__ import main
from bot.sandbox.bot_process import BotProcess, Running

_JOURNAL = re.compile(
    r"\s*(INSERT INTO|UPDATE|DELETE FROM) "
    r"lockstep_(promotions|previews|steps|bundles|applied|freight|stages)\b"
)


class Killer:
    """Counts committed journal writes, and ends the process without a word at the chosen one."""

    def __init__(self, at: str, when: str, log: Path) -> None:
        self._at = at
        self._when = when
        self._log = log
        self._count = 0
        self._wrote = ""
        self._due = False

    def install(self) -> None:
        """Listen to every connection of this process."""
        event.listen(Engine, "after_cursor_execute", self._executed)
        event.listen(Engine, "commit", self._committing)
        event.listen(Pool, "checkin", self._released)

    def _executed(self, *given: object) -> None:
        found = _JOURNAL.match(str(given[2]))
        if found is not None:
            self._wrote = f"{found[1]} {found[2]}"

    def _committing(self, _connection: Connection) -> None:
        if not self._wrote:
            return
        self._count += 1
        with self._log.open("a") as log:
            log.write(f"{self._count} {self._wrote}\n")
        self._due = self._at in (str(self._count), self._wrote)
        self._wrote = ""
        if self._due and self._when == "lost":
            _die()

    def _released(self, *_given: object) -> None:
        if self._due:
            _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(slots=True)
class Forked:
    """A process of the fork server, looked after like any other."""

    process: ForkServerProcess

    @property
    def pid(self) -> int:
        """Its number."""
        assert self.process.pid is not None
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit status, the number of a signal below zero, None while it runs."""
        return self.process.exitcode

    def send_signal(self, signal: int) -> None:
        """Send it a signal, if it is still there."""
        if self.process.exitcode is None:
            os.kill(self.pid, signal)

    def kill(self) -> None:
        """Send it SIGKILL."""
        self.process.kill()

    async def wait(self) -> int:
        """Wait for its end; the answer is its exit status."""
        await asyncio.to_thread(self.process.join)
        assert self.process.exitcode is not None
        return self.process.exitcode


class ForkedBot(BotProcess):
    """A bot that is forked instead of started anew."""

    async def spawn(self, environment: Mapping[str, str], log: BinaryIO) -> Running:
        """Fork it; the fork server is started with the first one."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["bot.serving", __name__])
        process = context.Process(target=_serve, args=(dict(environment), str(self.log)))
        await asyncio.to_thread(process.start)
        return Forked(process)


def _serve(environment: dict[str, str], log: str) -> None:
    """In the new process: become what the command line would have started."""
    # What the fork server has read stays as it is; a full collection would copy its memory for each bot.
    gc.freeze()
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.clear()
    os.environ.update(environment)
    if "KILL_AT" in environment:
        Killer(environment["KILL_AT"], environment["KILL_WHEN"], Path(environment["KILL_LOG"])).install()
    sys.exit(main(["serve"]))
