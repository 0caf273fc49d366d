"""What one subscription gives to a look at its Warehouse."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.domain.discovery import SubscriptionFinds
from bot.domain.freight import Chart, GitCommit, Image
from bot.expressions.facts import DiscoveredCommit, DiscoveredImage


@dataclass(frozen=True, slots=True)
class Taken:
    """The newest artifact of a subscription, None if there is none; what it was among, and what criteria see of it."""

    finds: SubscriptionFinds
    artifact: GitCommit | Image | Chart | None = None
    facts: DiscoveredCommit | DiscoveredImage | Chart | None = None


_MOST_SHOWN = 10


def not_offered(finds: SubscriptionFinds, version: str, why: str = "") -> Taken:
    """That a version cannot be taken: `why`, or because the subscription does not offer it; and what it does offer."""
    shown = ", ".join(find.version for find in finds.finds[:_MOST_SHOWN])
    more = len(finds.finds) - _MOST_SHOWN
    there = f"{shown} and {more} more" if more > 0 else shown or "nothing"
    said = why or f"{version} is not among what the subscription offers"
    return Taken(replace(finds, note=f"{said}; there is {there}"))
