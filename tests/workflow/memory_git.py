"""Git in memory: servers and our mirror of them, as strict as the real ones about leases and what was fetched."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bot.domain.files import BlobId, CommitId, Entry, File, Mode, TreeId, blob_id
from bot.domain.selection import GitTag
from bot.ports import Commit, Conflicted, Merged, Moved, Pushed, PushOutcome, Signature

Tree = dict[str, Entry]
Refs = dict[str, CommitId]


def _nothing(_what: str) -> None:
    """Nobody wants to know."""


def _no_watcher(_branch: str, _old: CommitId | None, _new: CommitId | None) -> None:
    """Nobody watches what the bot pushes."""


@dataclass
class MemoryGit:
    """One repository. `refs` is the server's, `mirror` what the last fetch found; objects are shared.

    `tick` is told of every use of the network, `watch` of every branch that the bot is about to move.
    """

    url: str
    tick: Callable[[str], None] = _nothing
    watch: Callable[[str, CommitId | None, CommitId | None], None] = _no_watcher
    refs: Refs = field(default_factory=dict)
    mirror: Refs = field(default_factory=dict)
    blobs: dict[BlobId, bytes] = field(default_factory=dict)
    trees: dict[TreeId, Tree] = field(default_factory=dict)
    commits: dict[CommitId, Commit] = field(default_factory=dict)

    # -- the port ----------------------------------------------------------------------------------------------------

    async def fetch(self, url: str, *refs: str) -> None:
        self._known(url)
        self.tick("git fetch")
        self.mirror = dict(self.refs)

    async def resolve(self, url: str, revision: str) -> CommitId | None:
        self._known(url)
        if revision in self.commits:
            return CommitId(revision)
        names = (revision, f"refs/heads/{revision or 'main'}", f"refs/tags/{revision}")
        return next((self.mirror[name] for name in names if name in self.mirror), None)

    async def default_branch(self, url: str) -> str:
        return "main"

    async def list_files(self, url: str, tree: CommitId | TreeId) -> Mapping[str, Entry]:
        return dict(self.files(tree))

    async def read_files(self, url: str, entries: Mapping[str, Entry]) -> Mapping[str, File]:
        return {path: File(self.blobs[entry.blob], entry.mode) for path, entry in entries.items()}

    async def write_tree(
        self, url: str, base: CommitId | TreeId | None, changes: Mapping[str, File | None]
    ) -> TreeId:
        return self.write(base, changes)

    async def commit(
        self, url: str, tree: TreeId, parents: Sequence[CommitId], message: str, signature: Signature
    ) -> CommitId:
        return self.make(tree, parents, message, signature)

    async def read_commit(self, url: str, commit: CommitId) -> Commit:
        return self.commits[commit]

    async def read_commits(self, url: str, commits: Sequence[CommitId]) -> Sequence[Commit]:
        return [self.commits[commit] for commit in commits]

    async def log(
        self, url: str, base: CommitId | None, head: CommitId, *, limit: int = 250
    ) -> Sequence[Commit]:
        return self.between(base, head)[:limit]

    async def list_mainline(
        self, url: str, head: CommitId, *, skip: int = 0, limit: int = 250
    ) -> Sequence[Commit]:
        line, at = [], self.commits.get(head)
        while at is not None:
            line.append(at)
            at = self.commits[at.parents[0]] if at.parents else None
        return line[skip : skip + limit]

    async def list_tags(self, url: str) -> Sequence[GitTag]:
        return ()

    async def list_changed_paths(
        self, url: str, commits: Sequence[Commit]
    ) -> Mapping[CommitId, tuple[str, ...]]:
        return {
            c.id: tuple(p for p, _, _ in self.differences(c.parents[0] if c.parents else None, c.id))
            for c in commits
        }

    async def merge_trees(self, url: str, ours: CommitId, theirs: CommitId) -> Merged | Conflicted:
        return self.merged(ours, theirs)

    async def is_related(self, url: str, one: CommitId, other: CommitId) -> bool:
        return bool(self.ancestors(one) & self.ancestors(other))

    async def diff(
        self, url: str, before: CommitId | TreeId | None, after: CommitId | TreeId
    ) -> Sequence[tuple[str, Entry | None, Entry | None]]:
        return self.differences(before, after)

    async def is_ancestor(self, url: str, ancestor: CommitId, descendant: CommitId) -> bool:
        return ancestor in self.ancestors(descendant)

    async def push(
        self, url: str, commit: CommitId | None, branch: str, *, expected: CommitId | None
    ) -> PushOutcome:
        self._known(url)
        self.tick("git push")
        name = f"refs/heads/{branch}"
        if self.refs.get(name) != expected:
            return Moved(self.refs.get(name))
        self.watch(branch, expected, commit)
        self.move(branch, commit)
        self.mirror = {**self.mirror, **{k: v for k, v in self.refs.items() if k == name}}
        if commit is None:
            self.mirror.pop(name, None)
        self.tick("git pushed")
        return Pushed()

    async def push_tag(self, url: str, commit: CommitId, tag: str, *, force: bool) -> PushOutcome:
        raise AssertionError("no task of these tests pushes a tag")

    # -- objects -----------------------------------------------------------------------------------------------------

    def files(self, tree: CommitId | TreeId | None) -> Tree:
        """Every path of a commit or tree; none has none."""
        if tree is None:
            return {}
        found = self.commits.get(CommitId(tree))
        return self.trees[found.tree if found is not None else TreeId(tree)]

    def text(self, revision: CommitId | TreeId, path: str) -> str:
        """A file as text, empty if it is not there."""
        entry = self.files(revision).get(path)
        return self.blobs[entry.blob].decode() if entry is not None else ""

    def write(self, base: CommitId | TreeId | None, changes: Mapping[str, File | None]) -> TreeId:
        """The tree that `base` becomes."""
        tree = dict(self.files(base))
        for path, file in changes.items():
            tree.pop(path, None)
            if file is not None:
                name = blob_id(file.data)
                self.blobs[name] = file.data
                tree[path] = Entry(file.mode, name)
        return self._keep(tree)

    def _keep(self, tree: Tree) -> TreeId:
        listed = "\n".join(f"{e.mode} {e.blob} {p}" for p, e in sorted(tree.items()))
        name = TreeId(hashlib.sha1(f"tree {listed}".encode()).hexdigest())
        self.trees[name] = tree
        return name

    def make(self, tree: TreeId, parents: Sequence[CommitId], message: str, signature: Signature) -> CommitId:
        """A commit; the same arguments give the same id."""
        said = f"commit {tree} {list(parents)} {message} {signature}"
        name = CommitId(hashlib.sha1(said.encode()).hexdigest())
        found = re.findall(r"^([A-Za-z-]+): (.*)$", message.strip().rpartition("\n\n")[2], re.MULTILINE)
        made = Commit(name, tree, tuple(parents), message, signature, signature, dict(found))
        self.commits.setdefault(name, made)
        return name

    def differences(
        self, before: CommitId | TreeId | None, after: CommitId | TreeId
    ) -> list[tuple[str, Entry | None, Entry | None]]:
        """Paths that differ."""
        old, new = self.files(before), self.files(after)
        return [(p, old.get(p), new.get(p)) for p in sorted(old | new) if old.get(p) != new.get(p)]

    def ancestors(self, commit: CommitId | None) -> set[CommitId]:
        """A commit and all below it."""
        seen: set[CommitId] = set()
        todo = [commit] if commit is not None else []
        while todo:
            at = todo.pop()
            if at not in seen:
                seen.add(at)
                todo += self.commits[at].parents
        return seen

    def between(self, base: CommitId | None, head: CommitId) -> list[Commit]:
        """Commits that `head` has and `base` has not, newest first."""
        wanted = self.ancestors(head) - self.ancestors(base)
        return [c for c in reversed(self.commits.values()) if c.id in wanted]

    def merged(self, ours: CommitId, theirs: CommitId) -> Merged | Conflicted:
        """The tree of a merge: paths, and lines of files that kept their number of lines, one by one."""
        common = self.ancestors(ours) & self.ancestors(theirs)
        base = next((c for c in reversed(self.commits) if c in common), None)
        was, one, two = self.files(base), self.files(ours), self.files(theirs)
        tree: Tree = {}
        clashes = []
        for path in sorted(was | one | two):
            old, left, right = was.get(path), one.get(path), two.get(path)
            entry = right if left == old else left
            if left not in (old, right) and right != old:
                entry = self._merge_lines(old, left, right)
                if entry is None:
                    clashes.append(path)
            if entry is not None:
                tree[path] = entry
        return Conflicted(tuple(clashes)) if clashes else Merged(self._keep(tree))

    def _merge_lines(self, old: Entry | None, left: Entry | None, right: Entry | None) -> Entry | None:
        if old is None or left is None or right is None:
            return None
        was, one, two = (self.blobs[entry.blob].split(b"\n") for entry in (old, left, right))
        if not len(was) == len(one) == len(two):
            return None
        lines = []
        for a, b, c in zip(was, one, two, strict=True):
            if b not in (a, c) and c != a:
                return None
            lines.append(c if b == a else b)
        data = b"\n".join(lines)
        self.blobs[blob_id(data)] = data
        return Entry(left.mode, blob_id(data))

    # -- what people do ------------------------------------------------------------------------------------------------

    def tip(self, branch: str = "main") -> CommitId:
        """Where a branch of the server is."""
        return self.refs[f"refs/heads/{branch}"]

    def has(self, branch: str) -> bool:
        """Whether the server has a branch."""
        return f"refs/heads/{branch}" in self.refs

    def move(self, branch: str, commit: CommitId | None) -> None:
        """Move, make or delete a branch of the server."""
        self.refs.pop(f"refs/heads/{branch}", None)
        if commit is not None:
            self.refs[f"refs/heads/{branch}"] = commit

    def push_files(self, branch: str, files: Mapping[str, str], message: str, who: Signature) -> CommitId:
        """A person's commit with these files on top of a branch."""
        parents = [self.tip(branch)] if self.has(branch) else []
        changes = {path: File(text.encode(), Mode.FILE) for path, text in files.items()}
        commit = self.make(self.write(parents[0] if parents else None, changes), parents, message, who)
        self.move(branch, commit)
        return commit

    def texts(self, commits: Iterable[CommitId]) -> Iterable[str]:
        """Messages and files of commits, to be searched."""
        for commit in commits:
            yield self.commits[commit].message
            for entry in self.files(commit).values():
                yield self.blobs[entry.blob].decode()

    def _known(self, url: str) -> None:
        assert url == self.url, f"{url} is not {self.url}"
