"""Git by a bare mirror per repository, without a work tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bot.domain.files import CommitId, Entry, File, TreeId
from bot.domain.selection import GitTag


@dataclass(frozen=True, slots=True)
class Signature:
    """Who made a commit and when."""

    name: str
    email: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as git has it; `trailers` are the last paragraph's, keys as written."""

    id: CommitId
    tree: TreeId
    parents: tuple[CommitId, ...]
    message: str
    author: Signature
    committer: Signature
    trailers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Merged:
    """The tree of a merge without conflicts."""

    tree: TreeId


@dataclass(frozen=True, slots=True)
class Conflicted:
    """The merge has conflicts in these paths."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pushed:
    """The branch now points at the commit."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The branch was not where it was expected; it is at `tip` now (None: it does not exist)."""

    tip: CommitId | None


@dataclass(frozen=True, slots=True)
class Refused:
    """The server's rules refuse the push; `message` is what it said."""

    message: str


PushOutcome = Pushed | Moved | Refused


class Git(Protocol):
    """Git by a bare mirror per repository; no work tree. `url` is an https (or loopback http) address.

    Raises TransientError if the server cannot be reached, TerminalError if access is refused or it does not exist.
    """

    async def fetch(self, url: str, *refs: str) -> None:
        """Bring branches and tags up to date; `refs` adds single refs such as `refs/pull/7/head`."""

    async def resolve(self, url: str, revision: str) -> CommitId | None:
        """The commit of a branch, tag, ref or id in the mirror (a branch first); empty means the default branch."""

    async def default_branch(self, url: str) -> str:
        """The name of the branch that the server's HEAD points to, asked now."""

    async def list_files(self, url: str, tree: CommitId | TreeId) -> Mapping[str, Entry]:
        """Every path of a tree, submodules included."""

    async def read_files(self, url: str, entries: Mapping[str, Entry]) -> Mapping[str, File]:
        """The contents of these entries in one go (submodules are left out)."""

    async def write_tree(
        self, url: str, base: CommitId | TreeId | None, changes: Mapping[str, File | None]
    ) -> TreeId:
        """The tree that `base` becomes with these paths written (or removed where None)."""

    async def commit(
        self, url: str, tree: TreeId, parents: Sequence[CommitId], message: str, signature: Signature
    ) -> CommitId:
        """A commit object; the same arguments give the same id."""

    async def read_commit(self, url: str, commit: CommitId) -> Commit:
        """What a commit says."""

    async def read_commits(self, url: str, commits: Sequence[CommitId]) -> Sequence[Commit]:
        """What these commits say, in the same order, read in one go."""

    async def log(
        self, url: str, base: CommitId | None, head: CommitId, *, limit: int = 250
    ) -> Sequence[Commit]:
        """Commits that `head` has and `base` has not, newest first."""

    async def list_mainline(
        self, url: str, head: CommitId, *, skip: int = 0, limit: int = 250
    ) -> Sequence[Commit]:
        """`head` and what it follows by first parents alone, newest first: what happened to the branch itself."""

    async def list_tags(self, url: str) -> Sequence[GitTag]:
        """The tags of the mirror that lead to commits, newest first by the time at which they were made."""

    async def list_changed_paths(
        self, url: str, commits: Sequence[Commit]
    ) -> Mapping[CommitId, tuple[str, ...]]:
        """What each commit changed against its first parent, renames not followed; all of it for one without."""

    async def merge_trees(self, url: str, ours: CommitId, theirs: CommitId) -> Merged | Conflicted:
        """The tree of merging two commits, as `git merge-tree --write-tree` gives it."""

    async def diff(
        self, url: str, before: CommitId | TreeId | None, after: CommitId | TreeId
    ) -> Sequence[tuple[str, Entry | None, Entry | None]]:
        """Paths that differ between two trees, renames not followed."""

    async def is_ancestor(self, url: str, ancestor: CommitId, descendant: CommitId) -> bool:
        """Whether `descendant` contains `ancestor`."""

    async def is_related(self, url: str, one: CommitId, other: CommitId) -> bool:
        """Whether two commits have an ancestor in common."""

    async def push(
        self, url: str, commit: CommitId | None, branch: str, *, expected: CommitId | None
    ) -> PushOutcome:
        """Move a branch with a lease; `commit` None deletes it, `expected` None means that it must not exist."""

    async def push_tag(self, url: str, commit: CommitId, tag: str, *, force: bool) -> PushOutcome:
        """Create or move a tag."""


class ProjectGit(Protocol):
    """The repositories that the tasks of projects work in, each with the credentials of its project."""

    def of(self, project: str) -> Git:
        """The repositories as one walk of a task of this project sees them; ask anew for the next walk.

        A repository is in the App's mirror where the App is installed, else in one of the project's own, which is
        fetched and pushed to with its Secrets and the shared ones, or without a login. Which of the two does not change
        within a walk, since what is written and not pushed yet is in one of them alone.
        """


class WatchedGit(Protocol):
    """The repositories that Warehouses watch, each with the credentials of who watches it."""

    async def open(self, project: str, url: str, *, insecure: bool = False, blobless: bool = False) -> Git:
        """The mirrors in which to read it: those of the App where it is installed, else the project's own.

        A project's own are fetched with its Secrets, or with none. `insecure` leaves the server's certificate
        unverified, `blobless` leaves the contents of files out; both concern the project's own alone. Raises what
        `Git` raises.
        """
