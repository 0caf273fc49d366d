"""One checkout of a repository in the work tree: a tree of the mirror, and what differs from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.domain.files import Change, CommitId, Entry, File
from bot.domain.review import Pin
from bot.domain.values import Unknown, Value


@dataclass(frozen=True, slots=True)
class LocalCommit:
    """A commit of the walk that is not pushed yet: its message and what it changes, paths inside the checkout."""

    message: Value
    changes: tuple[Change, ...]


@dataclass(slots=True)
class Checkout:
    """One checkout of a repository. `files` is the tree of `pin.commit`; the overlays hold what differs from it.

    `committed` is the overlay as of the last local commit, `overlay` the current one; None marks a removed path.
    """

    pin: Pin
    files: Mapping[str, Entry]
    overlay: dict[str, File | None] = field(default_factory=dict)
    committed: dict[str, File | None] = field(default_factory=dict)
    commits: list[LocalCommit] = field(default_factory=list)
    head: CommitId | None = None
    """The last commit object that the walk made (fulfil only), else the pinned commit."""
    author: tuple[str, str] | None = None
    """Name and e-mail for commits, where `git-clone` names an author."""
    awaits_merge: bool = False
    """Whether it stands for its branch after a merge that is not there yet: which commit that is, nobody knows."""

    def entry(self, path: str) -> Entry | None:
        """What stands at a path now."""
        if path in self.overlay:
            file = self.overlay[path]
            return None if file is None else file.entry
        return self.files.get(path)

    def await_merge(self, files: Mapping[str, File | None]) -> None:
        """Stand for the branch after a merge that brings these files; None removes one."""
        self.overlay, self.committed, self.awaits_merge = dict(files), dict(files), True

    @property
    def commit(self) -> Value:
        """The commit at its head, as far as it is known."""
        if self.awaits_merge or (self.commits and self.head == self.pin.commit):
            return Unknown("known after merge: commit")
        return self.head or ""

    def paths(self) -> set[str]:
        """Every path that exists now."""
        gone = {path for path, file in self.overlay.items() if file is None}
        return (set(self.files) | set(self.overlay)) - gone
