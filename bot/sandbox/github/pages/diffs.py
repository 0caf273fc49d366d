"""A file's patch as rows with line numbers, for the page of changed files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from bot.sandbox.github.git import FileChange, Git

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
LONGEST: Final = 1500
"""Rows of one file that are shown; GitHub too leaves large diffs out."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line; `kind` is `add`, `del`, `hunk`, `note` or empty, `old` and `new` are line numbers or empty."""

    kind: str
    old: str
    new: str
    text: str


@dataclass(frozen=True, slots=True)
class FileDiff:
    """One changed file; `cut` counts the rows that are left out, `previous` is its name before a rename."""

    path: str
    status: str
    additions: int
    deletions: int
    rows: tuple[Row, ...]
    cut: int = 0
    previous: str | None = None


@dataclass(frozen=True, slots=True)
class Diff:
    """All changed files with the sums of their lines."""

    files: tuple[FileDiff, ...]

    @property
    def additions(self) -> int:
        """Lines added."""
        return sum(each.additions for each in self.files)

    @property
    def deletions(self) -> int:
        """Lines removed."""
        return sum(each.deletions for each in self.files)


def diff_of(git: Git, old: str, new: str) -> Diff:
    """What changes from one commit to another."""
    return _cached(git.path.as_posix(), old, new)


@lru_cache(maxsize=64)
def _cached(path: str, old: str, new: str) -> Diff:
    # Commits never change, so neither does what lies between two of them.
    return Diff(tuple(map(_file, Git(Path(path)).diff(old, new))))


def _file(change: FileChange) -> FileDiff:
    rows = _rows(change.patch) if change.patch is not None else []
    shown = tuple(rows[:LONGEST])
    return FileDiff(
        change.filename,
        change.status,
        change.additions,
        change.deletions,
        shown,
        len(rows) - len(shown),
        change.previous,
    )


def _rows(patch: str) -> list[Row]:
    rows: list[Row] = []
    old = new = 0
    for line in patch.split("\n"):
        mark, text = line[:1], line[1:].removesuffix("\r")
        hunk = _HUNK.match(line)
        if hunk:
            old, new = int(hunk[1]), int(hunk[2])
            rows.append(Row("hunk", "", "", line))
        elif mark == "+":
            rows.append(Row("add", "", str(new), text))
            new += 1
        elif mark == "-":
            rows.append(Row("del", str(old), "", text))
            old += 1
        elif mark == "\\":
            rows.append(Row("note", "", "", line))
        else:
            rows.append(Row("", str(old), str(new), text))
            old, new = old + 1, new + 1
    return rows
