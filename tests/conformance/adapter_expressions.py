"""Areas 01, 02 and 10 (evaluator): the rules of `bot.expressions`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

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
    ChartSubscription,
    FreightRequest,
    FreightSources,
    GenericSubscription,
    GitSubscription,
    ImageSubscription,
    Metadata,
    Subscription,
    Variable,
    Warehouse,
)
from bot.domain.values import Json, reveal
from bot.expressions.evaluator import compile_expression
from bot.expressions.facts import (
    DataFacts,
    DiscoveredArtifacts,
    DiscoveredCommit,
    DiscoveredImage,
    FreightFacts,
    PromotionFacts,
    SecretData,
    StepFacts,
    StepMeta,
)
from bot.expressions.functions import TEMPLATE_FUNCTIONS, status_functions
from bot.expressions.scopes import (
    StepExpressions,
    base_functions,
    decide_run,
    evaluate_config,
    evaluate_variables,
    warehouse_scope,
)
from bot.expressions.templates import Scope, evaluate_template

Case = dict[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PROJECT = "proj"
SHARED = "shared"
CREDENTIAL_TYPE = "kargo.akuity.io/cred-type"

DECISIONS: dict[str, str] = {}
"""Cases that are answered differently by decision, with the reason."""

OURS: dict[str, Json] = {}


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


# -- 01 ----------------------------------------------------------------------------------------------------


def expressions(case: Case) -> Json:
    scope = Scope(case.get("env", {}), TEMPLATE_FUNCTIONS, datetime.now(UTC))
    template = case["template"] if "raw_json" not in case else json.loads(case["raw_json"])
    return reveal(evaluate_template(template, scope))


# -- 02 ----------------------------------------------------------------------------------------------------


def functions(case: Case) -> Json:
    expression = compile_expression(case["expression"])
    if "discovered" in case:
        scope = warehouse_scope(_discovered(case["discovered"]))
        return reveal(expression.evaluate(scope.names, scope.functions))
    promotion = PromotionFacts(PROJECT, "stage", freight=_freight_facts(case), data=_data_facts(case))
    metas = tuple(_meta(item) for item in case.get("steps", []))
    called = base_functions(promotion) | status_functions(case.get("current_alias", ""), metas)
    return reveal(expression.evaluate({}, called))


def _freight_facts(case: Case) -> FreightFacts:
    warehouses = [_warehouse(item) for item in case.get("warehouses", [])]
    return FreightFacts(
        tuple(FreightRequest(_origin(item["origin"]), FreightSources()) for item in case.get("requests", [])),
        {warehouse.metadata.name: warehouse for warehouse in warehouses},
        tuple(_freight(item) for item in case.get("freight", [])),
    )


def _origin(item: Case) -> FreightOrigin:
    return FreightOrigin(item["name"], item["kind"])


def _warehouse(item: Case) -> Warehouse:
    found = [_subscription(entry) for entry in item["spec"]["subscriptions"]]
    return Warehouse(Metadata(item["metadata"]["name"], PROJECT), tuple(found))


def _subscription(entry: Case) -> Subscription:
    if "git" in entry:
        return GitSubscription(entry["git"]["repoURL"])
    if "image" in entry:
        return ImageSubscription(entry["image"]["repoURL"])
    if "chart" in entry:
        return ChartSubscription(entry["chart"]["repoURL"], entry["chart"].get("name", ""))
    kind = next(key for key in entry if key != "name")
    return GenericSubscription(kind, entry["name"], entry[kind].get("config", {}))


def _freight(item: Case) -> Freight:
    return Freight(
        FreightName(item["name"]),
        PROJECT,
        item.get("alias", ""),
        _origin(item["origin"]),
        EPOCH,
        tuple(
            GitCommit(
                commit["repoURL"],
                commit["id"],
                *(commit.get(key, "") for key in ("branch", "tag", "message", "author", "committer")),
            )
            for commit in item.get("commits", [])
        ),
        tuple(
            Image(
                image["repoURL"], image.get("tag", ""), image.get("digest", ""), image.get("annotations", {})
            )
            for image in item.get("images", [])
        ),
        tuple(
            Chart(chart["repoURL"], chart.get("name", ""), chart["version"])
            for chart in item.get("charts", [])
        ),
        tuple(_artifact(artifact) for artifact in item.get("artifacts", [])),
    )


def _artifact(item: Case) -> Artifact:
    return Artifact(item["artifactType"], item["subscriptionName"], item["version"], item.get("metadata"))


def _discovered(found: Case | None) -> DiscoveredArtifacts | None:
    if found is None:
        return None
    return DiscoveredArtifacts(
        tuple((repo["repoURL"], tuple(map(_commit, repo["commits"]))) for repo in found.get("git", [])),
        tuple((repo["repoURL"], tuple(map(_image, repo["references"]))) for repo in found.get("images", [])),
        tuple(
            (
                repo["repoURL"],
                tuple(Chart(repo["repoURL"], repo.get("name", ""), version) for version in repo["versions"]),
            )
            for repo in found.get("charts", [])
        ),
        tuple(
            (item["name"], tuple(map(_artifact, item["artifactReferences"])))
            for item in found.get("results", [])
        ),
    )


def _commit(item: Case) -> DiscoveredCommit:
    return DiscoveredCommit(
        id=item["id"],
        branch=item.get("branch", ""),
        tag=item.get("tag", ""),
        subject=item.get("subject", ""),
        author=item.get("author", ""),
        committer=item.get("committer", ""),
        creator_date=_time(item["creatorDate"]) if "creatorDate" in item else None,
    )


def _image(item: Case) -> DiscoveredImage:
    return DiscoveredImage(
        item["tag"],
        item.get("digest", ""),
        item.get("annotations", {}),
        _time(item["createdAt"]) if "createdAt" in item else None,
    )


def _data_facts(case: Case) -> DataFacts:
    return DataFacts(
        {_name(item): _secret(item) for item in _in(case.get("secrets", []), PROJECT)},
        {_name(item): _secret(item) for item in _in(case.get("secrets", []), SHARED)},
        {_name(item): item.get("data", {}) for item in _in(case.get("config_maps", []), PROJECT)},
        {_name(item): item.get("data", {}) for item in _in(case.get("config_maps", []), SHARED)},
        {_name(item): _status(item.get("status", {})) for item in case.get("freight_objects", [])},
        {_name(item): item.get("status", {}).get("metadata", {}) for item in case.get("stages", [])},
    )


def _name(item: Case) -> str:
    name = item["metadata"]["name"]
    assert isinstance(name, str)
    return name


def _in(items: list[Case], namespace: str) -> list[Case]:
    return [item for item in items if item["metadata"].get("namespace", PROJECT) == namespace]


def _secret(item: Case) -> SecretData:
    labels = item["metadata"].get("labels", {})
    return SecretData(item.get("stringData", {}), labels.get(CREDENTIAL_TYPE) == "generic")


def _status(item: Case) -> FreightStatus:
    return FreightStatus(
        {stage: _time(entry["since"]) for stage, entry in item.get("currentlyIn", {}).items()},
        {stage: Verified(_time(entry["verifiedAt"])) for stage, entry in item.get("verifiedIn", {}).items()},
        {stage: _time(entry["approvedAt"]) for stage, entry in item.get("approvedFor", {}).items()},
        item.get("metadata", {}),
    )


def _meta(item: Case) -> StepMeta:
    return StepMeta(item["alias"], item["status"], item.get("continueOnError", False))


# -- 10 ----------------------------------------------------------------------------------------------------


def evaluator(case: Case) -> Json:
    promotion, step = _promotion(case), case["step"]
    facts = StepFacts(
        step.get("as", ""),
        case.get("outputs", {}),
        tuple(_meta(item) for item in case.get("step_statuses", [])),
    )
    texts = StepExpressions(
        _variables(case.get("promotion_vars", [])),
        _variables(step.get("vars", [])),
        step.get("if", ""),
        step.get("config", {}),
    )
    match case["what"]:
        case "vars":
            return reveal(dict(evaluate_variables(promotion, facts, texts)))
        case "skip":
            runs = decide_run(promotion, facts, texts)
            assert isinstance(runs, bool)
            return not runs
        case "config" if "config" not in step:
            return None
        case "config":
            return reveal(dict(evaluate_config(promotion, facts, texts)))
        case what:
            raise AssertionError(f"unknown kind of case {what}")


def _promotion(case: Case) -> PromotionFacts:
    context = case.get("context", {})
    return PromotionFacts(
        project=context.get("project", PROJECT),
        stage=context.get("stage", ""),
        promotion=context.get("promotion", ""),
        actor=context.get("actor", ""),
        rollback=context.get("rollback", False),
        ui_base_url=context.get("ui_base_url", ""),
        freight_name=context.get("freight_name", ""),
        freight_alias=context.get("freight_alias", ""),
        freight_origin=context.get("freight_origin", ""),
        freight=_freight_facts(case),
        data=_data_facts(case),
        target=case.get("target"),
    )


def _variables(items: list[Case]) -> tuple[Variable, ...]:
    return tuple(Variable(item["name"], item.get("value", "")) for item in items)
