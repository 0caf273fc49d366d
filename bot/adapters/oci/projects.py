"""Registries as each project may read them: with its own logins, and remembering nothing for another one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from types import TracebackType

from bot.adapters.oci.artifacts import OciArtifacts
from bot.adapters.oci.client import OciRegistries

Credentials = Callable[[str, str], Awaitable["tuple[str, str] | None"]]
"""User and password that a project has for `host/path`, None to ask without."""


class ProjectRegistries:
    """The port `Registries`; used within `async with`, on one event loop.

    Tokens, and what is known of tags and digests, are each project's own: what one may read by its Secrets, another
    may not by that.
    """

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._open: dict[str, OciRegistries] = {}
        self._stack = AsyncExitStack()
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> ProjectRegistries:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        self._open = {}
        await self._stack.aclose()

    async def of(self, project: str) -> OciRegistries:
        """See `Registries.of`."""
        async with self._lock:
            if project not in self._open:

                async def login(repository: str) -> tuple[str, str] | None:
                    return await self._credentials(project, repository)

                self._open[project] = await self._stack.enter_async_context(OciRegistries(login))
            return self._open[project]


class ProjectArtifacts:
    """The port `ArtifactsOfProjects`. Large transfers of all projects together take turns."""

    def __init__(self, registries: ProjectRegistries) -> None:
        self._registries = registries
        self._transfers = asyncio.Semaphore(2)

    async def of(self, project: str) -> OciArtifacts:
        """See `ArtifactsOfProjects.of`."""
        return OciArtifacts(await self._registries.of(project), self._transfers)
