"""The bot, killed by itself at one chosen write of its journal; run as a program by the crash tests.

`KILL_AT` is the number of the write (from 1, 0 for none), `KILL_WHEN` is `lost` (before its commit, so that the effect
before it has happened and nothing tells) or `kept` (right after it). Every write is noted in the file `KILL_LOG`.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine
from sqlalchemy.pool import Pool

_JOURNAL = re.compile(
    r"\s*(INSERT INTO|UPDATE|DELETE FROM) "
    r"lockstep_(promotions|previews|steps|bundles|applied|freight|stages)\b"
)


class Killer:
    """Counts committed journal writes, and ends the process without a word at the chosen one."""

    def __init__(self, at: int, when: str, log: Path) -> None:
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
        self._wrote = ""
        self._due = self._count == self._at
        if self._due and self._when == "lost":
            _die()

    def _released(self, *_given: object) -> None:
        if self._due:
            _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    """Serve, until the chosen write."""
    Killer(int(os.environ["KILL_AT"]), os.environ["KILL_WHEN"], Path(os.environ["KILL_LOG"])).install()
    from bot.__main__ import main as serve

    return serve(["serve"])


if __name__ == "__main__":
    sys.exit(main())
