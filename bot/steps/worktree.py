"""The private work tree of one walk: git trees with an overlay in memory, and loose files beside them.

Nothing is checked out. A path is read from the mirror when a step asks for it, what a step writes stays in memory, and
every access is recorded, since the review gate must know which paths a step read and wrote. Paths are relative to the
work tree, with `/`, and never leave it: neither by `..` nor by a symbolic link.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from bot.domain.files import Change, CommitId, Entry, File, Mode
from bot.domain.review import Pin
from bot.domain.values import Sensitive, Text, Unknown, Value
from bot.ports import Git, TerminalError
from bot.steps.checkout import Checkout, LocalCommit


class Sentinels:
    """Stand-ins for unknown values in files; the same value gets the same text within one walk.

    A sentinel, `lockstep-unknown-<n>-<nonce>`, is a DNS label: it passes the checks of YAML, Helm and Kubernetes.
    """

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce
        self._by_text: dict[str, Unknown] = {}
        self._by_value: dict[Unknown, str] = {}

    @property
    def origins(self) -> Mapping[str, str]:
        """Each sentinel with the text of the value that it stands for."""
        return {text: value.origin for text, value in self._by_text.items()}

    def write(self, value: Unknown) -> str:
        """The text that stands for a value in a file."""
        if value not in self._by_value:
            text = f"lockstep-unknown-{len(self._by_value) + 1}-{self._nonce}"
            self._by_value[value] = text
            self._by_text[text] = value
        return self._by_value[value]

    def write_text(self, value: Text) -> str:
        """A text with holes, its holes filled with sentinels and its secrets opened."""
        return "".join(self._part(part) for part in value.parts)

    def read(self, text: str) -> str | Unknown | Text:
        """A text as it was before `write`: sentinels become unknown values again."""
        parts: list[str | Unknown | Sensitive] = [text]
        for sentinel, value in self._by_text.items():
            parts = [piece for part in parts for piece in _split(part, sentinel, value)]
        marks = [part for part in parts if part != ""]
        if len(marks) == 1 and isinstance(marks[0], Unknown):
            return marks[0]
        return text if all(isinstance(part, str) for part in parts) else Text(tuple(marks))

    def found_in(self, data: bytes) -> bool:
        """Whether any sentinel of this walk stands in the content."""
        return any(text.encode() in data for text in self._by_text)

    def _part(self, part: str | Unknown | Sensitive) -> str:
        match part:
            case Unknown():
                return self.write(part)
            case Sensitive(value=value):
                return str(value)
            case _:
                return part


def _split(part: str | Unknown | Sensitive, sentinel: str, value: Unknown) -> list[str | Unknown | Sensitive]:
    if not isinstance(part, str):
        return [part]
    pieces: list[str | Unknown | Sensitive] = []
    for number, piece in enumerate(part.split(sentinel)):
        pieces += [value, piece] if number else [piece]
    return pieces


@dataclass(frozen=True, slots=True)
class Access:
    """What one step did to the work tree."""

    changes: tuple[Change, ...]
    wrote: frozenset[str]
    reads: frozenset[str]


class WorkTree:
    """Files as the steps of one walk see them."""

    def __init__(self, git: Git, sentinels: Sentinels) -> None:
        self._git = git
        self.sentinels = sentinels
        self.checkouts: dict[str, Checkout] = {}
        self.loose: dict[str, File] = {}
        self._before: dict[str, File | None] = {}
        self._wrote: set[str] = set()
        self._reads: set[str] = set()

    # -- places ------------------------------------------------------------------------------------------------

    def add_checkout(self, pin: Pin, files: Mapping[str, Entry]) -> Checkout:
        """Put a repository's tree at `pin.path`; raises TerminalError if something is there already."""
        path = clean_path(pin.path)
        if path in self.checkouts:
            raise TerminalError(f"git-clone: there is a checkout at {path!r} already; choose another path")
        self.checkouts[path] = Checkout(pin=pin, files=files, head=pin.commit)
        return self.checkouts[path]

    def find_checkout(self, path: str) -> tuple[str, Checkout, str] | None:
        """The innermost checkout that holds a path: its place, itself, and the path inside it."""
        cleaned = clean_path(path)
        best: tuple[str, Checkout, str] | None = None
        for place, checkout in self.checkouts.items():
            inside = inside_path(place, cleaned)
            if inside is not None and (best is None or len(place) > len(best[0])):
                best = (place, checkout, inside)
        return best

    def checkout_at(self, path: str) -> Checkout:
        """The checkout whose root is at a path; raises TerminalError if there is none."""
        found = self.checkouts.get(clean_path(path))
        if found is None:
            known = ", ".join(sorted(self.checkouts)) or "none"
            raise TerminalError(f"{path!r} is not the root of a checkout (checkouts: {known})")
        return found

    # -- files -------------------------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        """Whether there is a file at a path, or any below it."""
        cleaned = clean_path(path)
        return bool(self.list(cleaned))

    def list(self, path: str) -> list[str]:
        """The paths of all files at or below a path, sorted; symbolic links count as files."""
        cleaned = clean_path(path)
        everything = set(self.loose)
        for place, checkout in self.checkouts.items():
            everything |= {join(place, inner) for inner in checkout.paths()}
        found = sorted(p for p in everything if inside_path(cleaned, p) is not None)
        self._reads.update(found)
        return found

    async def find_file(self, path: str) -> File | None:
        """The file at a path, symbolic links inside the same checkout followed; None if there is none."""
        cleaned = clean_path(path)
        for _ in range(8):
            self._reads.add(cleaned)
            file = await self._load(cleaned)
            if file is None or file.mode is not Mode.SYMLINK:
                return file
            cleaned = self._follow(cleaned, file)
        raise TerminalError(f"{path!r} is a loop of symbolic links")

    async def read(self, path: str) -> bytes:
        """The content at a path; raises TerminalError if it does not exist."""
        file = await self.find_file(path)
        if file is None:
            raise TerminalError(f"{clean_path(path)!r} does not exist{self._where(path)}")
        return file.data

    async def read_text(self, path: str) -> str:
        """The content at a path as UTF-8 text; raises TerminalError if it is missing or not UTF-8."""
        data = await self.read(path)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise TerminalError(
                f"{clean_path(path)!r} is not UTF-8 text: {error.reason} at byte {error.start}"
            ) from error

    async def files(self, path: str) -> dict[str, File]:
        """All files at or below a path by work tree path, links as links."""
        found: dict[str, File] = {}
        for place, checkout in self.checkouts.items():
            wanted = {
                inner: entry
                for inner in checkout.paths()
                if inside_path(clean_path(path), join(place, inner)) is not None
                and (entry := checkout.files.get(inner)) is not None
                and inner not in checkout.overlay
            }
            loaded = await self._git.read_files(checkout.pin.url, wanted)
            found |= {join(place, inner): file for inner, file in loaded.items()}
            found |= {
                join(place, inner): file
                for inner, file in checkout.overlay.items()
                if file is not None and inside_path(clean_path(path), join(place, inner)) is not None
            }
        found |= {p: f for p, f in self.loose.items() if inside_path(clean_path(path), p) is not None}
        self._reads.update(found)
        return found

    async def write(self, path: str, data: bytes, *, mode: Mode | None = None) -> None:
        """Write a file; the mode of an existing one is kept unless given. A link is never written through."""
        cleaned = clean_path(path)
        old = await self._load(cleaned)
        if old is not None and old.mode is Mode.SYMLINK:
            raise TerminalError(f"{cleaned!r} is a symbolic link; a step writes files only")
        kept = mode or (old.mode if old is not None else Mode.FILE)
        self._note(cleaned, old)
        self._store(cleaned, File(data, kept))

    async def delete(self, path: str) -> None:
        """Remove one file; nothing happens if there is none."""
        cleaned = clean_path(path)
        old = await self._load(cleaned)
        if old is not None:
            self._note(cleaned, old)
            self._store(cleaned, None)

    async def put(self, files: Mapping[str, File | None]) -> None:
        """Write many files with their modes, or remove those that are None; what stood there is read at once.

        Raises TerminalError for a path that leaves the tree.
        """
        wanted = {clean_path(path): file for path, file in files.items()}
        before: dict[str, File | None] = {path: self.loose.get(path) for path in wanted}
        for place, checkout in self.checkouts.items():
            inner = [
                found[2]
                for path in wanted
                if (found := self.find_checkout(path)) is not None and found[0] == place
            ]
            loaded = await self._load_all(checkout, checkout.overlay, inner)
            before |= {join(place, path): file for path, file in loaded.items()}
        for path, file in wanted.items():
            if file is not None or before[path] is not None:
                self._note(path, before[path])
                self._store(path, file)

    def note_reads(self, paths: Iterable[str]) -> None:
        """Say that a step depends on paths that it did not read through this tree."""
        self._reads.update(paths)

    def touch(self, path: str) -> None:
        """Say that a step addresses a path although it may not change it."""
        self._wrote.add(clean_path(path))

    # -- records -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start to record the next step's accesses."""
        self._before, self._wrote, self._reads = {}, set(), set()

    def undo(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Take back what was written to these paths since `begin`; the answer names those that had been written."""
        found = sorted(set(paths) & set(self._before))
        for path in found:
            self._store(path, self._before.pop(path))
            self._wrote.discard(path)
        return tuple(found)

    async def end(self) -> Access:
        """What has been read and written since `begin`; a path written back as it was is no change."""
        changes = []
        for path, before in sorted(self._before.items()):
            after = await self._load(path)
            if after != before:
                changes.append(Change(path, before, after))
        return Access(tuple(changes), frozenset(self._wrote), frozenset(self._reads))

    async def staged(self, place: str) -> tuple[Change, ...]:
        """How a checkout differs from its last local commit, paths inside the checkout."""
        checkout = self.checkout_at(place)
        touched = sorted(set(checkout.overlay) | set(checkout.committed))
        committed = await self._load_all(checkout, checkout.committed, touched)
        current = await self._load_all(checkout, checkout.overlay, touched)
        return tuple(
            Change(path, committed.get(path), current.get(path))
            for path in touched
            if committed.get(path) != current.get(path)
        )

    def commit(self, place: str, message: Value, changes: tuple[Change, ...]) -> None:
        """Record a local commit of all that is staged in a checkout."""
        checkout = self.checkout_at(place)
        checkout.commits.append(LocalCommit(message, changes))
        checkout.committed = dict(checkout.overlay)

    async def advance(self, place: str, commit: CommitId, *, keep: bool = True) -> None:
        """Let a checkout stand at a published commit, which holds all that was committed in it.

        What is not committed yet stays if `keep` says so.
        """
        checkout = self.checkout_at(place)
        staged = await self.staged(place) if keep else ()
        checkout.files = await self._git.list_files(checkout.pin.url, commit)
        checkout.pin = replace(checkout.pin, commit=commit, created=False)
        checkout.overlay = {change.path: change.after for change in staged}
        checkout.committed, checkout.commits, checkout.head = {}, [], commit

    # -- inside ------------------------------------------------------------------------------------------------

    async def _load(self, path: str) -> File | None:
        if path in self.loose:
            return self.loose[path]
        found = self.find_checkout(path)
        if found is None:
            return None
        _, checkout, inner = found
        return await self._at(checkout, checkout.overlay, inner)

    async def _at(self, checkout: Checkout, overlay: Mapping[str, File | None], inner: str) -> File | None:
        if inner in overlay:
            return overlay[inner]
        entry = checkout.files.get(inner)
        if entry is None or entry.mode is Mode.SUBMODULE:
            return None
        return (await self._git.read_files(checkout.pin.url, {inner: entry}))[inner]

    async def _load_all(
        self, checkout: Checkout, overlay: Mapping[str, File | None], paths: Iterable[str]
    ) -> dict[str, File]:
        """The files at these paths of a checkout, those that exist, read in one go."""
        wanted = list(paths)
        stored = {p: checkout.files[p] for p in wanted if p not in overlay and p in checkout.files}
        files = dict(await self._git.read_files(checkout.pin.url, stored)) if stored else {}
        return files | {path: file for path in wanted if (file := overlay.get(path)) is not None}

    def _store(self, path: str, file: File | None) -> None:
        found = self.find_checkout(path)
        if found is not None:
            found[1].overlay[found[2]] = file
        elif file is None:
            self.loose.pop(path, None)
        else:
            self.loose[path] = file

    def _note(self, path: str, old: File | None) -> None:
        self._before.setdefault(path, old)
        self._wrote.add(path)

    def _follow(self, path: str, link: File) -> str:
        found = self.find_checkout(path)
        target = posixpath.join(posixpath.dirname(path), link.data.decode("utf-8", "replace"))
        cleaned = clean_path(target)
        place = found[0] if found is not None else "."
        if posixpath.isabs(link.data.decode("utf-8", "replace")) or inside_path(place, cleaned) is None:
            raise TerminalError(f"{path!r} is a symbolic link that leaves its checkout")
        return cleaned

    def _where(self, path: str) -> str:
        found = self.find_checkout(path)
        if found is None:
            return ""
        pin = found[1].pin
        return f" in {pin.url} at {pin.branch or (pin.commit or '')[:12]}"


def clean_path(path: str) -> str:
    """A path in normal form, `.` for the root.

    Raises TerminalError if it is absolute, leaves the tree or enters `.git`.
    """
    if "\0" in path or posixpath.isabs(path):
        raise TerminalError(f"the path {path!r} must be relative to the work tree")
    cleaned = posixpath.normpath(path) if path else "."
    parts = cleaned.split("/")
    if parts[0] == "..":
        raise TerminalError(f"the path {path!r} leaves the work tree")
    if any(part.lower() == ".git" for part in parts):
        raise TerminalError(f"the path {path!r} lies inside .git")
    return cleaned


def inside_path(parent: str, child: str) -> str | None:
    """The path of `child` relative to `parent`, `.` for the same; None if it does not lie below it. Both are clean."""
    if parent == ".":
        return child
    if child == parent:
        return "."
    return child[len(parent) + 1 :] if child.startswith(parent + "/") else None


def join(parent: str, child: str) -> str:
    """The clean path of something below a place."""
    return child if parent == "." else parent if child == "." else f"{parent}/{child}"
