"""Commands whose delivery never came: the sweep looks through the comments where one may stand.

A webhook that GitHub shows as failed is asked for again; of one that it never sent, only the comment tells.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.domain.commands import Plan, parse_command
from bot.domain.drift import DriftRecord
from bot.domain.events import Commented, Event
from bot.domain.github import PullNumber, Repository
from bot.domain.peoples_pulls import PeoplesPull
from bot.domain.promotion import Promotion
from bot.ports import Clock, GitHub, Store, TerminalError
from bot.workflow.configuration import Configuration

log = logging.getLogger(__name__)

_OLDEST = timedelta(days=3)
"""How far back words on people's pull requests are looked for, as far as GitHub keeps failed deliveries."""


@dataclass(frozen=True, slots=True)
class LostComments:
    """Finds them on the pull request of each Stage's newest Promotion, on the issue of its drift, and on people's own.

    `run` has them run, once each.
    """

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
        async for event in self._all():
            if event.created_at <= latest:
                await self.run(event)

    async def _all(self) -> AsyncIterator[Commented]:
        for project, stage in self.configuration.pipeline.stages:
            promotions = await self.store.list_promotions(project, stage)
            for event in await self._of_promotion(promotions[0]) if promotions else ():
                yield event
        for record in await self.store.list_drifts():
            for event in await self._of_issue(record) if record.open else ():
                yield event
        for row in await self.store.list_peoples_pulls():
            for event in await self._of_people(row):
                yield event

    async def _of_people(self, row: PeoplesPull) -> list[Commented]:
        """Words for a plan on a person's pull request; other commands there have nothing to do with it."""
        repository = self.github.repository_of(row.url)
        if repository is None:
            return []
        found = await self._comments(repository, row.pull, self.clock.now() - _OLDEST)
        return [event for event in found if isinstance(parse_command(event.body), Plan)]

    async def _of_promotion(self, promotion: Promotion) -> list[Commented]:
        repository = self.github.repository_of(promotion.target.url) if promotion.target is not None else None
        if repository is None or promotion.pull is None:
            return []
        return await self._comments(repository, promotion.pull, promotion.created_at)

    async def _of_issue(self, record: DriftRecord) -> list[Commented]:
        if not record.issue or record.drifted_since is None:
            return []
        try:
            repository = Repository.parse(record.repository)
            return await self._comments(repository, PullNumber(record.issue), record.drifted_since)
        except TerminalError as error:
            # Somebody deleted the issue; the next look for drift finds that out.
            log.warning(
                "the issue of a drift cannot be read", extra={"issue": record.issue, "error": str(error)}
            )
            return []

    async def _comments(self, repository: Repository, number: PullNumber, since: datetime) -> list[Commented]:
        return [
            Commented(
                repository=repository,
                number=number,
                comment=comment.id,
                author=comment.user,
                body=comment.body,
                created_at=comment.created_at,
                by_app=comment.by_app,
            )
            for comment in await self.github.list_comments(repository, number)
            if not comment.edited and comment.created_at >= since
        ]
