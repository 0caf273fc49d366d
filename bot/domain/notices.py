"""Kargo's events as the data that an EventRouter's expressions see: `type`, `event` and `data`.

An event is told by its type and by what it is of, so that it is the same whenever it is looked at. `applications` of a
Promotion are not there: which ones a step touched is told by its outputs alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from bot.domain.analysis import AnalysisRun, Phase
from bot.domain.freight import Freight
from bot.domain.promotion import Promotion, State
from bot.domain.resources import freight_resource
from bot.domain.values import Json

_OF_STATE = {
    State.SUCCEEDED: "PromotionSucceeded",
    State.FAILED: "PromotionFailed",
    State.ERRORED: "PromotionErrored",
    State.ABORTED: "PromotionAborted",
}
_OF_PHASE = {
    Phase.SUCCESSFUL: "FreightVerificationSucceeded",
    Phase.FAILED: "FreightVerificationFailed",
    Phase.ERROR: "FreightVerificationErrored",
    Phase.ABORTED: "FreightVerificationAborted",
    Phase.INCONCLUSIVE: "FreightVerificationInconclusive",
}


@dataclass(frozen=True, slots=True)
class Notice:
    """An event: its type, what it is of (a Promotion's, a run's or Freight's name), when it was, and its data.

    `words` say it in a sentence, for a router that gives no words of its own.
    """

    type: str
    subject: str
    at: datetime
    event: dict[str, Json]
    data: dict[str, Json]
    words: str


def promotion_notices(promotion: Promotion, *, verified: bool) -> list[Notice]:
    """The events of a Promotion so far; `verified` tells that its Stage has a verification."""
    place = f"{promotion.project}/{promotion.stage}"
    alias = promotion.freight.label
    fields: dict[str, Json] = {
        "project": promotion.project,
        "actor": promotion.actor,
        "name": promotion.id,
        "stageName": promotion.stage,
        "createTime": _time(promotion.created_at),
        "freight": _freight(promotion.freight, promotion.stage),
    }
    spec: Json = {"stage": promotion.stage, "freight": promotion.freight.name}
    metadata: Json = {"name": promotion.id, "namespace": promotion.project}
    data: dict[str, Json] = {"kind": "Promotion", "metadata": metadata, "spec": spec}
    words = f"Promotion of {alias} to {place} was created by {promotion.actor}"
    created = {**fields, "id": f"{promotion.id}/PromotionCreated", "message": words}
    found = [Notice("PromotionCreated", promotion.id, promotion.created_at, created, data, words)]
    kind = _OF_STATE.get(promotion.state)
    if kind is not None and promotion.finished_at is not None:
        status: Json = {"phase": promotion.state.value, "message": promotion.reason}
        said = f"Promotion of {alias} to {place} {promotion.state.value.lower()}"
        words = f"{said}: {promotion.reason}" if promotion.reason else said
        ended = {**fields, "id": f"{promotion.id}/{kind}", "message": promotion.reason}
        if promotion.state is State.SUCCEEDED:
            ended["verificationPending"] = verified
        found.append(
            Notice(kind, promotion.id, promotion.finished_at, ended, {**data, "status": status}, words)
        )
    return found


def verification_notices(run: AnalysisRun, freight: Freight) -> list[Notice]:
    """The end of a verification, told of one piece of the Freight that the Stage has."""
    kind = _OF_PHASE.get(run.phase)
    if kind is None or run.finished_at is None or not run.settled:
        return []
    alias = freight.label
    words = f"Verification of {alias} in {run.project}/{run.stage}: {run.phase.value.lower()}"
    event: dict[str, Json] = {
        **_freight(freight, run.stage),
        "project": run.project,
        "actor": run.actor or "lockstep",
        "message": run.message,
        "id": f"{run.id}/{kind}/{freight.name}",
        "verificationStartTime": _time(run.started_at or run.created_at),
        "verificationFinishTime": _time(run.finished_at),
        "analysisRunName": run.id,
        "analysisTriggeredByPromotion": run.promotion,
    }
    said = f"{words}: {run.message}" if run.message else words
    return [
        Notice(kind, f"{run.id}.{freight.name[:7]}", run.finished_at, event, freight_resource(freight), said)
    ]


def approval_notice(freight: Freight, stage: str, at: datetime) -> Notice:
    """That Freight was approved for a Stage by hand."""
    alias = freight.label
    words = f"Freight {alias} was approved for {freight.project}/{stage}"
    event: dict[str, Json] = {
        **_freight(freight, stage),
        "project": freight.project,
        "message": words,
        "id": f"{freight.name}/FreightApproved/{stage}",
    }
    return Notice("FreightApproved", f"{freight.name}.{stage}", at, event, freight_resource(freight), words)


def _freight(freight: Freight, stage: str) -> dict[str, Json]:
    resource = freight_resource(freight)
    artifacts: dict[str, Json] = {
        name: resource[name] for name in ("commits", "images", "charts") if name in resource
    }
    return {
        "name": freight.name,
        "stageName": stage,
        "createTime": _time(freight.discovered_at),
        "alias": freight.alias,
        **artifacts,
    }


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
