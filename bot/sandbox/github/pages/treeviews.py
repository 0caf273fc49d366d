"""Files of a repository as pages show them, each with the commit that touched it last."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from bot.sandbox.github.errors import not_found
from bot.sandbox.github.git import Commit, Git

_MOST: Final = 300
"""Entries of one folder that are shown with their last commit; each costs a walk through the history."""
SHOWN_BYTES: Final = 512 * 1024


@dataclass(frozen=True, slots=True)
class File:
    """A file or folder; `last` is the newest commit that touched it, if the folder is not too long for that."""

    name: str
    path: str
    folder: bool
    size: int | None
    last: Commit | None


def list_folder(git: Git, sha: str, path: str) -> tuple[File, ...]:
    """The folder at `path` (empty: the top) of a commit, folders first; 404 if it is none."""
    return _listed(git.path.as_posix(), sha, path)


@lru_cache(maxsize=64)
def _listed(repository: str, sha: str, path: str) -> tuple[File, ...]:
    git = Git(Path(repository))
    if git.object_type(f"{sha}:{path}") != "tree":
        raise not_found()
    entries = git.tree(f"{sha}:{path}")
    entries.sort(key=lambda entry: (entry.type != "tree", entry.path))
    prefix = f"{path}/" if path else ""
    return tuple(
        File(
            entry.path,
            prefix + entry.path,
            entry.type == "tree",
            entry.size,
            git.commits("-1", sha, path=prefix + entry.path)[0] if len(entries) <= _MOST else None,
        )
        for entry in entries
    )


def read_text(git: Git, sha: str, path: str) -> str | None:
    """The text of a file at a commit; None if it is binary or too long to show, 404 if there is no such file."""
    if git.object_type(f"{sha}:{path}") != "blob":
        raise not_found()
    body = git.blob(f"{sha}:{path}")
    if len(body) > SHOWN_BYTES or b"\0" in body[:8000]:
        return None
    return body.decode(errors="replace")
