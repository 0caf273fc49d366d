"""The port `WatchedGit`: whose mirror of a repository a Warehouse reads, and with which credentials it is fetched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from bot.adapters.git.environment import Login
from bot.adapters.git.mirror import GitMirror
from bot.ports import Git


class WatchedRepositories:
    """Mirrors of the App where it is installed (`shared`), and mirrors below `directory` for each project's own.

    `token` gives the App's token for an address, None where the App is not installed. `login` gives user and password
    that a project has for an address. What one project may read by its Secrets is thus never in a mirror that another
    project reads.
    """

    def __init__(
        self,
        shared: Git,
        directory: Path,
        token: Callable[[str], Awaitable[str | None]],
        login: Callable[[str, str], Awaitable[Login | None]],
    ) -> None:
        self._shared = shared
        self._directory = directory
        self._token = token
        self._login = login
        self._own: dict[tuple[str, bool, bool], GitMirror] = {}

    async def open(self, project: str, url: str, *, insecure: bool = False, blobless: bool = False) -> Git:
        """See `WatchedGit.open`."""
        if await self._token(url) is not None:
            return self._shared
        key = (project, insecure, blobless)
        if key not in self._own:

            async def login(address: str) -> Login | None:
                return await self._login(project, address)

            kind = "blobless" if blobless else "whole"
            folder = self._directory / project / f"{kind}{'.insecure' if insecure else ''}"
            self._own[key] = GitMirror(folder, login, insecure=insecure, blobless=blobless)
        return self._own[key]
