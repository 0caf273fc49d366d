"""Reading an Application's files from Git: over smart HTTP with a read token, or from a bare repository on disk."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import os
import re
import tarfile
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bot.sandbox.files import write_whole

_SHA: Final = re.compile(r"[0-9a-f]{40}")
_SECONDS: Final = 60


class SourceError(Exception):
    """A repository, revision or path that cannot be read, in Argo CD's words."""


@dataclass(frozen=True, slots=True)
class Repository:
    """How a repository is reached: `path` to a bare one on disk, or its URL with a user name and a password."""

    url: str
    path: str = ""
    username: str = ""
    password: str = ""


class GitSources:
    """The known repositories and a mirror of each that is remote. Unknown URLs are tried without credentials."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._file = directory / "repositories.json"
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        stored = json.loads(self._file.read_text()) if self._file.exists() else []
        self._known = {normalise_url(item["url"]): Repository(**item) for item in stored}

    def register(self, repository: Repository) -> None:
        """Use these credentials or this path for its URL from now on; kept on disk, readable by the owner alone."""
        self._known[normalise_url(repository.url)] = repository
        body = json.dumps([asdict(each) for each in self._known.values()])
        write_whole(self._file, body.encode(), private=True)

    async def resolve(self, url: str, revision: str) -> str:
        """The commit that a branch, tag, full SHA or HEAD stands for now."""
        if _SHA.fullmatch(revision):
            return revision
        names = ["HEAD"] if revision in ("", "HEAD") else [f"refs/heads/{revision}", f"refs/tags/{revision}"]
        repository = self._find(url)
        output = await self._git(repository, "ls-remote", repository.path or url, *names)
        commits: dict[str, str] = {}
        for line in output.decode().splitlines():
            commit, _, name = line.partition("\t")
            commits[name] = commit
        for name in names:
            if name in commits:
                return commits[name]
        raise SourceError(f"unable to resolve '{revision}' to a commit SHA")

    async def read(self, url: str, revision: str, path: str) -> dict[str, bytes]:
        """The files below `path` at a commit, by their path below it."""
        repository = self._find(url)
        folder = await self._folder(repository, revision)
        inside = path.strip("/")
        try:
            target = f"{revision}:{inside}" if inside not in ("", ".") else revision
            archive = await self._git(repository, "-C", folder, "archive", "--format=tar", target)
        except SourceError as error:
            raise SourceError(f"{path}: app path does not exist") from error
        files: dict[str, bytes] = {}
        with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
            for member in opened:
                content = opened.extractfile(member) if member.isfile() else None
                if content is not None:
                    files[member.name] = content.read()
        return files

    def _find(self, url: str) -> Repository:
        return self._known.get(normalise_url(url), Repository(url))

    async def _folder(self, repository: Repository, revision: str) -> str:
        """A folder with a repository that has the commit."""
        if repository.path:
            return repository.path
        name = hashlib.sha256(normalise_url(repository.url).encode()).hexdigest()[:16]
        mirror = self._directory / f"{name}.git"
        async with self._locks[name]:
            if not (mirror / "HEAD").exists():
                await self._git(repository, "init", "--quiet", "--bare", str(mirror))
            if not await self._has(mirror, revision):
                refs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
                await self._git(
                    repository, "-C", str(mirror), "fetch", "--quiet", "--prune", repository.url, *refs
                )
            if not await self._has(mirror, revision):
                raise SourceError(f"revision {revision} is not in {repository.url}")
        return str(mirror)

    async def _has(self, mirror: Path, revision: str) -> bool:
        code, _, _ = await _run(["git", "-C", str(mirror), "cat-file", "-e", f"{revision}^{{commit}}"], {})
        return code == 0

    async def _git(self, repository: Repository, *arguments: str) -> bytes:
        """Run git with the repository's credentials, which reach it by environment and stand in no argument."""
        settings = {"gc.auto": "0", "safe.directory": "*", "credential.helper": ""}
        if repository.password:
            pair = base64.b64encode(
                f"{repository.username or 'x-access-token'}:{repository.password}".encode()
            )
            settings[f"http.{repository.url}.extraHeader"] = f"Authorization: Basic {pair.decode()}"
        environ = {"GIT_CONFIG_COUNT": str(len(settings))}
        for index, (key, value) in enumerate(settings.items()):
            environ |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
        code, output, problem = await _run(["git", *arguments], environ)
        if code != 0:
            last = problem.decode(errors="replace").strip().rpartition("\n")[2]
            raise SourceError(f"failed to run git {arguments[0]} for {repository.url}: {last}")
        return output


def normalise_url(url: str) -> str:
    """The URL as Argo CD compares it: lower case, without `.git` and without a slash at the end."""
    return url.strip().lower().rstrip("/").removesuffix(".git")


async def _run(arguments: list[str], environ: dict[str, str]) -> tuple[int, bytes, bytes]:
    base = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
    }
    process = await asyncio.create_subprocess_exec(
        *arguments,
        env=base | environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_SECONDS):
            output, problem = await process.communicate()
    except TimeoutError as error:
        raise SourceError(f"git did not end within {_SECONDS} seconds") from error
    finally:
        # A cancelled reader must not leave git behind, nor one that hangs.
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, output, problem
