"""What a Terraform child leaves running after its bot and it have died: found by the run's lock, and ended.

Every process of a run has the run's lock file open, so the run stays taken until the last one has ended. Terraform
itself ends in good order by the signal it gets; a program that one of its provisioners had started may go on for
ever, and is killed here, but only once Terraform is gone.
"""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Orphans:
    """The processes of the runs below `base`, by the lock file and the note of the last child that was started."""

    base: Path

    @property
    def lock(self) -> Path:
        """The lock file that every process of a run has open."""
        return self.base / "lock"

    @property
    def _note(self) -> Path:
        return self.base / "child"

    def note(self, pid: int) -> None:
        """Remember the child that now runs; its id is that of its group as well."""
        self._note.write_text(str(pid))

    def forget(self) -> None:
        """No child runs."""
        self._note.unlink(missing_ok=True)

    def end_stragglers(self) -> None:
        """Kill what is left of the noted child's group, if the child itself has ended and they have the lock open."""
        try:
            leader = int(self._note.read_text())
        except (FileNotFoundError, ValueError):
            return
        if _is_alive(leader):
            return
        for pid in _processes():
            # A number may be another's by now: only who has this very lock open, in that group, is one of ours.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if pid != os.getpid() and os.getpgid(pid) == leader and _has_open(pid, self.lock):
                    os.kill(pid, signal.SIGKILL)


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except FileNotFoundError:
        return []


def _is_alive(pid: int) -> bool:
    try:
        # The state follows the command's name, which stands in brackets and may hold anything.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _has_open(pid: int, path: Path) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return False
    for name in names:
        with contextlib.suppress(OSError):
            if os.readlink(f"{folder}/{name}") == str(path):
                return True
    return False
