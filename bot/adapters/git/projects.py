"""The ports `WatchedGit` and `ProjectGit`: in whose mirror a repository is, and with which credentials it is fetched.

A repository that the App is installed on is in the App's mirrors, any other in those of one project. What one project
may read by its Secrets is thus never in a mirror that another project reads.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from bot.adapters.git.environment import Login, ProjectLogin
from bot.adapters.git.mirror import GitMirror
from bot.adapters.git.routed import RoutedGit
from bot.ports import Git


class RepositoriesOfProjects:
    """Mirrors of the App where it is installed (`shared`), and mirrors below `directory` for each project's own.

    `token` gives the App's token for an address, None where the App is not installed. `login` gives user and password
    that a project has for an address, `advice` what a person does where that is refused, or where there is none.
    """

    def __init__(
        self,
        shared: Git,
        directory: Path,
        token: Callable[[str], Awaitable[str | None]],
        login: ProjectLogin,
        advice: Callable[[str, str], str],
    ) -> None:
        self._shared = shared
        self._directory = directory
        self._token = token
        self._login = login
        self._advice = advice
        self._own: dict[tuple[str, bool, bool], GitMirror] = {}

    async def open(self, project: str, url: str, *, insecure: bool = False, blobless: bool = False) -> Git:
        """See `WatchedGit.open`."""
        if await self._token(url) is not None:
            return self._shared
        key = (project, insecure, blobless)
        if key not in self._own:

            async def login(address: str) -> Login | None:
                return await self._login(project, address, write=False)

            async def push_login(address: str) -> Login | None:
                return await self._login(project, address, write=True)

            def advice(address: str) -> str:
                return self._advice(project, address)

            kind = "blobless" if blobless else "whole"
            folder = self._directory / project / f"{kind}{'.insecure' if insecure else ''}"
            self._own[key] = GitMirror(
                folder, login, push=push_login, insecure=insecure, blobless=blobless, advice=advice
            )
        return self._own[key]

    def of(self, project: str) -> Git:
        """See `ProjectGit.of`."""

        async def choose(url: str) -> Git:
            return await self.open(project, url)

        return RoutedGit(choose)
