"""Whether and with what a Stage promotes by itself: policies, candidates, guards and holds.

The rules are Kargo's: the first policy that selects the Stage decides; per origin the newest available Freight is
the candidate; a manual promotion of something else holds the origin until somebody promotes the candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bot.domain.availability import FreightIndex, KnownFreight, age_key, available_to_request
from bot.domain.freight import Freight, FreightName, FreightOrigin
from bot.domain.model import (
    FreightRequest,
    ProjectConfig,
    PromotionPolicy,
    Stage,
)
from bot.domain.patterns import matches_selector
from bot.domain.promotion import State


@dataclass(frozen=True, slots=True)
class Hold:
    """That auto-promotion of one origin waits for a person."""

    origin: FreightOrigin
    freight: FreightName
    promotion: str = ""
    created_at: datetime | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StageProgress:
    """What the guards of auto-promotion look at in one Stage.

    `last_states` has the end of the latest finished Promotion of each Freight; `unfinished` the Freight of
    Promotions that have not ended.
    """

    current: Mapping[FreightOrigin, FreightName] = field(default_factory=dict)
    unfinished: frozenset[FreightName] = frozenset()
    last_states: Mapping[FreightName, State] = field(default_factory=dict)
    holds: Mapping[FreightOrigin, Hold] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AutoPromotion:
    """The answer for one origin: Freight to promote now, or None; the reason holds either way."""

    origin: FreightOrigin
    freight: Freight | None
    reason: str


def find_policy(
    config: ProjectConfig | None, stage: str, labels: Mapping[str, str]
) -> PromotionPolicy | None:
    """The first policy that selects the Stage; raises ValueError for a pattern that admission would refuse."""
    policies = config.promotion_policies if config is not None else ()
    return next((policy for policy in policies if matches_selector(policy.selector, stage, labels)), None)


def is_auto_promotion_enabled(config: ProjectConfig | None, stage: str, labels: Mapping[str, str]) -> bool:
    """Whether the project lets the Stage promote by itself; without a policy it does not."""
    policy = find_policy(config, stage, labels)
    return policy is not None and policy.auto_promotion_enabled


def select_candidates(stage: Stage, available: Iterable[KnownFreight]) -> dict[FreightOrigin, Freight]:
    """Per requested origin the Freight to promote: the newest by discovery, ties by name.

    Under MatchUpstream two candidates mean that the upstream Stage is just changing: then there is none.
    """
    by_origin: dict[FreightOrigin, list[KnownFreight]] = {}
    for known in available:
        by_origin.setdefault(known.freight.origin, []).append(known)
    chosen: dict[FreightOrigin, Freight] = {}
    for request in stage.requested_freight:
        found = by_origin.get(request.origin, [])
        if found and not (_matches_upstream(request) and len(found) > 1):
            chosen[request.origin] = max(found, key=age_key).freight
    return chosen


def _matches_upstream(request: FreightRequest) -> bool:
    return request.sources.selection_policy == "MatchUpstream"


def plan_auto_promotions(
    stage: Stage, index: FreightIndex, progress: StageProgress, now: datetime
) -> tuple[AutoPromotion, ...]:
    """For each requested origin what to promote now, or why nothing; the policy is not asked here.

    A control-flow Stage has no Promotions, so it gets no answers.
    """
    if stage.is_control_flow:
        return ()
    return tuple(_plan_origin(stage, request, index, progress, now) for request in stage.requested_freight)


def _plan_origin(
    stage: Stage, request: FreightRequest, index: FreightIndex, progress: StageProgress, now: datetime
) -> AutoPromotion:
    origin = request.origin
    available = iter(available_to_request(stage, request, index, now))
    newest = next(available, None)
    if newest is None:
        return AutoPromotion(origin, None, f"no Freight of {origin} is available")
    if _matches_upstream(request) and next(available, None) is not None:
        return AutoPromotion(origin, None, f"{request.sources.stages[0]} is changing its Freight")
    reason = _guard(newest.freight, progress)
    if reason:
        return AutoPromotion(origin, None, reason)
    return AutoPromotion(
        origin, newest.freight, f"{newest.freight.alias or newest.freight.name} is available"
    )


def _guard(freight: Freight, progress: StageProgress) -> str:
    """Why the candidate is not promoted now, or nothing."""
    shown = freight.alias or freight.name
    if progress.current.get(freight.origin) == freight.name:
        return f"the Stage has {shown} already"
    hold = progress.holds.get(freight.origin)
    if hold is not None:
        return f"auto-promotion of {freight.origin} is on hold: {hold.reason or 'somebody promoted other Freight'}"
    if freight.name in progress.unfinished:
        return f"a promotion of {shown} is under way"
    last = progress.last_states.get(freight.name)
    if last is not None and last is not State.SUCCEEDED:
        # Without this an impossible promotion would be tried for ever.
        return f"the last promotion of {shown} ended {last}"
    return ""


def holds_after_promotion(
    holds: Mapping[FreightOrigin, Hold], promoted: Hold, candidate: FreightName | None
) -> dict[FreightOrigin, Hold]:
    """The Stage's holds after somebody promoted the Freight that `promoted` names.

    Promoting the candidate resumes auto-promotion of its origin; promoting anything else holds it.
    """
    rest = {origin: hold for origin, hold in holds.items() if origin != promoted.origin}
    return rest if promoted.freight == candidate else {**rest, promoted.origin: promoted}


def effective_holds(holds: Mapping[FreightOrigin, Hold], *, enabled: bool) -> dict[FreightOrigin, Hold]:
    """The holds that count: switching auto-promotion off clears them."""
    return dict(holds) if enabled else {}
