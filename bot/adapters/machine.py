"""The port `Inspection`: what this machine is like, without changing anything."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from bot.adapters.git.command import run
from bot.adapters.store.database import inspect_database
from bot.adapters.terraform import landlock
from bot.adapters.terraform.tool import Tool, read_version
from bot.adapters.vault import KeyFileVault
from bot.domain.doctor_facts import DatabaseFacts, DirectoryFacts, IsolationFacts, KeyFacts, ToolFacts
from bot.ports import TerminalError, TransientError

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class LocalMachine:
    """The data directory, the database at an address, and the programs that the bot starts."""

    data: Path
    database_url: str = field(repr=False)
    tool: Tool

    async def directory(self) -> DirectoryFacts:
        """See `Inspection`."""
        return await asyncio.to_thread(self._directory)

    def _directory(self) -> DirectoryFacts:
        path = str(self.data)
        if not self.data.is_dir():
            return DirectoryFacts(path, exists=False)
        return DirectoryFacts(
            path,
            exists=True,
            mode=stat.S_IMODE(self.data.stat().st_mode),
            writable=os.access(self.data, os.W_OK | os.X_OK),
            free=shutil.disk_usage(self.data).free,
            filesystem=filesystem_of(self.data, _MOUNTS.read_text() if _MOUNTS.exists() else ""),
        )

    async def key(self) -> KeyFacts:
        """See `Inspection`."""
        path = self.data / "vault.key"
        _, problem = await asyncio.to_thread(self._vault)
        return KeyFacts(str(path), path.exists(), problem)

    def _vault(self) -> tuple[KeyFileVault | None, str]:
        """The vault if its file is there, and what is wrong with it."""
        path = self.data / "vault.key"
        try:
            # Without its file a vault would make one.
            return (KeyFileVault(path), "") if path.exists() else (None, "")
        except TerminalError as error:
            return None, str(error)
        except OSError as error:
            return None, f"cannot be read: {error.strerror}"

    async def database(self) -> DatabaseFacts:
        """See `Inspection`."""
        vault, _ = await asyncio.to_thread(self._vault)
        digest = vault.digest(b"lockstep database") if vault is not None else ""
        return await asyncio.to_thread(inspect_database, self.database_url, digest)

    async def terraform(self) -> ToolFacts:
        """See `Inspection`. Whether it can be isolated is another question."""
        plain = Tool(binary=self.tool.binary, isolation="none")
        try:
            with tempfile.TemporaryDirectory(prefix="lockstep-doctor-") as scratch:
                return ToolFacts(version=str(await read_version(plain, Path(scratch))))
        except (TerminalError, TransientError) as error:
            return ToolFacts(problem=str(error))

    async def git(self) -> ToolFacts:
        """See `Inspection`."""
        try:
            done = await asyncio.to_thread(
                run, ["--version"], {"PATH": os.environ.get("PATH", "")}, timeout=10.0
            )
        except (TerminalError, TransientError) as error:
            return ToolFacts(problem=str(error))
        return ToolFacts(version=done.output.decode("utf-8", "replace").strip())

    async def isolation(self) -> IsolationFacts:
        """See `Inspection`."""
        return IsolationFacts(self.tool.isolation, landlock.version())


def filesystem_of(path: Path, mounts: str) -> str:
    """The type of the file system that a path is on, by the text of `/proc/self/mountinfo`; empty if unknown.

    Source: the Linux manual, proc_pid_mountinfo(5).
    """
    best, found = -1, ""
    resolved = path.resolve()
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) < 5 or not kinds[0]:
            continue
        point = Path(_ESCAPE.sub(lambda match: chr(int(match[1], 8)), fields[4]))
        # Of several mounts on one point the last one is seen.
        if (resolved == point or point in resolved.parents) and len(point.parts) >= best:
            best, found = len(point.parts), kinds[0]
    return found
