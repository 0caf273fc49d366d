"""Files of a git tree as values: what stands where, and what a step changed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

CommitId = NewType("CommitId", str)
"""Forty hex digits naming a commit."""

TreeId = NewType("TreeId", str)
"""Forty hex digits naming a tree."""

BlobId = NewType("BlobId", str)
"""Forty hex digits naming a blob."""


class Mode(StrEnum):
    """Git's modes for entries of a tree."""

    FILE = "100644"
    EXECUTABLE = "100755"
    SYMLINK = "120000"
    SUBMODULE = "160000"


@dataclass(frozen=True, slots=True)
class Entry:
    """One path of a tree: its mode and the id of its content."""

    mode: Mode
    blob: BlobId


@dataclass(frozen=True, slots=True)
class File:
    """The content of one path, held in memory."""

    data: bytes
    mode: Mode = Mode.FILE

    @property
    def entry(self) -> Entry:
        """What git would record for it."""
        return Entry(self.mode, blob_id(self.data))


@dataclass(frozen=True, slots=True)
class Change:
    """A path whose content differs; `before` or `after` is None where it does not exist."""

    path: str
    before: File | None
    after: File | None


def blob_id(data: bytes) -> BlobId:
    """Git's name for a blob with this content (SHA-1 repositories)."""
    return BlobId(hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest())
