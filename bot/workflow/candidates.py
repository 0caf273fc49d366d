"""Which Freight auto-promotion would take now, and what its guards look at."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from bot.domain.auto_promotion import StageProgress, is_auto_promotion_enabled, plan_auto_promotions
from bot.domain.availability import Availability, FreightIndex, KnownFreight, explain_availability
from bot.domain.freight import Freight, FreightName
from bot.domain.model import ProjectConfig, Stage
from bot.domain.promotion import State
from bot.ports import StageRecord


def progress_of(
    record: StageRecord, unfinished: FreightName | None, ended: Sequence[tuple[FreightName, State]]
) -> StageProgress:
    """What the guards of auto-promotion look at; `ended` are finished Promotions, newest first."""
    return StageProgress(
        current=record.items,
        unfinished=frozenset({unfinished}) if unfinished is not None else frozenset(),
        last_states=dict(reversed(ended)) | dict.fromkeys(record.quarantine, State.ABORTED),
        holds=record.holds,
    )


def choose_candidate(
    stage: Stage,
    config: ProjectConfig | None,
    progress: StageProgress,
    index: FreightIndex,
    now: datetime,
) -> tuple[Freight | None, str, datetime | None]:
    """The Freight that auto-promotion would take now, or why there is none and when time alone will tell."""
    name = stage.metadata.name
    if not is_auto_promotion_enabled(config, name, stage.metadata.labels):
        return None, not_by_itself(name), None
    answers = plan_auto_promotions(stage, index, progress, now)
    chosen = next((answer for answer in answers if answer.freight is not None), None)
    if chosen is not None:
        return chosen.freight, chosen.reason, None
    soaking = [explain_availability(stage, item, now) for item in _recent(stage, index)]
    soonest = min((a for a in soaking if a.since is not None and a.since > now), key=_since, default=None)
    if soonest is not None:
        return None, soonest.reason, soonest.since
    return None, "; ".join(answer.reason for answer in answers), None


def not_by_itself(stage: str) -> str:
    """Why nothing is promoted where auto-promotion is off."""
    return f"auto-promotion is off: somebody types `/promote {stage}`"


def _recent(stage: Stage, index: FreightIndex) -> list[KnownFreight]:
    """The newest Freight that was verified upstream: of older pieces none becomes a candidate by waiting."""
    return [
        known
        for request in stage.requested_freight
        for upstream in request.sources.stages
        for known in index.verified.get((request.origin, upstream), ())[:5]
    ]


def _since(answer: Availability) -> datetime:
    return answer.since or datetime.max.replace(tzinfo=UTC)


def describe_difference(stage: str, differs: str) -> str:
    """Why a Stage that differs from its Freight takes nothing by itself."""
    return f"auto-promotion waits, {differs}: revert that, or somebody types `/promote {stage}`"
