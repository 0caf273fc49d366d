"""Forgetting, from time to time, what nobody needs any longer."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.domain.retention import FEWEST_PROMOTIONS, Horizon
from bot.ports import Clock, Store

log = logging.getLogger(__name__)

_PAUSE = timedelta(hours=1)
"""Kargo's garbage collector runs as often."""
_MOST_BATCHES = 50
"""Batches of one kind in one round; what is left then waits for the next one."""


@dataclass(slots=True)
class Retention:
    """Forgets in small transactions. A process that ends in the middle leaves only what the next round takes."""

    store: Store
    clock: Clock
    days: float = 14.0
    audit_days: float = 400.0
    promotions: int = FEWEST_PROMOTIONS
    freight: int = 20
    done_at: datetime | None = None

    async def tidy(
        self, leads: Callable[[], bool], forget_work: Callable[[datetime], Awaitable[int]] | None = None
    ) -> None:
        """Forget, if the last round was an hour ago, for as long as this replica leads.

        `forget_work` forgets a batch of the engine's finished work that ended before a time.
        """
        now = self.clock.now()
        if self.done_at is not None and now - self.done_at < _PAUSE:
            return
        before, audit_before = now - timedelta(days=self.days), now - timedelta(days=self.audit_days)
        horizon = Horizon(before, self.promotions, self.freight, audit_before)
        # Freight after Promotions, since a failed one that is kept needs its Freight.
        kinds: dict[str, Callable[[Horizon], Awaitable[int]]] = {
            "promotions": self.store.forget_promotions,
            "freight": self.store.forget_freight,
            "deliveries": self.store.forget_deliveries,
            "events": self.store.forget_events,
            "posts": self.store.forget_posts,
            "audit": self.store.forget_audit,
        }
        if forget_work is not None:
            kinds["work"] = lambda horizon: forget_work(horizon.before)
        forgotten = {}
        for kind, forget in kinds.items():
            count = 0
            for _ in range(_MOST_BATCHES):
                if not leads():
                    return
                gone = await forget(horizon)
                count += gone
                if not gone:
                    break
            forgotten[kind] = count
        self.done_at = now
        if any(forgotten.values()):
            log.info("what nobody needs any longer was forgotten", extra=forgotten)
