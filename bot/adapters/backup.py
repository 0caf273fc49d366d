"""A consistent copy of SQLite databases while a bot writes to them, as one tar archive.

SQLite's own online backup copies each database as of one moment. The archive holds the files under their names, so
that unpacking it into an empty data directory restores them.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.ports import TerminalError


@dataclass(frozen=True, slots=True)
class Copied:
    """A file of the archive: its name there and its size in bytes."""

    name: str
    size: int


def write_backup(target: Path, databases: Sequence[Path], others: Sequence[Path]) -> Sequence[Copied]:
    """Copy the databases, one after the other, then other files, into an archive that only its owner can read.

    The archive appears under its name once it is whole and every copy was found sound. Raises TerminalError if a file
    is missing or cannot be read, a copy is not sound, or the target is there or cannot be written.
    """
    if target.exists():
        raise TerminalError(f"{target} exists; a backup is never overwritten, choose another name")
    for path in (*databases, *others):
        if not path.is_file():
            raise TerminalError(f"{path} is missing, so there is nothing to copy")
    try:
        # Beside the target, so that the last step is a rename; nobody else may look into it meanwhile.
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as made:
            folder = Path(made)
            copies = [_copy(path, folder / path.name) for path in databases]
            whole = folder / "archive"
            copied = _pack(whole, [*copies, *others])
            _place(whole, target)
    except OSError as error:
        raise TerminalError(
            f"the backup {target} cannot be written: {error.strerror or error}; nothing was left"
        ) from error
    return copied


def _copy(source: Path, target: Path) -> Path:
    """One database as of one moment, found sound. The source is opened for reading alone."""
    target.touch(mode=0o600)
    try:
        with (
            contextlib.closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as live,
            contextlib.closing(sqlite3.connect(target)) as copy,
        ):
            live.execute("PRAGMA busy_timeout=30000")
            # All pages in one step: with several, a busy writer would make it begin anew again and again.
            live.backup(copy)
            found = [str(row[0]) for row in copy.execute("PRAGMA integrity_check(5)")]
            # One file without a log beside it; the bot turns the log on again at its start.
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise TerminalError(f"{source} cannot be copied: {error}") from error
    if found != ["ok"]:
        raise TerminalError(f"the copy of {source} is not sound: {'; '.join(found)}")
    return target


def _pack(archive: Path, files: Sequence[Path]) -> Sequence[Copied]:
    descriptor = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        with tarfile.open(fileobj=stream, mode="w") as tar:
            for path in files:
                tar.add(path, arcname=path.name, filter=_ours_alone)
        stream.flush()
        os.fsync(stream.fileno())
    return tuple(Copied(path.name, path.stat().st_size) for path in files)


def _ours_alone(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mode, entry.uid, entry.gid, entry.uname, entry.gname = 0o600, 0, 0, "", ""
    return entry


def _place(whole: Path, target: Path) -> None:
    # A link fails where a rename would replace what somebody else has just written there.
    os.link(whole, target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
