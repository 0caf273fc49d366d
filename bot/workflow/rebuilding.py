"""Which rows follow from what markers say: a plain function, since nothing here may be guessed.

A Stage has what the newest believed Promotion brought of each origin. What was merged and is not known to have ended
becomes a failure that holds its Stage until a person acts; what is open is previewed again under its old name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from bot.domain.audit import BEGINNING
from bot.domain.availability import enter_stage, leave_stage, verify_in_stage
from bot.domain.files import CommitId
from bot.domain.freight import FreightName, FreightStatus
from bot.domain.github import DeploymentState, PullRequest
from bot.domain.history import next_collection, record_collection
from bot.domain.marker import AppliedInputs, Marker
from bot.domain.promotion import Promotion, PromotionId, State, Target
from bot.ports import AppliedState, StageRecord
from bot.ports.restoring import DeploymentResult, Rebuilt, RestoredFreight
from bot.workflow.configuration import Configuration

LOST = (
    "the database was lost after its merge, and nothing tells how far it came: look at what runs, then `/promote` or "
    "`/rollback` this Stage, which plans what is left"
)
"""Said of what was merged and is not known to have ended."""

_BEGUN = (State.FULFILLING, State.STOPPED, State.HELD)
_STANDS = (State.SUCCEEDED, State.FAILED, State.ERRORED, State.ABORTED)


@dataclass(frozen=True, slots=True)
class Unrestored:
    """Something that could not be restored, or not as a whole: where it stands, and why."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Branch:
    """An open branch: what it stands on, and which of its commits are ours."""

    base: CommitId
    own: tuple[CommitId, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A believed marker, with what GitHub says of its pull request; without one it stands in a commit.

    Without a commit either it stands in a deployment. `by_body` tells that the marker is that of the body, which says
    how far the Promotion came.
    """

    where: str
    marker: Marker
    pull: PullRequest | None
    url: str
    result: DeploymentResult | None = None
    branch: Branch | None = None
    commit: CommitId | None = None
    by_body: bool = False


Rows = tuple[Rebuilt, Sequence[Unrestored]]


def rebuild_rows(evidence: Sequence[Evidence], configuration: Configuration, now: datetime) -> Rows:
    """Rows of a database, and what could not be restored."""
    unrestored: list[Unrestored] = []
    pulls = _newest_of_each(item for item in evidence if item.pull is not None)
    promotions = [_promotion(item, now) for item in pulls]
    promotions = _one_open_each(promotions, configuration, unrestored)
    promotions = _only_last_holds(promotions)
    markers = {item.marker.promotion: item.marker for item in pulls}
    stages, statuses = _stages(promotions, markers, configuration)
    applied = _applied(evidence, promotions, configuration)
    unrestored += _doubts(promotions, evidence)
    freight = {
        (promotion.project, promotion.freight.name): promotion.freight
        for promotion in sorted(promotions, key=lambda item: item.created_at)
    }
    rebuilt = Rebuilt(
        freight=tuple(
            RestoredFreight(item, statuses.get(key, FreightStatus())) for key, item in freight.items()
        ),
        promotions=tuple(sorted(promotions, key=lambda item: (item.created_at, item.id))),
        stages=stages,
        applied=applied,
        audit=max(
            (marker.audit for marker in markers.values() if marker.audit is not None),
            key=lambda head: head.number,
            default=BEGINNING,
        ),
    )
    return rebuilt, unrestored


def _newest_of_each(evidence: Iterable[Evidence]) -> list[Evidence]:
    """One piece of evidence of each Promotion; of one that moved to another pull request the last one counts."""
    found: dict[str, Evidence] = {}
    for item in evidence:
        known = found.get(item.marker.promotion)
        if known is None or (item.by_body, _number(item)) > (known.by_body, _number(known)):
            found[item.marker.promotion] = item
    return list(found.values())


def _number(item: Evidence) -> int:
    return item.pull.number if item.pull is not None else 0


# -- one Promotion -----------------------------------------------------------------------------------------------


def _promotion(item: Evidence, now: datetime) -> Promotion:
    marker, pull = item.marker, item.pull
    assert pull is not None
    blank = Promotion(
        id=PromotionId(marker.promotion),
        project=marker.project,
        stage=marker.stage,
        freight=marker.freight,
        collection=(marker.freight,),
        steps=(),
        variables=(),
        actor=marker.actor or "lockstep",
        actor_id=marker.actor_id,
        created_at=marker.created_at,
        rollback=marker.rollback,
        corrects=marker.corrects,
        target=marker.target or Target(item.url, pull.base_branch),
        pull=pull.number,
        head=pull.head,
        pushers=marker.pushers,
        merge_commit=pull.merge_commit,
        source=marker.source,
    )
    if pull.open:
        base, own = (item.branch.base, item.branch.own) if item.branch is not None else (None, ())
        reason = "its database was lost; it is previewed again"
        return replace(blank, reason=reason, base=base, own_commits=own)
    ended = _end(item, now)
    return replace(blank, state=ended[0], reason=ended[1], finished_at=ended[2], effects_begun=pull.merged)


def _end(item: Evidence, now: datetime) -> tuple[State, str, datetime]:
    """How a Promotion ended that is not open, why, and when."""
    marker, pull = item.marker, item.pull
    known = State(marker.state) if item.by_body and marker.state in _STANDS else None
    at = marker.finished_at or now
    if pull is not None and not pull.merged:
        rejected = f"its pull request was closed: {marker.freight.alias} is rejected here"
        return State.ABORTED, marker.reason or rejected, at
    result = item.result
    if result is not None and result.state is DeploymentState.SUCCESS and known is not State.SUCCEEDED:
        return State.SUCCEEDED, "its deployment succeeded", result.at
    if known is not None:
        return known, marker.reason or f"it ended {known.value}", at
    return State.ERRORED, LOST, now


def _one_open_each(
    promotions: Sequence[Promotion], configuration: Configuration, unrestored: list[Unrestored]
) -> list[Promotion]:
    """Of the open ones the newest of each Stage that there is: a Stage has one at a time."""
    kept: list[Promotion] = []
    taken: set[tuple[str, str]] = set()
    for promotion in sorted(promotions, key=lambda item: (item.created_at, item.id), reverse=True):
        stage = (promotion.project, promotion.stage)
        where = f"{promotion.target.url if promotion.target else ''} #{promotion.pull}"
        if promotion.state.ended:
            kept.append(promotion)
        elif configuration.stage(*stage) is None:
            unrestored.append(
                Unrestored(where, f"the configuration has no Stage {stage[0]}/{stage[1]}; close it")
            )
        elif stage in taken:
            unrestored.append(Unrestored(where, f"{stage[1]} has a newer open pull request; close this one"))
        else:
            taken.add(stage)
            kept.append(promotion)
    return kept


def _only_last_holds(promotions: Sequence[Promotion]) -> list[Promotion]:
    """A failure holds its Stage as long as nothing came after it."""
    last: dict[tuple[str, str], Promotion] = {}
    for promotion in promotions:
        key = (promotion.project, promotion.stage)
        if promotion.state.ended and (key not in last or last[key].created_at < promotion.created_at):
            last[key] = promotion
    bad = (State.FAILED, State.ERRORED)
    ids = {promotion.id for promotion in last.values() if promotion.state in bad and promotion.merge_commit}
    return [replace(promotion, blocked=promotion.id in ids) for promotion in promotions]


# -- Stages ------------------------------------------------------------------------------------------------------

_Key = tuple[str, FreightName]


def _stages(
    promotions: Sequence[Promotion], markers: Mapping[str, Marker], configuration: Configuration
) -> tuple[tuple[StageRecord, ...], Mapping[_Key, FreightStatus]]:
    """What each Stage has and had, and where each piece of Freight is and was verified."""
    statuses: dict[_Key, FreightStatus] = {}
    by_stage: dict[tuple[str, str], list[Promotion]] = {}
    for promotion in promotions:
        by_stage.setdefault((promotion.project, promotion.stage), []).append(promotion)
    records = []
    for (project, name), found in sorted(by_stage.items()):
        stage = configuration.stage(project, name)
        measured = stage is not None and stage.verification is not None
        record = StageRecord(project, name)
        arrived = [p for p in found if p.state is State.SUCCEEDED and p.finished_at is not None]
        for promotion in sorted(arrived, key=_finished):
            verified = _verified(promotion, markers[promotion.id], measured=measured)
            record = _arrive(record, promotion, verified, statuses)
        newest = max(found, key=lambda item: item.created_at)
        records.append(_with_standing(record, markers[newest.id]))
    return tuple(records), statuses


def _finished(promotion: Promotion) -> datetime:
    return promotion.finished_at or promotion.created_at


def _verified(promotion: Promotion, marker: Marker, *, measured: bool) -> datetime | None:
    """Since when the Freight is verified: what is not measured is so on its arrival."""
    return marker.verified_at or (None if measured else promotion.finished_at)


def _arrive(
    record: StageRecord,
    promotion: Promotion,
    verified: datetime | None,
    statuses: dict[_Key, FreightStatus],
) -> StageRecord:
    project, freight, at = promotion.project, promotion.freight, _finished(promotion)
    present = record.items.get(freight.origin)
    if present is not None and present != freight.name:
        before = statuses.get((project, present), FreightStatus())
        statuses[project, present] = leave_stage(before, record.stage, at)
    status = enter_stage(statuses.get((project, freight.name), FreightStatus()), record.stage, at)
    if verified is not None:
        status = verify_in_stage(status, record.stage, verified)
    statuses[project, freight.name] = status
    if present == freight.name:
        return record
    collection = next_collection(record.history, freight.origin, freight.name)
    return replace(record, history=record_collection(record.history, collection), since=at)


def _with_standing(record: StageRecord, marker: Marker) -> StageRecord:
    standing = marker.standing
    if standing is None:
        return record
    return replace(
        record,
        holds={hold.origin: hold for hold in standing.holds},
        frozen=standing.frozen,
        quarantine=standing.quarantine,
        differs=standing.differs,
    )


# -- Terraform ---------------------------------------------------------------------------------------------------


def _applied(
    evidence: Sequence[Evidence], promotions: Sequence[Promotion], configuration: Configuration
) -> tuple[AppliedState, ...]:
    """The last apply of each state, where it is certain that nothing was applied after it.

    A Stage with a later merge whose end is not a success proves nothing of its states, nor does one where something may
    have been applied before its merge, or behind a merge of a person's: those are planned again.
    """
    doubts = [
        (promotion.project, promotion.stage, promotion.created_at)
        for promotion in promotions
        if promotion.merge_commit is not None and promotion.state is not State.SUCCEEDED
    ]
    doubts += [
        (item.marker.project, item.marker.stage, item.marker.created_at)
        for item in (*_begun_early(evidence, configuration), *_deployed_alone(evidence))
    ]
    doubtful: dict[tuple[str, str], datetime] = {}
    for project, stage, at in doubts:
        doubtful[project, stage] = max(doubtful.get((project, stage), at), at)
    newest: dict[str, tuple[AppliedInputs, Marker]] = {}
    for item in evidence:
        for applied in item.marker.applied:
            if applied.state not in newest or newest[applied.state][0].at < applied.at:
                newest[applied.state] = (applied, item.marker)
    found = []
    for state, (applied, marker) in sorted(newest.items()):
        doubt = doubtful.get((marker.project, marker.stage))
        if doubt is not None and doubt >= marker.created_at:
            continue
        found.append(
            AppliedState(
                state=state,
                inputs=applied.inputs,
                commit=applied.commit,
                promotion=PromotionId(marker.promotion),
                succeeded=applied.succeeded,
                at=applied.at,
            )
        )
    return tuple(found)


def _begun_early(evidence: Sequence[Evidence], configuration: Configuration) -> list[Evidence]:
    """Those that are not merged, and of which something may be applied that no marker tells of.

    A body is written a moment after what it tells, so where the policy applies before the merge only an end is certain.
    """
    found = []
    for item in evidence:
        if item.pull is None or item.pull.merged or (item.by_body and item.marker.state in _STANDS):
            continue
        stage = configuration.stage(item.marker.project, item.marker.stage)
        before = stage is not None and configuration.policy(stage).apply == "BeforeMerge"
        if before or item.marker.state in _BEGUN:
            found.append(item)
    return found


def _deployed_alone(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Deployments of Promotions that no pull request of ours and no commit tells of: re-promotions, mostly."""
    return [item for item in evidence if item.pull is None and item.commit is None]


# -- what is not certain -----------------------------------------------------------------------------------------


def _doubts(promotions: Sequence[Promotion], evidence: Sequence[Evidence]) -> list[Unrestored]:
    """What was merged without a known end, and what was written without a pull request."""
    found = []
    for promotion in promotions:
        if promotion.reason == LOST:
            held = "it holds its Stage" if promotion.blocked else "a later promotion took over from it"
            where = f"{promotion.project}/{promotion.stage}, #{promotion.pull}"
            found.append(
                Unrestored(where, f"{promotion.freight.alias} was merged, its end is not known: {held}")
            )
    known = {promotion.id for promotion in promotions}
    newest: dict[tuple[str, str], Evidence] = {}
    for item in evidence:
        if item.pull is None and item.commit is not None and PromotionId(item.marker.promotion) not in known:
            key = (item.marker.project, item.marker.stage)
            if key not in newest or newest[key].marker.created_at < item.marker.created_at:
                newest[key] = item
    for (project, stage), item in sorted(newest.items()):
        why = f"{item.marker.freight.alias} was brought to {project}/{stage} without a pull request that is known"
        found.append(
            Unrestored(item.where, f"{why}; whether it arrived nobody tells, so it is promoted again")
        )
    return found
