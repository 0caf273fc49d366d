"""Where the pipeline's files come from: a directory, or the default branch of a repository."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.domain.github import Repository
from bot.ports import Git, GitHub, TerminalError

_SUFFIXES = (".yaml", ".yml", ".json")
_LARGEST = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class DirectorySource:
    """Files below a directory of this machine; the revision is a hash of their contents."""

    directory: Path

    async def read(self) -> tuple[str, Mapping[str, str]]:
        """See `ConfigSource.read`; hidden files and other endings are passed over."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> tuple[str, Mapping[str, str]]:
        return read_directory(self.directory)


def read_directory(directory: Path) -> tuple[str, Mapping[str, str]]:
    """The revision and the files of a directory, or of the one file that is named.

    Raises TerminalError if it does not exist or holds a file that is not text.
    """
    if not directory.exists():
        raise TerminalError(f"there is no configuration at {directory}; set LOCKSTEP_CONFIG to a directory")
    paths = (
        [directory]
        if directory.is_file()
        else sorted(p for p in directory.rglob("*") if p.suffix in _SUFFIXES)
    )
    files: dict[str, str] = {}
    for path in paths:
        name = path.name if directory.is_file() else str(path.relative_to(directory))
        if any(part.startswith(".") for part in Path(name).parts) or not path.is_file():
            continue
        if path.stat().st_size > _LARGEST:
            raise TerminalError(f"{name} is larger than {_LARGEST} bytes")
        files[name] = _decode(name, path.read_bytes())
    digest = hashlib.sha256("\0".join(f"{k}\0{v}" for k, v in files.items()).encode()).hexdigest()
    return digest[:40], files


@dataclass(frozen=True, slots=True)
class RepositorySource:
    """Files below a directory of a repository's default branch; the revision is its tip."""

    repository: Repository
    directory: str
    git: Git
    github: GitHub

    async def read(self) -> tuple[str, Mapping[str, str]]:
        """See `ConfigSource.read`."""
        url = self.github.clone_url(self.repository)
        await self.git.fetch(url)
        branch = await self.git.default_branch(url)
        tip = await self.git.resolve(url, f"refs/heads/{branch}")
        if tip is None:
            raise TerminalError(f"{self.repository} has no branch {branch}; push the configuration first")
        prefix = f"{self.directory.strip('/')}/" if self.directory.strip("/") else ""
        entries = await self.git.list_files(url, tip)
        wanted = {p: e for p, e in entries.items() if p.startswith(prefix) and p.endswith(_SUFFIXES)}
        files = await self.git.read_files(url, wanted)
        return tip, {path: _decode(path, file.data) for path, file in files.items()}


def parse_source(text: str) -> tuple[Repository, str] | Path:
    """`github:owner/repo/dir` as a repository and a directory, anything else as a path.

    Raises TerminalError for a repository that is not written so.
    """
    if not text.startswith("github:"):
        return Path(text)
    parts = text.removeprefix("github:").split("/", 2)
    if len(parts) < 2 or not all(parts[:2]):
        raise TerminalError(f"LOCKSTEP_CONFIG={text} must be github:OWNER/REPOSITORY/DIRECTORY")
    return Repository(parts[0], parts[1]), parts[2] if len(parts) == 3 else ""


def _decode(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TerminalError(f"{name} is not UTF-8 text: byte {error.start}") from error
