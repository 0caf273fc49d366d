"""Which Freight a Stage may have: Kargo's availability, soak times and the bookkeeping behind them.

All functions are pure; the clock comes in as `now`, an aware datetime. Soak times are seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.domain.freight import Freight, FreightOrigin, FreightStatus, Verified
from bot.domain.model import FreightRequest, FreightSources, Stage


@dataclass(frozen=True, slots=True)
class KnownFreight:
    """Freight with where it is and was."""

    freight: Freight
    status: FreightStatus = field(default_factory=FreightStatus)


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether Freight is available to a Stage and why; `since` tells when time alone will make it so."""

    available: bool
    reason: str
    since: datetime | None = None


# -- Bookkeeping -----------------------------------------------------------------------------------------------


def enter_stage(status: FreightStatus, stage: str, at: datetime) -> FreightStatus:
    """The Freight is now what the Stage has; unchanged if it already was."""
    if stage in status.currently_in:
        return status
    return replace(status, currently_in={**status.currently_in, stage: at})


def leave_stage(status: FreightStatus, stage: str, at: datetime) -> FreightStatus:
    """The Stage has other Freight now; the finished stay counts as soak if the Freight was verified there."""
    since = status.currently_in.get(stage)
    if since is None:
        return status
    current = {name: time for name, time in status.currently_in.items() if name != stage}
    verified = status.verified_in.get(stage)
    if verified is None:
        return replace(status, currently_in=current)
    soak = max(verified.longest_soak, (at - since).total_seconds())
    return replace(
        status,
        currently_in=current,
        verified_in={**status.verified_in, stage: replace(verified, longest_soak=soak)},
    )


def verify_in_stage(status: FreightStatus, stage: str, at: datetime) -> FreightStatus:
    """The Freight was proven in the Stage; the first time is kept."""
    if stage in status.verified_in:
        return status
    return replace(status, verified_in={**status.verified_in, stage: Verified(verified_at=at)})


def revoke_in_stage(status: FreightStatus, stage: str) -> FreightStatus:
    """The Freight failed in the Stage: it is no longer proven there, and its soak begins anew."""
    if stage not in status.verified_in:
        return status
    return replace(status, verified_in={name: at for name, at in status.verified_in.items() if name != stage})


def approve_for_stage(status: FreightStatus, stage: str, at: datetime) -> FreightStatus:
    """Somebody approved the Freight for the Stage, whatever verification and soak say; the first time is kept."""
    if stage in status.approved_for:
        return status
    return replace(status, approved_for={**status.approved_for, stage: at})


def longest_soak(status: FreightStatus, stage: str, now: datetime) -> float:
    """Seconds of the longest stay in a Stage, the present one included; nothing counts before verification.

    As in Kargo a stay that was verified later counts from its beginning.
    """
    verified = status.verified_in.get(stage)
    if verified is None:
        return 0.0
    since = status.currently_in.get(stage)
    current = (now - since).total_seconds() if since is not None else 0.0
    return max(verified.longest_soak, current)


# -- Availability ----------------------------------------------------------------------------------------------


def explain_availability(stage: Stage, known: KnownFreight, now: datetime) -> Availability:
    """Whether the Freight is available to the Stage, with a reason that a person can act on.

    The first request for the Freight's origin decides. An approval stands in for verification and soak, never for
    the origin. Freight never leaves its project.
    """
    if known.freight.project != stage.metadata.namespace:
        return Availability(available=False, reason=f"it belongs to the project {known.freight.project}")
    request = find_request(stage, known.freight.origin)
    if request is None:
        return Availability(
            available=False, reason=f"the Stage does not ask for Freight of {known.freight.origin}"
        )
    return explain_request(stage, request, known.status, now)


def find_request(stage: Stage, origin: FreightOrigin) -> FreightRequest | None:
    """The Stage's request for an origin, if it has one."""
    return next((request for request in stage.requested_freight if request.origin == origin), None)


def explain_request(
    stage: Stage, request: FreightRequest, status: FreightStatus, now: datetime
) -> Availability:
    """As `explain_availability`, for Freight that is known to be of the request's origin."""
    name = stage.metadata.name
    if name in status.approved_for:
        return Availability(available=True, reason=f"it was approved for {name}")
    if request.sources.direct:
        return Availability(available=True, reason=f"{name} takes Freight directly from {request.origin}")
    upstream = [_explain_upstream(request.sources, stage, status, now) for stage in request.sources.stages]
    if not upstream:
        return Availability(available=False, reason="its request names neither a source Stage nor `direct`")
    if request.sources.availability_strategy == "All":
        return _all_of(upstream)
    return next((answer for answer in upstream if answer.available), _soonest(upstream))


def _explain_upstream(
    sources: FreightSources, stage: str, status: FreightStatus, now: datetime
) -> Availability:
    if stage not in status.verified_in:
        return Availability(available=False, reason=f"it is not verified in {stage}")
    required = sources.required_soak_time
    if required is None or (soaked := longest_soak(status, stage, now)) >= required:
        return Availability(available=True, reason=f"it is verified in {stage}")
    missing = timedelta(seconds=required - soaked)
    text = f"it has soaked {_duration(soaked)} of {_duration(required)} in {stage}"
    if stage in status.currently_in:
        # A longer finished stay does not help the present one: that began at `since`.
        at = status.currently_in[stage] + timedelta(seconds=required)
        return Availability(available=False, reason=text, since=at)
    return Availability(
        available=False,
        reason=f"{text}, and is no longer there ({_duration(missing.total_seconds())} missing)",
    )


def _all_of(answers: list[Availability]) -> Availability:
    missing = [answer for answer in answers if not answer.available]
    if not missing:
        return Availability(available=True, reason=" and ".join(answer.reason for answer in answers))
    times = [answer.since for answer in missing]
    known = [time for time in times if time is not None]
    return Availability(
        available=False,
        reason="; ".join(answer.reason for answer in missing),
        since=max(known) if len(known) == len(times) else None,
    )


def _soonest(answers: list[Availability]) -> Availability:
    known = [answer.since for answer in answers if answer.since is not None]
    return Availability(
        available=False,
        reason="; ".join(answer.reason for answer in answers),
        since=min(known) if known else None,
    )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours}h" if hours else "", f"{minutes}m" if minutes else "", f"{rest}s" if rest else ""]
    return "".join(parts) or "0s"


def is_freight_available(stage: Stage, known: KnownFreight, now: datetime) -> bool:
    """Whether the Freight is available to the Stage; as `explain_availability`, without the words."""
    request = find_request(stage, known.freight.origin)
    same_project = known.freight.project == stage.metadata.namespace
    return same_project and request is not None and _is_available(stage, request, known.status, now)


def _is_available(stage: Stage, request: FreightRequest, status: FreightStatus, now: datetime) -> bool:
    sources = request.sources
    if sources.direct or stage.metadata.name in status.approved_for:
        return True
    required = sources.required_soak_time
    answers = (
        upstream in status.verified_in
        and (required is None or longest_soak(status, upstream, now) >= required)
        for upstream in sources.stages
    )
    return bool(sources.stages) and (all if sources.availability_strategy == "All" else any)(answers)


@dataclass(frozen=True, slots=True)
class FreightIndex:
    """A project's Freight by what is asked of it; every list is newest first.

    Built once per pass, so that a pass over many Stages does not look at all Freight for each.
    """

    by_origin: Mapping[FreightOrigin, tuple[KnownFreight, ...]] = field(default_factory=dict)
    verified: Mapping[tuple[FreightOrigin, str], tuple[KnownFreight, ...]] = field(default_factory=dict)
    approved: Mapping[tuple[FreightOrigin, str], tuple[KnownFreight, ...]] = field(default_factory=dict)
    current: Mapping[tuple[FreightOrigin, str], tuple[KnownFreight, ...]] = field(default_factory=dict)


def index_freight(freight: Iterable[KnownFreight]) -> FreightIndex:
    """The index of a project's Freight."""
    by_origin: dict[FreightOrigin, list[KnownFreight]] = {}
    places: tuple[dict[tuple[FreightOrigin, str], list[KnownFreight]], ...] = ({}, {}, {})
    for known in sorted(freight, key=age_key, reverse=True):
        origin = known.freight.origin
        by_origin.setdefault(origin, []).append(known)
        status = known.status
        for place, stages in zip(
            places, (status.verified_in, status.approved_for, status.currently_in), strict=True
        ):
            for stage in stages:
                place.setdefault((origin, stage), []).append(known)
    verified, approved, current = ({key: tuple(found) for key, found in place.items()} for place in places)
    return FreightIndex({key: tuple(found) for key, found in by_origin.items()}, verified, approved, current)


def age_key(known: KnownFreight) -> tuple[datetime, str]:
    """What Freight is ordered by: the time of discovery, then the name."""
    return known.freight.discovered_at, known.freight.name


def available_freight(stage: Stage, index: FreightIndex, now: datetime) -> tuple[KnownFreight, ...]:
    """All Freight that is available to the Stage by one of its requests, each once, sorted by name.

    A request with MatchUpstream gives only what its upstream Stage has now.
    """
    found: dict[str, KnownFreight] = {}
    for request in stage.requested_freight:
        for known in available_to_request(stage, request, index, now):
            found[known.freight.name] = known
    return tuple(found[name] for name in sorted(found))


def available_to_request(
    stage: Stage, request: FreightRequest, index: FreightIndex, now: datetime
) -> Iterable[KnownFreight]:
    """The Freight that one request makes available, newest first, found only as far as the caller reads."""
    for known in _possible(stage, request, index):
        if _is_available(stage, request, known.status, now):
            yield known


def _possible(stage: Stage, request: FreightRequest, index: FreightIndex) -> Iterable[KnownFreight]:
    origin, sources = request.origin, request.sources
    if sources.selection_policy == "MatchUpstream" and len(sources.stages) == 1:
        return index.current.get((origin, sources.stages[0]), ())
    if sources.direct:
        return index.by_origin.get(origin, ())
    places = [index.approved.get((origin, stage.metadata.name), ())]
    places += [index.verified.get((origin, upstream), ()) for upstream in sources.stages]
    if sum(map(bool, places)) <= 1:
        return next((place for place in places if place), ())
    merged = {known.freight.name: known for place in places for known in place}
    return sorted(merged.values(), key=age_key, reverse=True)
