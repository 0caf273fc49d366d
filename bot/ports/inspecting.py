"""Looking at an installation without changing it, for `doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bot.domain.doctor_facts import (
    AppFacts,
    BranchFacts,
    DatabaseFacts,
    DirectoryFacts,
    HookFacts,
    HostFacts,
    InstallationFacts,
    IsolationFacts,
    KeyFacts,
    ToolFacts,
)
from bot.domain.github import Repository


class Inspection(Protocol):
    """This machine as the bot finds it. Nothing is made that is not there; problems are facts, not errors."""

    async def directory(self) -> DirectoryFacts: ...

    async def key(self) -> KeyFacts: ...

    async def database(self) -> DatabaseFacts: ...

    async def terraform(self) -> ToolFacts: ...

    async def git(self) -> ToolFacts: ...

    async def isolation(self) -> IsolationFacts: ...


class GitHubInspection(Protocol):
    """Our App and the repositories that it is installed on. Raises TransientError and TerminalError."""

    async def host(self) -> HostFacts:
        """Whether GitHub answers, which is a fact too if it does not."""

    async def app(self) -> AppFacts:
        """The App; that id or key is refused is a fact."""

    async def installations(self) -> Sequence[InstallationFacts]: ...

    async def hook(self) -> HookFacts: ...

    async def branch(self, repository: Repository, branch: str, *, pushes: bool) -> BranchFacts:
        """The rules of a branch (empty: the default one); `pushes` is handed on to the facts."""
