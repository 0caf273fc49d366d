"""Git plumbing on one bare repository: objects and refs by the real `git`, never a work tree.

All methods block; the server calls them from worker threads. `git` 2.38 or newer is needed (`merge-tree --write-tree`).
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

ZERO = "0" * 40
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_FIELDS = ("%H", "%T", "%P", "%an", "%ae", "%ad", "%cn", "%ce", "%cd", "%B")
_FORMAT = "--format=" + "%x00".join(_FIELDS) + "%x00"
_DATES = "--date=format-local:%Y-%m-%dT%H:%M:%SZ"
_STATUS = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "C": "copied", "T": "changed"}


class GitError(Exception):
    """A git command failed; the text holds the command and what git wrote."""


class RefMoved(GitError):
    """A ref was not where the caller expected it."""


@dataclass(frozen=True, slots=True)
class Person:
    """An author or committer; `date` is ISO 8601 in UTC."""

    name: str
    email: str
    date: str


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as Git holds it."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Person
    committer: Person
    message: str


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One line of a tree; `sha` None in an edit removes the path."""

    path: str
    mode: str
    type: str
    sha: str | None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of a diff; `patch` is None for binary files, `sha` is the blob after the change."""

    filename: str
    status: str
    sha: str
    additions: int
    deletions: int
    patch: str | None
    previous: str | None = None


@dataclass(frozen=True, slots=True)
class RefChange:
    """One ref that is to move or has moved; ZERO stands for "is not there"."""

    ref: str
    old: str
    new: str

    @property
    def branch(self) -> str | None:
        """The branch's name, or None for tags and other refs."""
        return self.ref.removeprefix("refs/heads/") if self.ref.startswith("refs/heads/") else None


def git_environment() -> dict[str, str]:
    """The whole environment of a git child: nothing of the user's own configuration takes part."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "GIT_CONFIG_KEY_1": "gc.auto",
        "GIT_CONFIG_VALUE_1": "0",
    }


def stamp(moment: datetime) -> str:
    """The moment as GitHub writes it: UTC, whole seconds, `Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Git:
    """The bare repository at `path`; `quarantine` adds the environment of a running receive-pack hook."""

    def __init__(self, path: Path, *, quarantine: Mapping[str, str] | None = None) -> None:
        self.path = path
        self._extra = dict(quarantine or {})

    def run(self, *args: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None) -> bytes:
        """What the command writes; GitError when it fails."""
        done = self._spawn(args, stdin, env)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise GitError(
                f"git {' '.join(args[:3])} failed with {done.returncode} in {self.path.name}: {said}"
            )
        return done.stdout

    def _spawn(
        self, args: Sequence[str], stdin: bytes | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["git", *args],
            cwd=self.path,
            env={**git_environment(), **self._extra, **(env or {})},
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            check=False,
        )

    def text(self, *args: str) -> str:
        """What the command writes, as stripped text."""
        return self.run(*args).decode(errors="replace").strip()

    # ---- refs

    def resolve(self, revision: str) -> str | None:
        """The commit that a branch, tag, ref or SHA names, or None."""
        if revision.startswith("-"):
            return None
        done = self._spawn(("rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"))
        return done.stdout.decode().strip() if done.returncode == 0 else None

    def ref(self, name: str) -> str | None:
        """The object at a full ref name, or None."""
        done = self._spawn(("rev-parse", "--verify", "--quiet", name)) if name.startswith("refs/") else None
        return done.stdout.decode().strip() if done and done.returncode == 0 else None

    def refs(self, prefix: str) -> list[tuple[str, str, str]]:
        """Name, object id and object type of every ref below the prefix, sorted by name."""
        out = self.text("for-each-ref", "--format=%(refname) %(objectname) %(objecttype)", "refs/")
        rows = [line.split(" ") for line in out.splitlines()]
        return [(row[0], row[1], row[2]) for row in rows if row[0].startswith(prefix)]

    def valid_ref(self, name: str) -> bool:
        """Whether Git would accept the full ref name."""
        return self._spawn(("check-ref-format", name)).returncode == 0

    def update_ref(self, name: str, new: str, old: str) -> None:
        """Move the ref from `old` (ZERO: it must not exist) to `new`; RefMoved if it is elsewhere."""
        done = self._spawn(("update-ref", name, new, old))
        if done.returncode:
            raise RefMoved(
                f"{name} could not be moved to {new}: {done.stderr.decode(errors='replace').strip()}"
            )

    def set_ref(self, name: str, new: str) -> None:
        """Point the ref at `new`, wherever it was."""
        self.run("update-ref", name, new)

    def delete_ref(self, name: str, old: str) -> None:
        """Delete the ref if it is at `old`; RefMoved if it is elsewhere."""
        done = self._spawn(("update-ref", "-d", name, old))
        if done.returncode:
            raise RefMoved(f"{name} could not be deleted: {done.stderr.decode(errors='replace').strip()}")

    # ---- commits

    def commits(self, *selection: str, path: str | None = None) -> list[Commit]:
        """The commits that `git log` would list for the selection, with `path` only those that touch it."""
        limits = ["--", *([path] if path else [])]
        out = self.run("log", _DATES, _FORMAT, *selection, *limits).decode(errors="replace")
        parts = out.split("\0")
        width = len(_FIELDS)
        return [_commit(parts[at : at + width]) for at in range(0, len(parts) - width + 1, width)]

    def commit(self, sha: str) -> Commit:
        """The commit; GitError if there is none."""
        return self.commits("-1", sha)[0]

    def count(self, *selection: str) -> int:
        """How many commits the selection has."""
        return int(self.text("rev-list", "--count", *selection))

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Whether `newer` contains `older`."""
        return self._spawn(("merge-base", "--is-ancestor", older, newer)).returncode == 0

    def merge_base(self, one: str, other: str) -> str | None:
        """The best common ancestor, or None for unrelated histories."""
        done = self._spawn(("merge-base", one, other))
        return done.stdout.decode().split("\n")[0] if done.returncode == 0 else None

    def commit_tree(
        self, tree: str, parents: Sequence[str], message: str, *, author: Person, committer: Person
    ) -> str:
        """Write a commit and return its SHA; the message is kept as it is."""
        env = {
            "GIT_AUTHOR_NAME": author.name,
            "GIT_AUTHOR_EMAIL": author.email,
            "GIT_AUTHOR_DATE": author.date,
            "GIT_COMMITTER_NAME": committer.name,
            "GIT_COMMITTER_EMAIL": committer.email,
            "GIT_COMMITTER_DATE": committer.date,
        }
        args = [part for parent in parents for part in ("-p", parent)]
        return (
            self.run("commit-tree", tree, *args, "-F", "-", stdin=message.encode(), env=env).decode().strip()
        )

    # ---- objects

    def object_type(self, sha: str) -> str | None:
        """`blob`, `tree`, `commit` or `tag`, or None if there is no such object."""
        if not sha or sha.startswith("-"):
            return None
        done = self._spawn(("cat-file", "-t", sha))
        return done.stdout.decode().strip() if done.returncode == 0 else None

    def blob(self, sha: str) -> bytes:
        """The bytes of a blob."""
        return self.run("cat-file", "blob", sha)

    def write_blob(self, content: bytes) -> str:
        """Store the bytes and return the blob's SHA."""
        return self.run("hash-object", "-w", "--stdin", stdin=content).decode().strip()

    def tree(self, treeish: str, *, recursive: bool = False, path: str | None = None) -> list[TreeEntry]:
        """The entries of a tree; with `path` only that entry, without its content."""
        args = ["ls-tree", "-z", "--long", *(["-r", "-t"] if recursive else []), treeish]
        out = self.run(*args, "--", *([path] if path else [])).decode(errors="replace")
        entries = []
        for line in filter(None, out.split("\0")):
            meta, _, name = line.partition("\t")
            mode, kind, sha, size = meta.split()
            entries.append(TreeEntry(name, mode, kind, sha, None if size == "-" else int(size)))
        return entries

    def write_tree(self, base: str | None, edits: Sequence[TreeEntry]) -> str:
        """The SHA of the `base` tree (None: empty) with the edits made; a whole tree may be put at a path.

        Only the folders on the way to an edit are read and written, so that the size of the tree does not matter.
        """
        return self._folder(base, [(edit.path.split("/"), edit) for edit in edits]) or self._make_tree([])

    def _folder(self, base: str | None, edits: Sequence[tuple[Sequence[str], TreeEntry]]) -> str | None:
        """The tree with the edits, whose paths are relative to it; None if nothing is left in it."""
        entries = {entry.path: entry for entry in self.tree(base)} if base else {}
        below: dict[str, list[tuple[Sequence[str], TreeEntry]]] = {}
        for path, edit in edits:
            if len(path) > 1:
                below.setdefault(path[0], []).append((path[1:], edit))
            elif edit.sha is None:
                entries.pop(path[0], None)
            else:
                entries[path[0]] = edit
        for name, inner in below.items():
            old = entries.get(name)
            sha = self._folder(old.sha if old and old.type == "tree" else None, inner)
            if sha is None:
                entries.pop(name, None)
            else:
                entries[name] = TreeEntry(name, "040000", "tree", sha)
        named = [replace(entry, path=name) for name, entry in entries.items()]
        return self._make_tree(named) if named else None

    def _make_tree(self, entries: Sequence[TreeEntry]) -> str:
        lines = "".join(f"{entry.mode} {entry.type} {entry.sha}\t{entry.path}\0" for entry in entries)
        return self.run("mktree", "-z", stdin=lines.encode()).decode().strip()

    def tree_with(self, base: str | None, files: Mapping[str, bytes | None]) -> str:
        """The SHA of the `base` tree with the files written; None as content removes a file, modes are kept."""
        edits = []
        for path, body in files.items():
            old = self.tree(base, path=path) if base else []
            mode = old[0].mode if old and old[0].type == "blob" else "100644"
            edits.append(TreeEntry(path, mode, "blob", None if body is None else self.write_blob(body)))
        return self.write_tree(base, edits)

    def merge_tree(self, ours: str, theirs: str) -> str | None:
        """The tree that a merge of the two commits gives, or None if they conflict."""
        done = self._spawn(("merge-tree", "--write-tree", "--allow-unrelated-histories", ours, theirs))
        if done.returncode > 1:
            raise GitError(
                f"git merge-tree of {ours} and {theirs}: {done.stderr.decode(errors='replace').strip()}"
            )
        return done.stdout.decode().split("\n")[0].split("\0")[0] if done.returncode == 0 else None

    def diff(self, old: str, new: str, *, patches: bool = True) -> list[FileChange]:
        """What changes from one tree or commit to the other, by file, renames found."""
        raw = (
            self.run("diff", "--raw", "-z", "-M", "--abbrev=40", old, new, "--")
            .decode(errors="replace")
            .split("\0")
        )
        stats = self.run("diff", "--numstat", "-z", "-M", old, new, "--").decode(errors="replace").split("\0")
        texts = self._patches(old, new) if patches else []
        changes: list[FileChange] = []
        while len(raw) > 1:
            _, _, before, after, letter = raw[0].split(" ")
            renamed = letter[0] in "RC"
            added, deleted, _ = stats[0].split("\t", 2)
            text = texts[len(changes)] if patches else None
            changes.append(
                FileChange(
                    filename=raw[2] if renamed else raw[1],
                    status=_STATUS.get(letter[0], "changed"),
                    sha=before if letter == "D" else after,
                    additions=0 if added == "-" else int(added),
                    deletions=0 if deleted == "-" else int(deleted),
                    patch=text or None,
                    previous=raw[1] if renamed else None,
                )
            )
            raw = raw[3 if renamed else 2 :]
            stats = stats[3 if renamed else 1 :]
        return changes

    def _patches(self, old: str, new: str) -> list[str]:
        """The hunks of each file in the order of `git diff`; empty text where there are none."""
        out = self.run("diff", "--no-color", "-M", old, new, "--").decode(errors="replace")
        patches: list[list[str]] = []
        for line in out.split("\n"):
            if line.startswith("diff --git "):
                patches.append([])
            elif patches and (patches[-1] or line.startswith("@@")):
                patches[-1].append(line)
        return ["\n".join(lines).rstrip("\n") for lines in patches]


def _commit(parts: Sequence[str]) -> Commit:
    return Commit(
        sha=parts[0].lstrip("\n"),
        tree=parts[1],
        parents=tuple(parts[2].split()),
        author=Person(parts[3], parts[4], parts[5]),
        committer=Person(parts[6], parts[7], parts[8]),
        message=parts[9].rstrip("\n"),
    )
