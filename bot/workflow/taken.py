"""What one subscription gives to a look at its Warehouse."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.discovery import SubscriptionFinds
from bot.domain.freight import Chart, GitCommit, Image
from bot.expressions.facts import DiscoveredCommit, DiscoveredImage


@dataclass(frozen=True, slots=True)
class Taken:
    """The newest artifact of a subscription, None if there is none; what it was among, and what criteria see of it."""

    finds: SubscriptionFinds
    artifact: GitCommit | Image | Chart | None = None
    facts: DiscoveredCommit | DiscoveredImage | Chart | None = None
