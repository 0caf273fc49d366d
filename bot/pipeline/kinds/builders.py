"""From checked mappings to the model: what has passed admission becomes a Stage, a Warehouse, a policy."""

from __future__ import annotations

from collections.abc import Callable

from bot.domain.freight import FreightOrigin
from bot.domain.model import (
    ChartSubscription,
    CommitSelectionStrategy,
    DeepLink,
    FreightRequest,
    FreightSources,
    GenericSubscription,
    GitSubscription,
    ImageSelectionStrategy,
    ImageSubscription,
    Metadata,
    ProjectConfig,
    PromotionPolicy,
    PromotionTask,
    PromotionTemplate,
    PromotionWindow,
    Retry,
    Selector,
    Source,
    Stage,
    Step,
    Subscription,
    TaskReference,
    Verification,
    Warehouse,
    WebhookReceiver,
)
from bot.domain.values import Json
from bot.pipeline.access import (
    bool_at,
    int_at,
    mapping_at,
    mappings_at,
    seconds_at,
    text_at,
    texts_at,
    variables_at,
)
from bot.pipeline.kinds.admission import parse_time
from bot.pipeline.kinds.selectors import build_selector
from bot.pipeline.kinds.tables import RECEIVER_VENDORS
from bot.pipeline.reader import Path

Locate = Callable[[Path], Source]
"""Where a key path of the document that is being built stands."""
_DEFAULT_LIMIT = 20


def build_steps(value: Json, path: Path, locate: Locate) -> tuple[Step, ...]:
    """The steps of a list that stands at a path."""
    return tuple(
        _step(step, locate((*path, index)))
        for index, step in enumerate(mappings_at({"steps": value}, "steps"))
    )


def _step(given: dict[str, Json], source: Source) -> Step:
    task = mapping_at(given, "task")
    retry = mapping_at(given, "retry")
    return Step(
        uses=text_at(given, "uses"),
        task=TaskReference(text_at(task, "name"), text_at(task, "kind", "PromotionTask")) if task else None,
        # Kargo compares aliases without outer whitespace; they are kept that way, so that both agree.
        alias=text_at(given, "as").strip(),
        condition=text_at(given, "if"),
        continue_on_error=bool_at(given, "continueOnError"),
        retry=Retry(
            timeout=seconds_at(retry, "timeout", 0.0) if "timeout" in retry else None,
            error_threshold=int_at(retry, "errorThreshold", 0) if "errorThreshold" in retry else None,
        ),
        variables=variables_at(given, "vars"),
        config=mapping_at(given, "config"),
        source=source,
    )


def build_stage(metadata: Metadata, spec: dict[str, Json], locate: Locate) -> Stage:
    """The Stage that a checked `spec` describes."""
    template = None
    if "promotionTemplate" in spec:
        body = mapping_at(spec, "promotionTemplate", "spec")
        path: Path = ("spec", "promotionTemplate", "spec", "steps")
        template = PromotionTemplate(build_steps(body.get("steps"), path, locate), variables_at(body, "vars"))
    return Stage(
        metadata=metadata,
        requested_freight=tuple(_request(request) for request in mappings_at(spec, "requestedFreight")),
        variables=variables_at(spec, "vars"),
        template=template,
        verification=_verification(mapping_at(spec, "verification")) if "verification" in spec else None,
        shard=text_at(spec, "shard"),
    )


def _request(given: dict[str, Json]) -> FreightRequest:
    origin, sources = mapping_at(given, "origin"), mapping_at(given, "sources")
    return FreightRequest(
        FreightOrigin(name=text_at(origin, "name"), kind=text_at(origin, "kind", "Warehouse")),
        FreightSources(
            direct=bool_at(sources, "direct"),
            stages=texts_at(sources, "stages"),
            required_soak_time=(
                seconds_at(sources, "requiredSoakTime", 0.0) if "requiredSoakTime" in sources else None
            ),
            availability_strategy=text_at(sources, "availabilityStrategy") or "OneOf",
            selection_policy=text_at(
                mapping_at(sources, "autoPromotionOptions"), "selectionPolicy", "NewestFreight"
            ),
        ),
    )


def _verification(given: dict[str, Json]) -> Verification:
    metadata = mapping_at(given, "analysisRunMetadata")
    return Verification(
        templates=tuple(
            (text_at(item, "kind", "AnalysisTemplate"), text_at(item, "name"))
            for item in mappings_at(given, "analysisTemplates")
        ),
        arguments=variables_at(given, "args"),
        labels=_strings(mapping_at(metadata, "labels")),
        annotations=_strings(mapping_at(metadata, "annotations")),
    )


def _strings(given: dict[str, Json]) -> dict[str, str]:
    return {key: value for key, value in given.items() if isinstance(value, str)}


def build_task(metadata: Metadata, spec: dict[str, Json], locate: Locate, *, cluster: bool) -> PromotionTask:
    """The task that a checked `spec` describes."""
    steps = build_steps(spec.get("steps"), ("spec", "steps"), locate)
    return PromotionTask(metadata, steps, variables_at(spec, "vars"), cluster)


# -- Warehouse -------------------------------------------------------------------------------------------------


def build_warehouse(metadata: Metadata, spec: dict[str, Json]) -> Warehouse:
    """The Warehouse that a checked `spec` describes."""
    return Warehouse(
        metadata=metadata,
        subscriptions=tuple(_subscription(item) for item in mappings_at(spec, "subscriptions")),
        interval=seconds_at(spec, "interval", 300.0),
        freight_creation_policy=text_at(spec, "freightCreationPolicy", "Automatic"),
        freight_creation_criteria=text_at(mapping_at(spec, "freightCreationCriteria"), "expression"),
        shard=text_at(spec, "shard"),
    )


def _subscription(given: dict[str, Json]) -> Subscription:
    name = text_at(given, "name")
    kind = next(key for key in given if key != "name")
    body = mapping_at(given, kind)
    match kind:
        case "image":
            return _image(body, name)
        case "git":
            return _git(body, name)
        case "chart":
            return ChartSubscription(
                repo_url=text_at(body, "repoURL"),
                chart=text_at(body, "name"),
                name=name,
                semver_constraint=text_at(body, "semverConstraint"),
                discovery_limit=_limit(body),
                insecure_skip_tls_verify=bool_at(body, "insecureSkipTLSVerify"),
            )
        case _:
            return GenericSubscription(kind, name, mapping_at(body, "config"), _limit(body))


def _limit(body: dict[str, Json]) -> int:
    # Zero means the default, as for a field that Go cannot tell from an absent one.
    return int_at(body, "discoveryLimit", _DEFAULT_LIMIT) or _DEFAULT_LIMIT


def _image(body: dict[str, Json], name: str) -> ImageSubscription:
    return ImageSubscription(
        repo_url=text_at(body, "repoURL"),
        name=name,
        strategy=ImageSelectionStrategy(text_at(body, "imageSelectionStrategy") or "SemVer"),
        constraint=text_at(body, "constraint"),
        strict_semvers=bool_at(body, "strictSemvers", default=True),
        allow_tags_regexes=texts_at(body, "allowTagsRegexes"),
        ignore_tags_regexes=texts_at(body, "ignoreTagsRegexes"),
        platform=text_at(body, "platform"),
        discovery_limit=_limit(body),
        cache_by_tag=bool_at(body, "cacheByTag"),
        insecure_skip_tls_verify=bool_at(body, "insecureSkipTLSVerify"),
    )


def _git(body: dict[str, Json], name: str) -> GitSubscription:
    since = text_at(body, "since")
    return GitSubscription(
        repo_url=text_at(body, "repoURL"),
        name=name,
        strategy=CommitSelectionStrategy(text_at(body, "commitSelectionStrategy") or "NewestFromBranch"),
        branch=text_at(body, "branch"),
        semver_constraint=text_at(body, "semverConstraint"),
        strict_semvers=bool_at(body, "strictSemvers", default=True),
        allow_tags_regexes=texts_at(body, "allowTagsRegexes"),
        ignore_tags_regexes=texts_at(body, "ignoreTagsRegexes"),
        expression_filter=text_at(body, "expressionFilter"),
        include_paths=texts_at(body, "includePaths"),
        exclude_paths=texts_at(body, "excludePaths"),
        discovery_limit=_limit(body),
        since=parse_time(since) if since else None,
        blobless=bool_at(body, "blobless"),
        insecure_skip_tls_verify=bool_at(body, "insecureSkipTLSVerify"),
    )


# -- Project and cluster configuration -----------------------------------------------------------------------------


def build_project_config(metadata: Metadata, spec: dict[str, Json], *, cluster: bool) -> ProjectConfig:
    """The configuration that a checked `spec` describes."""
    client = mapping_at(spec, "gitClient")
    return ProjectConfig(
        metadata=metadata,
        promotion_policies=build_policies(spec),
        webhook_receivers=tuple(_receiver(item) for item in mappings_at(spec, "webhookReceivers")),
        promotion_windows=tuple(_window(item) for item in mappings_at(spec, "promotionWindows")),
        freight_links=tuple(_link(item) for item in mappings_at(spec, "freightLinks")),
        stage_links=tuple(_link(item) for item in mappings_at(spec, "stageLinks")),
        cluster=cluster,
        git_author=(text_at(client, "name"), text_at(client, "email")),
        signing_key=text_at(mapping_at(client, "signingKeySecret"), "name"),
    )


def build_policies(spec: dict[str, Json]) -> tuple[PromotionPolicy, ...]:
    """The promotion policies of a checked `spec`; the deprecated `stage` is a selector by exact name."""
    return tuple(_policy(item) for item in mappings_at(spec, "promotionPolicies"))


def _policy(given: dict[str, Json]) -> PromotionPolicy:
    rollback = mapping_at(given, "autoRollback")
    selector = (
        build_selector(mapping_at(given, "stageSelector"))
        if "stageSelector" in given
        else Selector(name=text_at(given, "stage"))
    )
    return PromotionPolicy(
        selector=selector,
        auto_promotion_enabled=bool_at(given, "autoPromotionEnabled"),
        rollback_on_promotion=texts_at(rollback, "onPromotion"),
        rollback_on_verification=(
            texts_at(rollback, "onVerification") if "onVerification" in rollback else ("Failed",)
        ),
        auto_rollback="autoRollback" in given,
    )


def _receiver(given: dict[str, Json]) -> WebhookReceiver:
    vendor = next(vendor for vendor in RECEIVER_VENDORS if vendor in given)
    body = mapping_at(given, vendor)
    rest = {key: value for key, value in body.items() if key != "secretRef"}
    return WebhookReceiver(
        text_at(given, "name"), vendor, text_at(mapping_at(body, "secretRef"), "name"), rest
    )


def _window(given: dict[str, Json]) -> PromotionWindow:
    return PromotionWindow(
        name=text_at(given, "name"),
        kind=text_at(given, "kind"),
        rrule=text_at(given, "rrule"),
        dtstart=text_at(given, "dtstart"),
        dtend=text_at(given, "dtend"),
        stage_selector=build_selector(mapping_at(given, "stageSelector")),
        project_selector=build_selector(mapping_at(given, "projectSelector")),
    )


def _link(given: dict[str, Json]) -> DeepLink:
    return DeepLink(
        text_at(given, "title"), text_at(given, "url"), text_at(given, "description"), text_at(given, "if")
    )
