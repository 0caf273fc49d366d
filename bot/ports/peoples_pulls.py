"""What is remembered of people's own pull requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from bot.domain.peoples_pulls import PeoplesPull
from bot.domain.promotion import PromotionId


class PeoplesPullStore(Protocol):
    """People's pull requests that change what Stages' Terraform reads, until all that follows is done."""

    async def get_peoples_pull(self, url: str, pull: int) -> PeoplesPull | None:
        """That of the repository at this address, with this number."""

    async def list_peoples_pulls(self, *, merged: bool = False) -> Sequence[PeoplesPull]:
        """Those that are open as far as we know, or merged with something still due; oldest number first."""

    async def change_peoples_pull(
        self, blank: PeoplesPull, change: Callable[[PeoplesPull], PeoplesPull]
    ) -> PeoplesPull:
        """Change what is remembered, or of `blank` if nothing is, with nobody else's change in between."""

    async def forget_peoples_pull(self, url: str, pull: int) -> None:
        """Forget it, with the previews and plans of re-promotions that never began."""

    async def drop_unbegun(self, promotion: PromotionId) -> None:
        """Forget previews and plans kept for a Promotion, unless it has begun."""
