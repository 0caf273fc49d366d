"""States that would be lost with a run's directory: kept, sealed, until a person has put them where they belong.

Terraform leaves a state in the directory in two cases: the backend did not take it (`errored.tfstate`), or the state
is kept in the tree and the bot ended before it could hand it over. While one is kept, its key is not run again: a plan
on the old state would create everything a second time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bot.ports import TerminalError, Vault


@dataclass(frozen=True, slots=True)
class Rescue:
    """The kept states of one run key below `data`; `base` is the directory of its runs."""

    data: Path
    base: Path
    key: str
    vault: Vault

    @property
    def _note(self) -> Path:
        return self.base / "applying"

    def begin(self, work: Path, state: str, errored: str) -> None:
        """Note that an apply begins: where in the work tree a state may be left, and what is there now."""
        note = {
            "key": self.key,
            "errored": errored,
            "state": state,
            "before": _fingerprint(work / state) if state else "",
        }
        self._note.write_text(json.dumps(note))

    def end(self, work: Path) -> Sequence[Path]:
        """Note that an apply has ended and its state was handed over; keeps what the backend did not take."""
        if not self._note.exists():
            return []
        errored = work / json.loads(self._note.read_text())["errored"]
        kept = [self._keep(errored)] if errored.is_file() else []
        self._note.unlink()
        return kept

    def settle(self, work: Path) -> None:
        """Keep what an apply left behind that never ended in order; call it before the work tree is cleared."""
        if not self._note.exists():
            return
        note = json.loads(self._note.read_text())
        state = work / note["state"] if note["state"] else None
        if state is not None and _fingerprint(state) not in ("", note["before"]):
            self._keep(state)
        self.end(work)

    def check(self) -> None:
        """Raises TerminalError while a state of this key is kept."""
        kept = sorted(self._folder.glob(f"{self._prefix}-*.sealed"))
        if kept:
            raise TerminalError(
                f"A state of {self.key!r} that an apply left behind is kept in {kept[0]}; it is newer than the stored "
                "one. Put it where the state belongs, then remove that file."
            )

    def open(self, file: Path) -> bytes:
        """The kept state itself."""
        return self.vault.open(file.read_bytes(), self._purpose)

    def _keep(self, state: Path) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        data = state.read_bytes()
        moment = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        file = self._folder / f"{self._prefix}-{moment}-{hashlib.sha256(data).hexdigest()[:8]}.sealed"
        file.write_bytes(self.vault.seal(data, self._purpose))
        return file

    @property
    def _folder(self) -> Path:
        return self.data / "rescued"

    @property
    def _prefix(self) -> str:
        return self.base.name

    @property
    def _purpose(self) -> str:
        return f"rescued state of {self.key}"


def rescue_of(data: Path, base: Path, vault: Vault) -> Rescue:
    """The rescue of a directory of runs whose key only its own note tells; without a note there is none to keep."""
    note = base / "applying"
    key = str(json.loads(note.read_text())["key"]) if note.exists() else ""
    return Rescue(data, base, key, vault)


def _fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
