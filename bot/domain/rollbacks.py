"""Going back by itself: Kargo's `autoRollback`, for a promotion that failed or whose Freight failed its verification.

Kargo Enterprise's rules: back to the Freight that was verified last in the Stage, only for a failure of the last 20
minutes, and never because a rollback failed. Here a person's freeze holds it, and a verification that somebody asked
for (`/verify`) sets nothing off, since that person is there to decide; nor does what undoes drift or follows a person's
merge, since it brought no other Freight.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.domain.analysis import AnalysisRun, describe_run
from bot.domain.freight import FreightName, FreightOrigin
from bot.domain.history import FreightCollection
from bot.domain.model import PromotionPolicy
from bot.domain.promotion import Promotion

LATEST = timedelta(minutes=20)
"""How old a failure may be; what somebody has lived with for longer is no emergency."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What failed, of which Freight, and how that is told."""

    origin: FreightOrigin
    freight: FreightName
    reason: str


def find_failure(
    policy: PromotionPolicy | None, last: Promotion | None, run: AnalysisRun | None, now: datetime
) -> Failure | None:
    """The failure that the policy answers by going back, None if there is none.

    `last` is the Stage's newest ended Promotion, `run` the newest verification of what the Stage has now.
    """
    if policy is None or not policy.auto_rollback or last is None or last.rollback:
        return None
    if last.corrects or last.follows is not None:
        # It brought no other Freight, so going back to older Freight would not undo what it did.
        return None
    origin, freight, alias = last.freight.origin, last.freight.name, last.freight.alias
    if last.blocked:
        named = last.state.value in policy.rollback_on_promotion
        if not named or not _is_recent(last.finished_at, now):
            return None
        return Failure(origin, freight, f"the promotion of {alias} failed: {last.reason}")
    if (
        run is None
        or run.promotion != last.id
        or run.actor
        or run.phase.value not in policy.rollback_on_verification
    ):
        return None
    if not run.settled or not _is_recent(run.finished_at, now):
        return None
    return Failure(origin, freight, f"{alias}: {describe_run(run)}")


def _is_recent(at: datetime | None, now: datetime) -> bool:
    return at is not None and now - at <= LATEST


def ways_back(history: Sequence[FreightCollection], failed: FreightName | None) -> Iterator[FreightName]:
    """The Freight that a person may go back to without naming it, newest first and each once.

    `failed` is what a promotion failed to bring, None if the last one did not fail: then what the Stage has is left
    behind; else it is the nearest way back.
    """
    present = {failed} if failed is not None else set(history[0].items.values()) if history else set()
    names = (name for collection in history for name in collection.items.values())
    yield from dict.fromkeys(name for name in names if name not in present)


def former_freight(history: Sequence[FreightCollection], failure: Failure) -> Iterator[FreightName]:
    """The Freight of the failure's origin that the Stage had, newest first, each once and without what failed."""
    names = (collection.items.get(failure.origin) for collection in history)
    yield from dict.fromkeys(name for name in names if name is not None and name != failure.freight)
