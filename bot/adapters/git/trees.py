"""Trees changed in memory: only the directories on the way to a changed path are read and written again.

For a repository of 20,000 files this takes three short commands where an index would have to hold every file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bot.domain.files import Entry, TreeId

_TREE = "40000"


@dataclass(slots=True)
class Directory:
    """A directory in memory; what is not read is held as mode and id."""

    children: dict[str, Directory | tuple[str, str]] = field(default_factory=dict)


def folders_of(paths: Mapping[str, object]) -> list[str]:
    """The directories on the way to these paths, the root as an empty text first, parents before children."""
    found = {""}
    for path in paths:
        parts = path.split("/")[:-1]
        found.update("/".join(parts[: n + 1]) for n in range(len(parts)))
    return sorted(found)


def parse_tree(raw: bytes) -> Directory:
    """A tree object's content as a directory."""
    directory = Directory()
    position = 0
    while position < len(raw):
        end = raw.index(b"\0", position)
        mode, _, name = raw[position:end].decode("utf-8", "surrogateescape").partition(" ")
        directory.children[name] = (mode, raw[end + 1 : end + 21].hex())
        position = end + 21
    return directory


def change_tree(read: Mapping[str, bytes], changes: Mapping[str, Entry | None]) -> Directory:
    """The root that results when `changes` are made to the directories that were read, by their paths.

    Removals come first, so that a file may become a directory. A file written in the place of a directory replaces it.
    """
    root = parse_tree(read.get("", b""))
    for folder in folders_of(changes)[1:]:
        if folder in read:
            parent, name = _parent_of(root, folder)
            if parent is not None:
                parent.children[name] = parse_tree(read[folder])
    for path, entry in sorted(changes.items(), key=lambda change: change[1] is not None):
        if entry is None:
            parent, name = _parent_of(root, path)
            if parent is not None:
                _remove(parent, name)
        else:
            *folders, name = path.split("/")
            directory = root
            for folder in folders:
                child = directory.children.get(folder)
                if not isinstance(child, Directory):
                    child = directory.children[folder] = Directory()
                directory = child
            directory.children[name] = (entry.mode.value, entry.blob)
    return root


def _parent_of(root: Directory, path: str) -> tuple[Directory | None, str]:
    *folders, name = path.split("/")
    directory = root
    for folder in folders:
        child = directory.children.get(folder)
        if not isinstance(child, Directory):
            return None, name
        directory = child
    return directory, name


def _remove(parent: Directory, name: str) -> None:
    child = parent.children.get(name)
    # A path that names a directory is no file; removing it would take files that nobody named.
    if isinstance(child, tuple) and child[0] != _TREE:
        del parent.children[name]


def write_order(root: Directory) -> tuple[TreeId, list[bytes]]:
    """The root's id, and a record for `git mktree --batch -z` of each directory in memory, children first.

    Directories that have become empty are left out of their parents, as git knows none.
    """
    records: list[bytes] = []
    return TreeId(_emit(root, records)), records


def _emit(directory: Directory, records: list[bytes]) -> str:
    lines = list(_lines(directory, records))
    raw = b"".join(
        f"{mode} {name}\0".encode("utf-8", "surrogateescape") + bytes.fromhex(object_id)
        for name, mode, object_id in sorted(lines, key=_order)
    )
    records.append(
        b"".join(
            f"{int(mode, 8):06o} {_kind(mode)} {object_id}\t{name}\0".encode("utf-8", "surrogateescape")
            for name, mode, object_id in lines
        )
    )
    return hashlib.sha1(b"tree %d\0" % len(raw) + raw, usedforsecurity=False).hexdigest()


def _lines(directory: Directory, records: list[bytes]) -> Iterator[tuple[str, str, str]]:
    for name, child in directory.children.items():
        if isinstance(child, tuple):
            yield name, child[0], child[1]
        elif not _is_empty(child):
            yield name, _TREE, _emit(child, records)


def _is_empty(directory: Directory) -> bool:
    return all(isinstance(child, Directory) and _is_empty(child) for child in directory.children.values())


def _order(line: tuple[str, str, str]) -> bytes:
    # Git sorts a directory as if its name ended with a slash.
    return (line[0] + ("/" if line[1] == _TREE else "")).encode("utf-8", "surrogateescape")


def _kind(mode: str) -> str:
    return {"40000": "tree", "160000": "commit"}.get(mode, "blob")
