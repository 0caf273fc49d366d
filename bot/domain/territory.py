"""The paths of a repository that a Stage lives on, as its last preview found them."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass

from bot.domain.review import Preview
from bot.domain.splitting import inside_checkout


@dataclass(frozen=True, slots=True)
class Territory:
    """Paths of a repository that a Stage lives on: files, and the folders that hold them."""

    files: frozenset[str]
    folders: frozenset[str]

    def find(self, paths: Iterable[str]) -> str:
        """The first path that lies in it, empty if none does."""
        # A path that was touched may itself be a folder, which a renderer read as a whole.
        inside = self.folders | self.files
        return next((path for path in paths if path in self.files or inside & _above(path)), "")


def territory_of(preview: Preview, *, with_diff: bool = True) -> Territory:
    """All that a preview read or wrote in its target, and what its pull request changes unless that is a person's."""
    files = preview.touched | (set(preview.differences) if with_diff else set())
    return Territory(files, frozenset(posixpath.dirname(path) for path in files) - {""})


@dataclass(frozen=True, slots=True)
class Sources:
    """Terraform's inputs in the target: `files`, and `folders`, where a new file is an input, too (empty: the root)."""

    files: frozenset[str]
    folders: frozenset[str]

    def find(self, paths: Iterable[str]) -> str:
        """The first path that is an input, or would be one beside the others; empty if none is."""
        return next((p for p in paths if p in self.files or posixpath.dirname(p) in self.folders), "")


def sources_of(preview: Preview) -> Sources:
    """What the Terraform of a preview depends on, in the target's own repository."""
    paths = {path for apply in preview.applies for path in apply.input_paths}
    inner = (inside_checkout(place, path) for place in preview.checkouts for path in paths)
    files = frozenset(path for path in inner if path is not None)
    return Sources(files, frozenset(posixpath.dirname(path) for path in files))


def written_by(preview: Preview) -> frozenset[str]:
    """The paths of the target that the steps write or address, whether or not that changed them."""
    paths = {path for step in preview.steps for path in step.wrote}
    inner = {inside_checkout(place, path) for place in preview.checkouts for path in paths}
    states = {path for apply in preview.applies for path in apply.state_files}
    kept = {inside_checkout(place, path) for place in preview.checkouts for path in states}
    return frozenset(path for path in inner - kept if path is not None)


def _above(path: str) -> frozenset[str]:
    """Every folder that a path lies in."""
    folders = []
    while path := posixpath.dirname(path):
        folders.append(path)
    return frozenset(folders)
