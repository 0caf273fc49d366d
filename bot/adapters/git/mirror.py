"""`GitMirror`: the port `Git` on bare mirrors, one per repository address, by plumbing commands alone.

A mirror is made beside its place and renamed into it, so a half-made one is never seen; one that is damaged is made
anew. Everything that was written here and not pushed is lost with it, and made again by whoever made it: equal
arguments give equal ids.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from bot.adapters.git.command import Completed, run
from bot.adapters.git.environment import Advice, Credentials, check_url, local_environment
from bot.adapters.git.errors import GitFailure, Trouble, failure_of, raise_for
from bot.adapters.git.history import DIFF_COMMITS, LIST_TAGS, ask_for_paths, parse_paths, parse_tags
from bot.adapters.git.objects import (
    EMPTY_TREE,
    check_id,
    check_path,
    identity,
    is_ref_name,
    parse_batch,
    parse_commit,
    parse_diff,
    parse_listing,
)
from bot.adapters.git.remote import Remote
from bot.adapters.git.trees import change_tree, folders_of, write_order
from bot.domain.files import CommitId, Entry, File, Mode, TreeId
from bot.domain.selection import GitTag
from bot.ports import Commit, Conflicted, Merged, PushOutcome, Signature, TerminalError

_T = TypeVar("_T")

_LISTED_ENTRIES = 300_000
"""How many entries of listings are kept in memory; a tree's listing never changes."""

_READ_LIMIT = 512 * 1024 * 1024
"""Bytes that one call may read."""


class GitMirror:
    """The port `Git` on mirrors below `directory`.

    `credentials` is asked for a token, or a user and password, before every network operation, with the repository's
    address; None means that none is needed. They are used for that operation only. All times are seconds. `insecure`
    leaves the server's certificate unverified; `blobless` fetches no contents of files, which cannot be read then.
    `push` is asked instead where something is pushed. `advice` says what to do where a server refuses access.
    """

    def __init__(
        self,
        directory: Path,
        credentials: Credentials,
        *,
        network_timeout: float = 600.0,
        local_timeout: float = 120.0,
        insecure: bool = False,
        blobless: bool = False,
        push: Credentials | None = None,
        advice: Advice | None = None,
    ) -> None:
        self._remote = Remote(
            directory,
            credentials,
            timeout=network_timeout,
            insecure=insecure,
            blobless=blobless,
            push=push,
            advice=advice,
        )
        self._local_timeout = local_timeout
        self._listings: OrderedDict[tuple[str, str], Mapping[str, Entry]] = OrderedDict()

    # -- the server ------------------------------------------------------------------------------------------

    async def fetch(self, url: str, *refs: str) -> None:
        """See `Git.fetch`; a ref that the server does not have is removed from the mirror as well."""
        await self._remote.fetch(check_url(url), refs)

    async def default_branch(self, url: str) -> str:
        """See `Git.default_branch`."""
        return await self._remote.default_branch(check_url(url))

    async def push(
        self, url: str, commit: CommitId | None, branch: str, *, expected: CommitId | None
    ) -> PushOutcome:
        """See `Git.push`."""
        for name in (commit, expected):
            if name is not None:
                check_id(name)
        return await self._remote.push(check_url(url), commit, f"refs/heads/{branch}", expected, force=False)

    async def push_tag(self, url: str, commit: CommitId, tag: str, *, force: bool) -> PushOutcome:
        """See `Git.push_tag`; without `force` an existing tag elsewhere is `Moved`."""
        return await self._remote.push(
            check_url(url), CommitId(check_id(commit)), f"refs/tags/{tag}", None, force=force
        )

    async def maintain(self, url: str) -> None:
        """Keep the mirror small and fast; for a schedule of once a day. Nothing that is in use is lost."""
        await self._remote.maintain(check_url(url))

    # -- reading ---------------------------------------------------------------------------------------------

    async def resolve(self, url: str, revision: str) -> CommitId | None:
        """See `Git.resolve`; an abbreviated id needs seven digits and must be unique."""
        name = revision or await self.default_branch(url)
        if not is_ref_name(name):
            return None
        candidates = [f"refs/heads/{name}", f"refs/tags/{name}"]
        if name.startswith("refs/") or re.fullmatch(r"[0-9a-f]{7,40}", name):
            candidates.append(name)
        asked = "".join(f"{candidate}^{{commit}}\n" for candidate in candidates)

        async def look() -> CommitId | None:
            done = await self._git(
                url, ["cat-file", "--batch-check"], asked.encode(), what=f"looking up {name}"
            )
            for line in done.output.decode("utf-8", "replace").splitlines():
                if re.fullmatch(r"[0-9a-f]{40} commit \d+", line):
                    return CommitId(line[:40])
            return None

        return await self._reading(url, look)

    async def list_files(self, url: str, tree: CommitId | TreeId) -> Mapping[str, Entry]:
        """See `Git.list_files`; listings are kept in memory by id, since they never change."""
        key = (url, tree)
        known = self._listings.get(key)
        if known is not None:
            self._listings.move_to_end(key)
            return known
        if tree == EMPTY_TREE:
            return {}

        async def look() -> Mapping[str, Entry]:
            arguments = ["ls-tree", "-r", "-z", "--full-tree", check_id(tree)]
            done = await self._git(url, arguments, what=f"listing {tree}")
            return MappingProxyType(await asyncio.to_thread(parse_listing, done.output))

        self._listings[key] = listing = await self._reading(url, look)
        while sum(map(len, self._listings.values())) > _LISTED_ENTRIES and len(self._listings) > 1:
            self._listings.popitem(last=False)
        return listing

    async def read_files(self, url: str, entries: Mapping[str, Entry]) -> Mapping[str, File]:
        """See `Git.read_files`. Raises TerminalError if they are more than 512 MiB together."""
        wanted = {path: entry for path, entry in entries.items() if entry.mode is not Mode.SUBMODULE}
        blobs = await self._objects(url, list(dict.fromkeys(entry.blob for entry in wanted.values())))
        return {path: File(blobs[entry.blob], entry.mode) for path, entry in wanted.items()}

    async def read_commit(self, url: str, commit: CommitId) -> Commit:
        """See `Git.read_commit`."""
        return (await self.read_commits(url, [commit]))[0]

    async def read_commits(self, url: str, commits: Sequence[CommitId]) -> Sequence[Commit]:
        """See `Git.read_commits`."""
        raw = await self._objects(url, list(dict.fromkeys(commits)), kind="commit")
        return [parse_commit(commit, raw[commit]) for commit in commits]

    async def log(
        self, url: str, base: CommitId | None, head: CommitId, *, limit: int = 250
    ) -> Sequence[Commit]:
        """See `Git.log`."""
        beyond = [f"^{check_id(base)}"] if base else []
        return await self._history(url, [f"--max-count={limit}", check_id(head), *beyond])

    async def list_mainline(
        self, url: str, head: CommitId, *, skip: int = 0, limit: int = 250
    ) -> Sequence[Commit]:
        """See `Git.list_mainline`."""
        return await self._history(
            url, ["--first-parent", f"--skip={skip}", f"--max-count={limit}", check_id(head)]
        )

    async def _history(self, url: str, arguments: Sequence[str]) -> Sequence[Commit]:
        async def look() -> list[str]:
            done = await self._git(url, ["rev-list", *arguments], what="reading the history")
            return done.output.decode().split()

        return await self.read_commits(url, [CommitId(c) for c in await self._reading(url, look)])

    async def list_tags(self, url: str) -> Sequence[GitTag]:
        """See `Git.list_tags`."""

        async def look() -> Sequence[GitTag]:
            return parse_tags((await self._git(url, LIST_TAGS, what="listing the tags")).output)

        return await self._reading(url, look)

    async def list_changed_paths(
        self, url: str, commits: Sequence[Commit]
    ) -> Mapping[CommitId, tuple[str, ...]]:
        """See `Git.list_changed_paths`."""

        async def look() -> Mapping[CommitId, tuple[str, ...]]:
            done = await self._git(url, DIFF_COMMITS, ask_for_paths(commits), what="comparing commits")
            return parse_paths(done.output, commits)

        return await self._reading(url, look) if commits else {}

    async def merge_trees(self, url: str, ours: CommitId, theirs: CommitId) -> Merged | Conflicted:
        """See `Git.merge_trees`."""
        arguments = [
            "merge-tree",
            "--write-tree",
            "-z",
            "--name-only",
            "--no-messages",
            check_id(ours),
            check_id(theirs),
        ]

        async def look() -> Merged | Conflicted:
            done = await self._git(url, arguments, what=f"merging {theirs} into {ours}", fine=(0, 1))
            tree, *paths = done.output.decode("utf-8", "surrogateescape").rstrip("\0").split("\0")
            if done.code == 0:
                return Merged(TreeId(tree))
            if not re.fullmatch(r"[0-9a-f]{40}", tree):
                raise failure_of(f"merging {theirs} into {ours}", done)
            return Conflicted(tuple(dict.fromkeys(path for path in paths if path)))

        return await self._reading(url, look)

    async def diff(
        self, url: str, before: CommitId | TreeId | None, after: CommitId | TreeId
    ) -> Sequence[tuple[str, Entry | None, Entry | None]]:
        """See `Git.diff`."""
        arguments = ["diff-tree", "-r", "-z", "--no-renames", check_id(before or EMPTY_TREE), check_id(after)]

        async def look() -> Sequence[tuple[str, Entry | None, Entry | None]]:
            done = await self._git(url, arguments, what=f"comparing {before} with {after}")
            return parse_diff(done.output)

        return await self._reading(url, look)

    async def is_ancestor(self, url: str, ancestor: CommitId, descendant: CommitId) -> bool:
        """See `Git.is_ancestor`."""
        what = f"asking whether {descendant} contains {ancestor}"
        return await self._ask(url, ["--is-ancestor", check_id(ancestor), check_id(descendant)], what)

    async def is_related(self, url: str, one: CommitId, other: CommitId) -> bool:
        """See `Git.is_related`."""
        return await self._ask(url, [check_id(one), check_id(other)], f"comparing {one} with {other}")

    async def _ask(self, url: str, arguments: list[str], what: str) -> bool:
        async def look() -> bool:
            return (await self._git(url, ["merge-base", *arguments], what=what, fine=(0, 1))).code == 0

        return await self._reading(url, look)

    # -- writing objects -------------------------------------------------------------------------------------

    async def write_tree(
        self, url: str, base: CommitId | TreeId | None, changes: Mapping[str, File | None]
    ) -> TreeId:
        """See `Git.write_tree`. Raises TerminalError for a path that may not be in a tree."""
        for path in changes:
            check_path(path)

        async def write() -> TreeId:
            mirror = await self._remote.mirror(check_url(url))
            return await asyncio.to_thread(self._write_tree, mirror, base, changes)

        return await self._reading(url, write)

    def _write_tree(
        self, mirror: Path, base: CommitId | TreeId | None, changes: Mapping[str, File | None]
    ) -> TreeId:
        read = self._read_folders(mirror, base, folders_of(changes)) if base is not None else {}
        self._store_blobs(mirror, [file.data for file in changes.values() if file is not None])
        entries = {path: file.entry if file is not None else None for path, file in changes.items()}
        tree, records = write_order(change_tree(read, entries))
        if tree == EMPTY_TREE:
            return tree
        # An empty record ends each tree; what the trees name is there already or comes with them.
        arguments = ["mktree", "-z", "--batch", "--missing"]
        done = self._local(mirror, arguments, b"\0".join([*records, b""]), what="storing trees")
        if done.output.decode().split()[-1:] != [tree]:
            raise AssertionError(f"git made another tree than {tree}: {done.output!r}")
        return tree

    def _read_folders(
        self, mirror: Path, base: CommitId | TreeId, folders: Sequence[str]
    ) -> dict[str, bytes]:
        names = [f"{check_id(base)}^{{tree}}", *(f"{base}:{folder}" for folder in folders if folder)]
        asked = "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")
        done = self._local(
            mirror, ["cat-file", "--batch", "--buffer"], asked, what=f"reading the tree of {base}"
        )
        found = [(kind, content) for _, kind, content in parse_batch(done.output)]
        if found[0][0] != "tree":
            raise GitFailure(
                Trouble.MISSING_OBJECT, f"reading the tree of {base}", f"{base} is {found[0][0]}"
            )
        return {folder: raw for folder, (kind, raw) in zip(folders, found, strict=True) if kind == "tree"}

    def _store_blobs(self, mirror: Path, contents: Sequence[bytes]) -> None:
        if not contents:
            return
        with tempfile.TemporaryDirectory(dir=mirror, prefix="write-") as scratch:
            names = [f"{scratch}/{number}" for number in range(len(contents))]
            for name, content in zip(names, contents, strict=True):
                Path(name).write_bytes(content)
            arguments = ["hash-object", "-w", "--no-filters", "--stdin-paths"]
            self._local(
                mirror, arguments, "".join(f"{name}\n" for name in names).encode(), what="storing files"
            )

    async def commit(
        self, url: str, tree: TreeId, parents: Sequence[CommitId], message: str, signature: Signature
    ) -> CommitId:
        """See `Git.commit`."""
        who = {**identity(signature, "AUTHOR"), **identity(signature, "COMMITTER")}
        arguments = [
            "commit-tree",
            check_id(tree),
            *(part for p in parents for part in ("-p", check_id(p))),
            "-F",
            "-",
        ]

        async def write() -> CommitId:
            done = await self._git(url, arguments, message.encode(), what="making a commit", extra=who)
            return CommitId(done.output.decode().strip())

        return await self._reading(url, write)

    # -- how commands are run --------------------------------------------------------------------------------

    async def _objects(self, url: str, names: Sequence[str], *, kind: str = "blob") -> Mapping[str, bytes]:
        if not names:
            return {}
        asked = "".join(f"{check_id(name)}\n" for name in names).encode()

        async def look() -> Mapping[str, bytes]:
            sizes = await self._git(
                url, ["cat-file", "--batch-check=%(objectsize)"], asked, what="reading objects"
            )
            total = sum(int(size) for size in sizes.output.split(b"\n") if size.isdigit())
            if total > _READ_LIMIT:
                raise TerminalError(
                    f"The files asked for in {url} are {total} bytes together, more than the {_READ_LIMIT} that can be "
                    "read at once; name a smaller directory."
                )
            done = await self._git(url, ["cat-file", "--batch", "--buffer"], asked, what="reading objects")
            found: dict[str, bytes] = {}
            for name, its_kind, content in parse_batch(done.output):
                if its_kind != kind:
                    raise GitFailure(
                        Trouble.MISSING_OBJECT, f"reading {kind} {name}", f"{name} is {its_kind}"
                    )
                found[name] = content
            return found

        return await self._reading(url, look)

    async def _reading(self, url: str, look: Callable[[], Awaitable[_T]]) -> _T:
        """Look; if the mirror lacks something or is damaged, mend it once and look again."""
        try:
            return await look()
        except GitFailure as failure:
            mended = await self._remote.mend(check_url(url), failure)
            if not mended:
                raise raise_for(failure) from failure
        try:
            return await look()
        except GitFailure as failure:
            raise raise_for(failure) from failure

    async def _git(
        self,
        url: str,
        arguments: Sequence[str],
        stdin: bytes | None = None,
        *,
        what: str,
        fine: tuple[int, ...] = (0,),
        extra: Mapping[str, str] | None = None,
    ) -> Completed:
        mirror = await self._remote.mirror(check_url(url))
        environment = local_environment(mirror) | dict(extra or {})
        done = await asyncio.to_thread(run, arguments, environment, stdin=stdin, timeout=self._local_timeout)
        if done.code not in fine:
            raise failure_of(f"{what} in {url}", done)
        return done

    def _local(self, mirror: Path, arguments: Sequence[str], stdin: bytes, *, what: str) -> Completed:
        done = run(arguments, local_environment(mirror), stdin=stdin, timeout=self._local_timeout)
        if done.code != 0:
            raise failure_of(what, done)
        return done
