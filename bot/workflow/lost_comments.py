"""Commands whose delivery never came: the sweep looks through the comments where one may stand.

A webhook that GitHub shows as failed is asked for again; of one that it never sent, only the comment tells.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from bot.domain.events import Commented, Event
from bot.domain.promotion import Promotion
from bot.ports import Clock, GitHub, Store
from bot.workflow.configuration import Configuration


@dataclass(frozen=True, slots=True)
class LostComments:
    """Finds them on the pull request of each Stage's newest Promotion, and has them run by `run`, once each."""

    store: Store
    github: GitHub
    clock: Clock
    configuration: Configuration
    run: Callable[[Event], Awaitable[None]]

    async def find(self, age: float) -> None:
        """Run commands that were given at least `age` seconds ago: younger ones may still be delivered.

        An edited comment is left alone, since nobody can tell what it said when it was given.
        """
        latest = self.clock.now() - timedelta(seconds=age)
        for project, stage in self.configuration.pipeline.stages:
            promotions = await self.store.list_promotions(project, stage)
            if not promotions:
                continue
            for event in await self._comments(promotions[0]):
                if event.created_at <= latest:
                    await self.run(event)

    async def _comments(self, promotion: Promotion) -> list[Commented]:
        repository = self.github.repository_of(promotion.target.url) if promotion.target is not None else None
        if repository is None or promotion.pull is None:
            return []
        return [
            Commented(
                repository=repository,
                number=promotion.pull,
                comment=comment.id,
                author=comment.user,
                body=comment.body,
                created_at=comment.created_at,
                by_app=comment.by_app,
            )
            for comment in await self.github.list_comments(repository, promotion.pull)
            if not comment.edited and comment.created_at >= promotion.created_at
        ]
