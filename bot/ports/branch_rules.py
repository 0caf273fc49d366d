"""What the rules of a branch allow our App, as far as GitHub tells."""

from __future__ import annotations

from typing import Protocol

from bot.domain.github import Repository


class BranchRules(Protocol):
    """The rules of branches. Raises TransientError and TerminalError."""

    async def why_no_push(self, repository: Repository, branch: str) -> str:
        """Which rules refuse the pushes of our App to a branch; empty if none does, or GitHub does not tell."""

    async def merge_methods(self, repository: Repository, branch: str) -> frozenset[str]:
        """Those of `merge`, `squash` and `rebase` that the repository and the rules of the branch allow."""
