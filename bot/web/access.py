"""Whether somebody may read a repository, asked of GitHub and remembered for a minute."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.domain.github import Permission, Repository, User
from bot.ports import Clock, GitHub, TerminalError

log = logging.getLogger(__name__)

_KEPT = timedelta(seconds=60)
_MOST = 10_000


@dataclass(slots=True)
class Access:
    """Answers from GitHub, kept for 60 seconds. Raises TransientError if GitHub does not answer."""

    github: GitHub
    clock: Clock
    known: dict[tuple[Repository, str], tuple[datetime, bool]] = field(default_factory=dict)

    async def may_read(self, user: User, repository: Repository) -> bool:
        """Whether the person has at least read permission on the repository."""
        key, now = (repository, user.login.lower()), self.clock.now()
        found = self.known.get(key)
        if found is not None and now - found[0] < _KEPT:
            return found[1]
        answer = await self._ask(user, repository)
        if len(self.known) >= _MOST:
            self.known = {k: v for k, v in self.known.items() if now - v[0] < _KEPT}
        if len(self.known) < _MOST:
            self.known[key] = (now, answer)
        return answer

    async def readable(self, user: User, repositories: Iterable[Repository]) -> frozenset[Repository]:
        """Those of the repositories that the person may read."""
        asked = list(dict.fromkeys(repositories))
        answers = await asyncio.gather(*(self.may_read(user, repository) for repository in asked))
        return frozenset(repository for repository, yes in zip(asked, answers, strict=True) if yes)

    async def _ask(self, user: User, repository: Repository) -> bool:
        try:
            permission = await self.github.get_permission(repository, user.login)
        except TerminalError as error:
            # Where the App is not installed (any more), nobody can be shown to have permission.
            log.warning("GitHub does not tell who may read %s: %s", repository, error)
            return False
        return permission.rank >= Permission.READ.rank
