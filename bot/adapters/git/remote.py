"""The network half of the mirrors: making, fetching and mending them, and pushing from them.

One fetch of a mirror runs at a time, in this process by an asyncio lock and between processes by a lock file. Whoever
asks while one is running gets the next one, since the running one may have read the server's refs before the push
that the caller was told about; all who wait share it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from bot.adapters.filelock import hold_file
from bot.adapters.git.command import Completed, run
from bot.adapters.git.environment import Advice, Credentials, local_environment, network_environment
from bot.adapters.git.errors import GitFailure, Trouble, failure_of, raise_for
from bot.adapters.git.objects import is_ref_name
from bot.adapters.git.pushing import read_report
from bot.domain.files import CommitId
from bot.ports import Moved, Pushed, PushOutcome, Refused, TerminalError, TransientError

_OLDEST = (2, 38)
"""`git merge-tree --write-tree` came with this version."""

_EVERYTHING = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")

_PUSH_TIMEOUT = 180.0

_MOST_LOCKS = 20
"""How many left-over locks are removed before the mirror is made anew."""

_STALE_SECONDS = 2.0
"""Git itself has waited this long for a lock before it gives up (`core.filesRefLockTimeout`)."""


class Remote:
    """Mirrors below `directory`, by address; `timeout` is that of a fetch in seconds.

    `insecure` leaves the server's certificate unverified, `blobless` the contents of files on the server. `push` gives
    the logins for pushes, by default `credentials`. `advice` says what to do where access is refused.
    """

    def __init__(
        self,
        directory: Path,
        credentials: Credentials,
        *,
        timeout: float,
        insecure: bool = False,
        blobless: bool = False,
        push: Credentials | None = None,
        advice: Advice | None = None,
    ) -> None:
        self._directory = directory.absolute()
        self._credentials = credentials
        self._push_credentials = push or credentials
        self._timeout = timeout
        self._insecure = insecure
        self._blobless = blobless
        self._advice = advice
        self._locks: dict[str, asyncio.Lock] = {}
        self._waiting: dict[tuple[str, tuple[str, ...]], asyncio.Task[None]] = {}
        self._checked = False

    def error(self, url: str, failure: GitFailure) -> TransientError | TerminalError:
        """The port's error for what failed with an address, to be raised by the caller."""
        return raise_for(failure, self._advice(url) if self._advice is not None else "")

    def path(self, url: str) -> Path:
        """Where the mirror of an address is, whether it exists or not."""
        name = re.sub(r"[^a-z0-9]+", "-", url.lower().partition("://")[2]).strip("-")[-60:]
        return self._directory / f"{name}-{hashlib.sha256(url.encode()).hexdigest()[:16]}.git"

    async def mirror(self, url: str) -> Path:
        """The mirror of an address, made first if there is none."""
        path = self.path(url)
        if not path.is_dir():
            await self.fetch(url, ())
        return path

    async def fetch(self, url: str, refs: Sequence[str]) -> None:
        """Bring the mirror up to date by a fetch that begins after this call."""
        key = (url, tuple(sorted(refs)))
        task = self._waiting.get(key)
        if task is None:
            self._waiting[key] = task = asyncio.create_task(self._fetch_in_turn(key))
        # A caller that is cancelled must not take the fetch from the others that wait for it.
        await asyncio.shield(task)

    async def _fetch_in_turn(self, key: tuple[str, tuple[str, ...]]) -> None:
        url, refs = key
        try:
            async with self._turn(url):
                self._waiting.pop(key, None)
                await self._fetch_and_mend(url, refs)
        except GitFailure as failure:
            raise self.error(url, failure) from failure
        finally:
            if self._waiting.get(key) is asyncio.current_task():
                del self._waiting[key]

    async def _fetch_and_mend(self, url: str, refs: Sequence[str]) -> None:
        for _ in range(_MOST_LOCKS):
            try:
                await self._fetch(url, refs)
                return
            except GitFailure as failure:
                if failure.trouble is Trouble.BUSY and _remove_stale_lock(self.path(url), failure.text):
                    continue
                if failure.trouble not in (Trouble.CORRUPT, Trouble.MISSING_OBJECT):
                    raise
                break
        await self._make_anew(url)
        await self._fetch(url, refs)

    @contextlib.asynccontextmanager
    async def _turn(self, url: str) -> AsyncIterator[None]:
        async with self._locks.setdefault(url, asyncio.Lock()):
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = self.path(url).with_suffix(".lock")
            async with hold_file(lock, timeout=self._timeout, what=f"the mirror of {url}"):
                yield

    async def _fetch(self, url: str, refs: Sequence[str]) -> None:
        path = self.path(url)
        if not path.is_dir():
            await self._make(url)
        else:
            await self._fetch_into(path, url, _EVERYTHING)
        for ref in refs:
            await self._fetch_single(path, url, ref)

    async def _fetch_into(self, path: Path, url: str, specs: Sequence[str]) -> None:
        flags = [
            "--prune",
            "--no-tags",
            "--force",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--quiet",
            *(["--filter=blob:none"] if self._blobless else []),
        ]
        await self._network(path, url, ["fetch", *flags, url, *specs], what=f"fetching {url}")

    async def _fetch_single(self, path: Path, url: str, ref: str) -> None:
        named = ref.startswith("refs/") and is_ref_name(ref)
        if not named and not re.fullmatch(r"[0-9a-f]{40}", ref):
            raise TerminalError(
                f"{ref!r} cannot be fetched from {url}; name a full ref (refs/…) or a commit id."
            )
        try:
            await self._fetch_into(path, url, [f"+{ref}:{ref}" if named else ref])
        except GitFailure as failure:
            if failure.trouble is not Trouble.MISSING_REF:
                raise
            if named:
                await self._local(path, ["update-ref", "-d", ref], what=f"forgetting {ref}")

    async def _make(self, url: str) -> None:
        await self._check_version()
        place = self.path(url)
        # What a killed first fetch left beside the place is of no use; the lock says that nobody works on it.
        for left in self._directory.glob(f"{place.stem}.new-*"):
            await asyncio.to_thread(shutil.rmtree, left)
        made = Path(tempfile.mkdtemp(dir=self._directory, prefix=f"{place.stem}.new-"))
        try:
            await self._local(
                made, ["init", "--bare", "--quiet", "--template=", str(made)], what="making a mirror"
            )
            await self._fetch_into(made, url, _EVERYTHING)
            made.rename(place)
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, made, True)
            raise

    async def _make_anew(self, url: str) -> None:
        place = self.path(url)
        if place.is_dir():
            # Commands that are reading it go on in the renamed directory until it is removed.
            gone = place.with_name(f"{place.stem}.new-old")
            await asyncio.to_thread(shutil.rmtree, gone, True)
            place.rename(gone)
        await self._make(url)

    async def mend(self, url: str, failure: GitFailure) -> bool:
        """Try to make a failed read possible; False if there is nothing that could help.

        A missing object is fetched. If it is still missing and the mirror's own refs are not whole, or if the
        mirror is damaged, it is made anew.
        """
        if failure.trouble not in (Trouble.MISSING_OBJECT, Trouble.CORRUPT):
            return False
        if failure.trouble is Trouble.MISSING_OBJECT:
            await self.fetch(url, ())
            left_out = ["--missing=allow-promisor"] if self._blobless else []
            whole = ["rev-list", "--objects", "--all", "--quiet", *left_out]
            try:
                await self._local(self.path(url), whole, what=f"checking the mirror of {url}")
            except GitFailure:
                pass
            else:
                return True
        try:
            async with self._turn(url):
                await self._make_anew(url)
        except GitFailure as again:
            raise self.error(url, again) from again
        return True

    async def maintain(self, url: str) -> None:
        """Pack the mirror's objects; unreferenced ones of the last two weeks stay, since a push may still name them."""
        if self.path(url).is_dir():
            try:
                async with self._turn(url):
                    arguments = ["gc", "--quiet", "--prune=2.weeks.ago"]
                    await self._local(self.path(url), arguments, what=f"packing the mirror of {url}")
            except GitFailure as failure:
                raise self.error(url, failure) from failure

    async def default_branch(self, url: str) -> str:
        """The branch that the server's HEAD names."""
        path = await self.mirror(url)
        try:
            done = await self._network(
                path, url, ["ls-remote", "--symref", url, "HEAD"], what=f"reading HEAD of {url}"
            )
        except GitFailure as failure:
            raise self.error(url, failure) from failure
        found = re.search(rb"^ref: refs/heads/(.+)\tHEAD$", done.output, re.MULTILINE)
        if found is None:
            raise TerminalError(f"{url} has no default branch with a commit on it; push a first commit.")
        return found[1].decode("utf-8", "surrogateescape")

    async def tip(self, url: str, ref: str) -> CommitId | None:
        """The commit that a ref of the server points to now, None if there is no such ref."""
        path = await self.mirror(url)
        try:
            done = await self._network(
                path, url, ["ls-remote", url, ref, f"{ref}^{{}}"], what=f"reading {ref} of {url}"
            )
        except GitFailure as failure:
            raise self.error(url, failure) from failure
        lines = [line.split("\t") for line in done.output.decode("utf-8", "surrogateescape").splitlines()]
        ids = {name: object_id for object_id, name in lines}
        # An annotated tag is listed twice; the second line names the commit.
        found = ids.get(f"{ref}^{{}}") or ids.get(ref)
        return CommitId(found) if found else None

    async def push(
        self, url: str, commit: CommitId | None, ref: str, expected: CommitId | None, *, force: bool
    ) -> PushOutcome:
        """Move one ref, with a lease unless forced; after an unclear answer the server's ref decides."""
        path = await self.mirror(url)
        if not is_ref_name(ref.split("/", 2)[2]):
            raise TerminalError(
                f"{ref!r} is not a name that a branch or tag can have (git check-ref-format)."
            )
        lease = "--force" if force else f"--force-with-lease={ref}:{expected or ''}"
        flags = ["--porcelain", "--no-verify", "--no-follow-tags", lease]
        arguments = ["push", *flags, url, f"{commit or ''}:{ref}"]
        what = f"pushing to {ref.removeprefix('refs/heads/')} of {url}"
        try:
            done = await self._network(
                path, url, arguments, what=what, timeout=_PUSH_TIMEOUT, fine=(0, 1, 128)
            )
        except TransientError:
            # The push may have been done although its answer was lost.
            if await self.tip(url, ref) != commit:
                raise
            return await self._pushed(url, ref, commit)
        if done.code == 0 or (tip := await self.tip(url, ref)) == commit:
            return await self._pushed(url, ref, commit)
        refusal = read_report(done)
        if refusal is not None:
            return Refused(refusal)
        if not force and tip != expected:
            return Moved(tip)
        if commit is not None:
            await self._must_have(path, commit, what)
        raise self.error(url, failure_of(what, done))

    async def _must_have(self, path: Path, commit: CommitId, what: str) -> None:
        # Without the object git's push ends like a broken connection, which would be tried again for nothing.
        try:
            await self._local(path, ["cat-file", "-e", commit], what=what)
        except GitFailure as failure:
            missing = GitFailure(Trouble.MISSING_OBJECT, what, f"there is no commit {commit}")
            raise raise_for(missing) from failure

    async def _pushed(self, url: str, ref: str, commit: CommitId | None) -> PushOutcome:
        """Note in the mirror what was pushed, so that it can be resolved without a fetch."""
        path = self.path(url)
        arguments = ["update-ref", ref, commit] if commit else ["update-ref", "-d", ref]
        # The push is done even if it cannot be noted, and the next fetch will note it.
        with contextlib.suppress(GitFailure, TransientError):
            # A fetch that read the server's refs before the push would set this one back, or remove it.
            async with self._turn(url):
                await self._local(path, arguments, what=f"noting {ref}")
        return Pushed()

    async def _check_version(self) -> None:
        if self._checked:
            return
        done = await self._local(self._directory, ["version"], what="asking for git's version")
        found = re.search(rb"(\d+)\.(\d+)", done.output)
        if found is None or (int(found[1]), int(found[2])) < _OLDEST:
            raise TerminalError(f"{done.output.decode().strip()} is too old; install git 2.38 or newer.")
        self._checked = True

    async def _network(
        self,
        path: Path,
        url: str,
        arguments: Sequence[str],
        *,
        what: str,
        timeout: float | None = None,
        fine: tuple[int, ...] = (0,),
    ) -> Completed:
        asked = self._push_credentials if arguments[0] == "push" else self._credentials
        environment = network_environment(path, url, await asked(url), insecure=self._insecure)
        limit = self._timeout if timeout is None else timeout
        done = await asyncio.to_thread(run, arguments, environment, timeout=limit)
        if done.code not in fine:
            raise failure_of(what, done)
        return done

    async def _local(self, path: Path, arguments: Sequence[str], *, what: str) -> Completed:
        environment = {**local_environment(path), "GIT_DIR": os.fspath(path)}
        done = await asyncio.to_thread(run, arguments, environment, timeout=self._timeout)
        if done.code != 0:
            raise failure_of(what, done)
        return done


def _remove_stale_lock(mirror: Path, text: str) -> bool:
    """Remove the lock that git could not get, if it is one of the mirror that a killed command left."""
    found = re.search(r"Unable to create '(.+\.lock)': File exists", text)
    lock = Path(found[1]) if found is not None else None
    if lock is None or not lock.is_relative_to(mirror):
        return False
    try:
        if time.time() - lock.stat().st_mtime < _STALE_SECONDS:
            return False
        lock.unlink()
    except FileNotFoundError:
        # It has gone by itself, so trying again is right.
        return True
    return True
