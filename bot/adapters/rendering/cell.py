"""One directory for one run of a rendering program: files in, a command under rules, files out."""

from __future__ import annotations

import asyncio
import contextlib
import os
import posixpath
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.adapters.terraform import landlock
from bot.adapters.terraform.environment import READABLE
from bot.adapters.terraform.process import Command, Ended, Limits, Stop, execute
from bot.adapters.terraform.tree import empty_directory, write_files
from bot.domain.files import File, Mode
from bot.ports import TerminalError

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where a run finds further programs."""

_LIMITS = Limits(seconds=300.0, grace=5.0, output=64 * 1024 * 1024)
_MOST_FILES = 20_000
_MOST_BYTES = 256 * 1024 * 1024
_LOG_LIMIT = 16 * 1024
_ABANDONED = 3600.0
"""Seconds after which what is left of a run belongs to no process: none may take that long."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """How runs are kept apart: `isolated` by Landlock, with `environment` (proxies, certificates) passed to each."""

    root: Path
    isolated: bool
    environment: Mapping[str, str]
    readable: Sequence[Path] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """The directories of one run: `work` holds the tree, `out` is written to, `home` is thrown away."""

    base: Path
    confinement: Confinement

    @property
    def work(self) -> Path:
        """The tree."""
        return self.base / "work"

    @property
    def out(self) -> Path:
        """Where the program writes files."""
        return self.base / "out"

    @property
    def home(self) -> Path:
        """HOME, caches and temporary files."""
        return self.base / "home"

    async def run(
        self,
        binary: Path,
        *arguments: str,
        environment: Mapping[str, str],
        also: Sequence[Path] = (),
        limits: Limits = _LIMITS,
    ) -> Ended:
        """Run a program in the tree; `also` are further programs that it may start.

        Raises TerminalError if it cannot be started or the kernel has no Landlock.
        """
        rules = self._rules((binary, *also))
        command = Command(
            arguments=[str(binary), *arguments],
            directory=self.work,
            environment={**self._environment(), **environment},
            rules=rules,
            limits=limits,
            spool=self.home,
        )
        try:
            return await execute(command, Stop())
        finally:
            if rules is not None:
                rules.close()

    def _environment(self) -> dict[str, str]:
        return {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ALLOW_PROTOCOL": "https:ssh",
            **self.confinement.environment,
            "PATH": PATH,
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
        }

    def _rules(self, programs: Sequence[Path]) -> landlock.Ruleset | None:
        if not self.confinement.isolated:
            return None
        readable = [*programs, *map(Path, READABLE), *self.confinement.readable]
        try:
            return landlock.Ruleset(
                [path.resolve() for path in readable], [self.work, self.out, self.home, Path("/dev/null")]
            )
        except OSError as error:
            raise TerminalError(
                f"{programs[0].name} cannot be isolated: this kernel offers no Landlock ({error.strerror}). Use Linux "
                "5.13 or newer with Landlock on, or accept runs that can read the bot's secrets: "
                "LOCKSTEP_ISOLATION=none."
            ) from error

    async def read(self, directory: Path) -> dict[str, bytes]:
        """The regular files below a directory of this cell; raises TerminalError beyond 20,000 or 256 MiB."""
        return await asyncio.to_thread(_read, directory)

    def hide(self, text: str) -> str:
        """What a program said, with paths as the tree has them, bounded."""
        shown = text.replace(f"{self.work}/", "").replace(str(self.base), "").strip()
        return shown if len(shown) <= _LOG_LIMIT else f"…{shown[-_LOG_LIMIT:]}"


@contextlib.asynccontextmanager
async def open_cell(confinement: Confinement, files: Mapping[str, File]) -> AsyncIterator[Cell]:
    """A cell with these files in it, gone afterwards.

    Raises TerminalError for a file that points out of the tree.
    """
    check_files(files)
    confinement.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    base = Path(tempfile.mkdtemp(dir=confinement.root))
    cell = Cell(base, confinement)
    try:
        await asyncio.to_thread(_prepare, cell, files)
        yield cell
    finally:
        await asyncio.shield(asyncio.to_thread(_clear, base))


def sweep_cells(root: Path) -> None:
    """Clear what runs of a bot that was killed left on disk, once it is too old to be anybody's."""
    for base in root.glob("*"):
        if base.stat().st_mtime < time.time() - _ABANDONED:
            _clear(base)


def _prepare(cell: Cell, files: Mapping[str, File]) -> None:
    for directory in (cell.work, cell.out, cell.home):
        directory.mkdir(mode=0o700)
    write_files(cell.work, files)


def _clear(base: Path) -> None:
    empty_directory(base)
    shutil.rmtree(base)


def check_files(files: Mapping[str, File]) -> None:
    """Raises TerminalError for a path, or the target of a link, that is not inside the tree."""
    for path, file in files.items():
        if any(part in ("", ".", "..") for part in path.split("/")) or "\0" in path:
            raise TerminalError(f"the path {path!r} leaves the tree; nothing is run on it")
        if file.mode is Mode.SYMLINK:
            target = file.data.decode("utf-8", "surrogateescape")
            landed = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            if target.startswith("/") or landed == ".." or landed.startswith("../"):
                raise TerminalError(
                    f"the link {path!r} points out of the tree, to {target!r}; nothing is run on it"
                )


def _read(directory: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    total = 0
    for folder, _, names in os.walk(directory):
        for name in sorted(names):
            full = Path(folder) / name
            if full.is_symlink() or not full.is_file():
                continue
            total += full.stat().st_size
            if len(found) >= _MOST_FILES or total > _MOST_BYTES:
                raise TerminalError(
                    f"rendering made more than {_MOST_FILES} files or {_MOST_BYTES >> 20} MiB, the most that is kept"
                )
            found[full.relative_to(directory).as_posix()] = full.read_bytes()
    return found
