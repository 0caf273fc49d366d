"""A backup is whole, ours alone, and never half there."""

from __future__ import annotations

import contextlib
import sqlite3
import tarfile
from pathlib import Path

import pytest

from bot.adapters.backup import write_backup
from bot.ports import TerminalError


def make(path: Path) -> Path:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(5000)])
        connection.commit()
    return path


def test_what_is_committed_is_in_it_and_what_is_not_is_not(tmp_path: Path) -> None:
    source, target = make(tmp_path / "a.db"), tmp_path / "out" / "backup.tar"
    target.parent.mkdir()
    with contextlib.closing(sqlite3.connect(source)) as writer:
        # Committed, but only in the log beside the file; then something that is not committed.
        writer.execute("INSERT INTO t VALUES (-1)")
        writer.commit()
        writer.execute("INSERT INTO t VALUES (-2)")
        write_backup(target, [source], [])
    assert target.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in target.parent.iterdir()] == ["backup.tar"]
    with tarfile.open(target) as tar:
        tar.extractall(tmp_path / "restored", filter="data")
    restored = tmp_path / "restored" / "a.db"
    assert restored.stat().st_mode & 0o777 == 0o600
    with contextlib.closing(sqlite3.connect(restored)) as connection:
        assert connection.execute("SELECT count(*), min(x) FROM t").fetchone() == (5001, -1)


@pytest.mark.parametrize("name", ["missing", "no database", "torn", "existing", "nowhere"])
def test_what_cannot_be_copied_leaves_nothing(tmp_path: Path, name: str) -> None:
    source, folder = make(tmp_path / "a.db"), tmp_path / "out"
    folder.mkdir()
    target = folder / "backup.tar"
    match name:
        case "missing":
            source.unlink()
        case "no database":
            source.write_bytes(b"x" * 5000)
        case "torn":
            content = bytearray(source.read_bytes())
            content[4096 * 3 : 4096 * 5] = b"\xff" * 8192
            source.write_bytes(bytes(content))
        case "existing":
            target.write_text("kept")
        case _:
            target = tmp_path / "nowhere" / "backup.tar"
    with pytest.raises(TerminalError, match=r"a\.db|backup\.tar"):
        write_backup(target, [source], [])
    assert [path.read_text() for path in folder.iterdir()] == (["kept"] if name == "existing" else [])
