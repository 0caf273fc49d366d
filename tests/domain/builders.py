"""Small domain values for the tests of decisions; every call gives fresh ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bot.domain.availability import KnownFreight
from bot.domain.freight import Freight, FreightName, FreightOrigin, FreightStatus, Verified
from bot.domain.model import (
    FreightRequest,
    FreightSources,
    Metadata,
    PromotionTemplate,
    Stage,
    Step,
)

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
ORIGIN = FreightOrigin("app")


def hours(number: float) -> datetime:
    """The moment so many hours before now."""
    return NOW - timedelta(hours=number)


def freight(name: str, *, age: float = 1, origin: FreightOrigin = ORIGIN) -> Freight:
    return Freight(FreightName(name), "proj", f"alias-{name}", origin, hours(age))


def known(
    name: str,
    *,
    age: float = 1,
    verified: dict[str, float] | None = None,
    current: dict[str, float] | None = None,
    approved: tuple[str, ...] = (),
    origin: FreightOrigin = ORIGIN,
) -> KnownFreight:
    """Freight with the soak (hours) it has finished in Stages, and how long it has been in others."""
    return KnownFreight(
        freight(name, age=age, origin=origin),
        FreightStatus(
            currently_in={stage: hours(since) for stage, since in (current or {}).items()},
            verified_in={stage: Verified(hours(9), soak * 3600) for stage, soak in (verified or {}).items()},
            approved_for=dict.fromkeys(approved, hours(1)),
        ),
    )


def stage(
    name: str = "prod", *, sources: FreightSources | None = None, steps: tuple[Step, ...] | None = None
) -> Stage:
    template = PromotionTemplate(steps if steps is not None else (Step(uses="fail"),))
    request = FreightRequest(ORIGIN, sources or FreightSources(direct=True))
    return Stage(Metadata(name, "proj"), (request,), template=template)
