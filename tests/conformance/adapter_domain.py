"""Areas 03 to 07 and 15: the rules of `bot.domain`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.domain import (
    auto_promotion,
    availability,
    history,
    identity,
    patterns,
    promotion_rules,
    tasks,
    urls,
)
from bot.domain.freight import (
    Artifact,
    Chart,
    Freight,
    FreightName,
    FreightOrigin,
    FreightStatus,
    GitCommit,
    Image,
    Verified,
)
from bot.domain.model import (
    FreightRequest,
    FreightSources,
    LabelRequirement,
    Metadata,
    ProjectConfig,
    PromotionPolicy,
    PromotionTask,
    Retry,
    Selector,
    Stage,
    Step,
    TaskReference,
    Variable,
)
from bot.domain.promotion import State
from tests.conformance.adapter_selection import parse_time

Case = dict[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _seconds(text: str) -> float:
    total, number = 0.0, ""
    for char in text:
        if char in "hms":
            total += float(number) * {"h": 3600, "m": 60, "s": 1}[char]
            number = ""
        else:
            number += char
    return total


# -- 03, 04 ----------- -----------------------------------------------------------------------------------------


def urls_(case: Case) -> str:
    normalize: dict[str, Callable[[str], str]] = {
        "git": urls.normalize_git_url,
        "image": urls.normalize_image_url,
        "chart": urls.normalize_chart_url,
        "sanitize": urls.sanitize_url,
    }
    return normalize[case["kind"]](case["input"])


def patterns_(case: Case) -> bool:
    compile_pattern = (
        patterns.compile_name_pattern if case["context"] == "name" else patterns.compile_path_pattern
    )
    return patterns.matches_any(case["patterns"], case["value"], compile_pattern)


def path_filters(case: Case) -> bool:
    return patterns.compile_path_filter(case["include"], case["exclude"])(case["changed"])


# -- 05 Freight ------------------------------------------------------------------------------------------------


def _origin(given: Case) -> FreightOrigin:
    return FreightOrigin(name=given["name"], kind=given.get("kind", "Warehouse"))


def _status(given: Case) -> FreightStatus:
    return FreightStatus(
        currently_in={key: parse_time(value["since"]) for key, value in given.get("currentlyIn", {}).items()},
        verified_in={
            key: Verified(parse_time(value["verifiedAt"]), _seconds(value.get("longestSoak", "0s")))
            for key, value in given.get("verifiedIn", {}).items()
        },
        approved_for={
            key: parse_time(value["approvedAt"]) for key, value in given.get("approvedFor", {}).items()
        },
    )


def _known(given: Case) -> availability.KnownFreight:
    discovered = given.get("discoveredAt") or given["metadata"].get("creationTimestamp")
    freight = Freight(
        name=FreightName(given["metadata"]["name"]),
        project=given["metadata"].get("namespace", "proj"),
        alias="",
        origin=_origin(given["origin"]),
        discovered_at=parse_time(discovered) if discovered else EPOCH,
    )
    return availability.KnownFreight(freight, _status(given.get("status", {})))


def _request(given: Case) -> FreightRequest:
    sources = given["sources"]
    soak = sources.get("requiredSoakTime")
    options = sources.get("autoPromotionOptions", {})
    return FreightRequest(
        _origin(given["origin"]),
        FreightSources(
            direct=sources.get("direct", False),
            stages=tuple(sources.get("stages", ())),
            required_soak_time=None if soak is None else _seconds(soak),
            availability_strategy=sources.get("availabilityStrategy") or "OneOf",
            selection_policy=options.get("selectionPolicy", "NewestFreight"),
        ),
    )


def _stage(given: Case) -> Stage:
    return Stage(
        Metadata(given["metadata"]["name"], given["metadata"].get("namespace", "proj")),
        tuple(_request(request) for request in given["spec"]["requestedFreight"]),
    )


def freight_availability(case: Case) -> bool:
    if case["stage"] is None or case["freight"] is None:
        return False
    stage, known = _stage(case["stage"]), _known(case["freight"])
    return availability.is_freight_available(stage, known, parse_time(case["now"]))


def available_freight(case: Case) -> list[str]:
    stage = _stage(case["stage"])
    # A configuration whose Stage names a missing Warehouse is refused when it is loaded.
    missing = [
        request for request in stage.requested_freight if request.origin.name not in case["warehouses"]
    ]
    if missing:
        raise ValueError(f"{missing[0].origin} does not exist")
    index = availability.index_freight(_known(given) for given in case["freight"])
    found = availability.available_freight(stage, index, parse_time(case["now"]))
    return [known.freight.name for known in found]


def freight_bookkeeping(case: Case) -> Case:
    now = parse_time(case["now"])
    status = _known(case["freight"]).status
    operations = {
        "enter": availability.enter_stage,
        "leave": availability.leave_stage,
        "verify": availability.verify_in_stage,
        "approve": availability.approve_for_stage,
    }
    for operation in case["ops"]:
        at = parse_time(operation["at"]) if "at" in operation else now
        status = operations[operation["op"]](status, operation["stage"], at)
    return {
        "current": sorted(status.currently_in),
        "approved": {key: _text(value) for key, value in status.approved_for.items()},
        "verified": {
            key: {
                "verified_at": _text(value.verified_at),
                "longest_completed_soak_seconds": value.longest_soak or None,
            }
            for key, value in status.verified_in.items()
        },
        "longest_soak_seconds": {
            stage: availability.longest_soak(status, stage, now) for stage in case["soak_of"]
        },
    }


def _text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def freight_collection(case: Case) -> Case:
    collection = history.FreightCollection()
    for reference in case["push"]:
        collection = collection.put(_origin(reference["origin"]), FreightName(reference["name"]))
    return {"id": collection.id, "items": {str(origin): name for origin, name in collection.items.items()}}


def freight_history(case: Case) -> list[str]:
    origin = FreightOrigin("w")
    recorded: tuple[history.FreightCollection, ...] = ()
    for name in case["record"]:
        recorded = history.record_collection(recorded, history.next_collection(recorded, origin, name))
    return [collection.items[origin] for collection in recorded]


# -- 06 auto-promotion -----------------------------------------------------------------------------------------


def _policy(given: Case) -> PromotionPolicy:
    selector = given.get("stageSelector")
    if selector is None:
        selector = {"name": given.get("stage", "")}
    return PromotionPolicy(
        Selector(
            name=selector.get("name", ""),
            match_labels=selector.get("matchLabels", {}),
            match_expressions=tuple(
                LabelRequirement(item["key"], item["operator"], tuple(item.get("values", ())))
                for item in selector.get("matchExpressions", ())
            ),
        ),
        auto_promotion_enabled=given.get("autoPromotionEnabled", False),
    )


def auto_promotion_policy(case: Case) -> bool:
    policies = case["policies"]
    config = None
    if policies is not None:
        config = ProjectConfig(Metadata("proj", "proj"), tuple(_policy(policy) for policy in policies))
    stage = case["stage"]
    return auto_promotion.is_auto_promotion_enabled(config, stage["name"], stage["labels"])


def auto_promotion_candidates(case: Case) -> dict[str, str]:
    available = [_known(given) for given in case["available"]]
    chosen = auto_promotion.select_candidates(_stage(case["stage"]), available)
    return {str(origin): freight.name for origin, freight in chosen.items()}


# -- 07 promotions ---------------------------------------------------------------------------------------------


def _variables(given: list[Case]) -> tuple[Variable, ...]:
    return tuple(Variable(item["name"], item.get("value")) for item in given)


def _step(given: Case) -> Step:
    task = given.get("task")
    retry = given.get("retry", {})
    return Step(
        uses=given.get("uses", ""),
        task=TaskReference(task["name"], task.get("kind", "PromotionTask")) if task else None,
        alias=given.get("as", ""),
        condition=given.get("if", ""),
        continue_on_error=given.get("continueOnError", False),
        retry=Retry(
            _seconds(retry["timeout"]) if "timeout" in retry else None,
            retry.get("errorThreshold"),
        ),
        variables=_variables(given.get("vars", [])),
        config=given.get("config", {}),
    )


def _go_duration(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    minutes, left = divmod(rest, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{left}s"


def _step_as_stored(step: Step) -> Case:
    stored: Case = {"uses": step.uses, "as": step.alias}
    if step.condition:
        stored["if"] = step.condition
    if step.continue_on_error:
        stored["continueOnError"] = True
    if step.retry != Retry():
        stored["retry"] = {}
        if step.retry.timeout is not None:
            stored["retry"]["timeout"] = _go_duration(step.retry.timeout)
        if step.retry.error_threshold is not None:
            stored["retry"]["errorThreshold"] = step.retry.error_threshold
    if step.variables:
        stored["vars"] = [{"name": item.name, "value": item.value or ""} for item in step.variables]
    if step.config:
        stored["config"] = dict(step.config)
    return stored


def _tasks(given: list[Case]) -> dict[str, PromotionTask]:
    return {
        task["metadata"]["name"]: PromotionTask(
            Metadata(task["metadata"]["name"], "proj"),
            tuple(_step(step) for step in task["spec"]["steps"]),
            _variables(task["spec"].get("vars", [])),
        )
        for task in given
    }


def task_inflation(case: Case) -> list[Case]:
    steps = tasks.inflate_steps(
        [_step(step) for step in case["steps"]],
        _tasks(case["tasks"]),
        _tasks(case["cluster_tasks"]),
        _variables(case["vars"]),
    )
    return [_step_as_stored(step) for step in steps]


@dataclass(frozen=True)
class _Queued:
    id: str
    state: State


_STATES = {
    "": State.QUEUED,
    "Pending": State.QUEUED,
    "Running": State.FULFILLING,
    "Succeeded": State.SUCCEEDED,
    "Failed": State.FAILED,
    "Errored": State.ERRORED,
    "Aborted": State.ABORTED,
}


def promotion_order(case: Case) -> list[str]:
    queue = [_Queued(item["name"], _STATES[item["phase"]]) for item in case["promotions"]]
    return [item.id for item in promotion_rules.order_promotions(queue)]


def promotion_name(case: Case) -> str:
    moment = datetime(2024, 6, 1, tzinfo=UTC) + timedelta(seconds=1)
    ulid = identity.ulid(moment, bytes(10))
    return identity.promotion_name(case["stage"], ulid, case["freight"]).replace(ulid, "{ulid}")


# -- 15 identity -----------------------------------------------------------------------------------------------


def freight_hash(case: Case) -> str:
    freight = case["freight"]
    return identity.freight_name(
        _origin(freight["origin"]),
        commits=[
            GitCommit(
                item["repoURL"],
                item["id"],
                tag=item.get("tag", ""),
                subscription_name=item.get("subscriptionName", ""),
            )
            for item in freight.get("commits", ())
        ],
        images=[
            Image(
                item["repoURL"],
                item.get("tag", ""),
                item.get("digest", ""),
                subscription_name=item.get("subscriptionName", ""),
            )
            for item in freight.get("images", ())
        ],
        charts=[
            Chart(
                item["repoURL"],
                item.get("name", ""),
                item["version"],
                subscription_name=item.get("subscriptionName", ""),
            )
            for item in freight.get("charts", ())
        ],
        artifacts=[
            Artifact(item["artifactType"], item["subscriptionName"], item["version"])
            for item in freight.get("artifacts", ())
        ],
    )


AREAS: dict[str, Callable[[Case], Any]] = {
    "urls": urls_,
    "patterns": patterns_,
}
"""Areas whose name is that of a module used here; all others are functions of their own name."""
