"""Paced writing to one installation: GitHub's secondary limits are met by waiting before, not after."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.ports import TransientError

_LONGEST_WAIT = 10.0
"""Seconds that a write waits in here for a rate limit; for more it goes back to the queue."""

_UPDATES_PER_CREATION = 3
"""An edit costs 5 of 900 points a minute, that is three a second; a creation is limited to 80 a minute."""


class Pacer:
    """Lets writes of one installation begin one after another, at most `concurrent` at a time.

    Between two creations (comment, pull request, check run) lie at least `interval` seconds, between other writes a
    third of it. After `hold` nothing begins until its time is over.
    Source: GitHub docs, "Rate limits for the REST API" and "Best practices for using the REST API".
    """

    def __init__(self, *, interval: float = 1.0, concurrent: int = 8) -> None:
        self._interval = interval
        self._places = asyncio.Semaphore(concurrent)
        self._next = 0.0
        self._held_until = 0.0

    def hold(self, seconds: float) -> None:
        """Let no write begin for so many seconds, as GitHub asked."""
        self._held_until = max(self._held_until, asyncio.get_running_loop().time() + seconds)

    @asynccontextmanager
    async def turn(self, *, creates: bool) -> AsyncIterator[None]:
        """Wait for this write's turn.

        Raises TransientError with `retry_after` instead of waiting for longer than ten seconds for a rate limit.
        """
        async with self._places:
            start = self._reserve(creates=creates)
            while (wait := start - asyncio.get_running_loop().time()) > 0:
                await asyncio.sleep(wait)
                if self._held_until > start:
                    # A hold came while this write slept; it queues again, so that not all begin when it ends.
                    start = self._reserve(creates=creates)
            yield

    def _reserve(self, *, creates: bool) -> float:
        """The moment at which a write may begin, kept free for it."""
        now = asyncio.get_running_loop().time()
        self._refuse_long_hold(now)
        start = max(now, self._next, self._held_until)
        self._next = start + (self._interval if creates else self._interval / _UPDATES_PER_CREATION)
        return start

    def _refuse_long_hold(self, now: float) -> None:
        left = self._held_until - now
        if left > _LONGEST_WAIT:
            raise TransientError(
                f"GitHub asked us to stop writing; the next write may begin in {left:.0f} s", retry_after=left
            )
