"""The language of a pipeline: Kargo's resources as values, and our own ReviewPolicy.

Field names are Kargo's in snake case; what each means is Kargo's documentation. Durations are seconds.
Everything here has passed admission: the loader returns problems instead of half-valid objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from bot.domain.freight import FreightOrigin
from bot.domain.values import Json


@dataclass(frozen=True, slots=True)
class Source:
    """Where in the configuration something stands, for messages and annotations; `line` counts from 1."""

    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Metadata:
    """The part of a resource's metadata that has a meaning here; `namespace` is the project."""

    name: str
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    source: Source = field(default=Source(), compare=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """A named text that may hold expressions; `value` is None for a task's required input."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Retry:
    """How long a step may run and how many errors in a row end it; None means the step kind's default."""

    timeout: float | None = None
    error_threshold: int | None = None


@dataclass(frozen=True, slots=True)
class TaskReference:
    """The task that a step stands for."""

    name: str
    kind: str = "PromotionTask"


@dataclass(frozen=True, slots=True)
class Step:
    """One step as written; exactly one of `uses` and `task` is set. `alias` is empty if `as` is absent."""

    uses: str = ""
    task: TaskReference | None = None
    alias: str = ""
    condition: str = ""
    continue_on_error: bool = False
    retry: Retry = Retry()
    variables: tuple[Variable, ...] = ()
    config: Mapping[str, Json] = field(default_factory=dict)
    source: Source = field(default=Source(), compare=False)


# -- Warehouse ---------------------------------------------------------------------------------------------


class ImageSelectionStrategy(StrEnum):
    """How an image subscription orders tags."""

    SEMVER = "SemVer"
    LEXICAL = "Lexical"
    DIGEST = "Digest"
    NEWEST_BUILD = "NewestBuild"


class CommitSelectionStrategy(StrEnum):
    """How a git subscription chooses commits."""

    NEWEST_FROM_BRANCH = "NewestFromBranch"
    SEMVER = "SemVer"
    LEXICAL = "Lexical"
    NEWEST_TAG = "NewestTag"


@dataclass(frozen=True, slots=True)
class ImageSubscription:
    """A watched image repository."""

    repo_url: str
    name: str = ""
    strategy: ImageSelectionStrategy = ImageSelectionStrategy.SEMVER
    constraint: str = ""
    strict_semvers: bool = True
    allow_tags_regexes: tuple[str, ...] = ()
    ignore_tags_regexes: tuple[str, ...] = ()
    platform: str = ""
    discovery_limit: int = 20
    cache_by_tag: bool = False
    insecure_skip_tls_verify: bool = False


@dataclass(frozen=True, slots=True)
class GitSubscription:
    """A watched git repository."""

    repo_url: str
    name: str = ""
    strategy: CommitSelectionStrategy = CommitSelectionStrategy.NEWEST_FROM_BRANCH
    branch: str = ""
    semver_constraint: str = ""
    strict_semvers: bool = True
    allow_tags_regexes: tuple[str, ...] = ()
    ignore_tags_regexes: tuple[str, ...] = ()
    expression_filter: str = ""
    include_paths: tuple[str, ...] = ()
    exclude_paths: tuple[str, ...] = ()
    discovery_limit: int = 20
    since: datetime | None = None
    blobless: bool = False
    insecure_skip_tls_verify: bool = False


@dataclass(frozen=True, slots=True)
class ChartSubscription:
    """A watched Helm chart; `chart` is empty for OCI repositories."""

    repo_url: str
    chart: str = ""
    name: str = ""
    semver_constraint: str = ""
    discovery_limit: int = 20
    insecure_skip_tls_verify: bool = False


@dataclass(frozen=True, slots=True)
class GenericSubscription:
    """A subscription of a type that Kargo does not build in."""

    artifact_type: str
    name: str
    config: Mapping[str, Json] = field(default_factory=dict)
    discovery_limit: int = 20


Subscription = ImageSubscription | GitSubscription | ChartSubscription | GenericSubscription


@dataclass(frozen=True, slots=True)
class Warehouse:
    """What makes Freight: a set of subscriptions that is looked at every `interval` seconds."""

    metadata: Metadata
    subscriptions: tuple[Subscription, ...]
    interval: float = 300.0
    freight_creation_policy: str = "Automatic"
    freight_creation_criteria: str = ""
    shard: str = ""


# -- Stage -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FreightSources:
    """Where a Stage takes Freight of one origin from."""

    direct: bool = False
    stages: tuple[str, ...] = ()
    required_soak_time: float | None = None
    availability_strategy: str = "OneOf"
    selection_policy: str = "NewestFreight"


@dataclass(frozen=True, slots=True)
class FreightRequest:
    """One origin that a Stage asks for, and its sources."""

    origin: FreightOrigin
    sources: FreightSources


@dataclass(frozen=True, slots=True)
class PromotionTemplate:
    """Vars and steps that a Promotion of the Stage is made of."""

    steps: tuple[Step, ...]
    variables: tuple[Variable, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """Which analysis templates prove Freight in a Stage."""

    templates: tuple[tuple[str, str], ...] = ()
    """Pairs of kind and name."""
    arguments: tuple[Variable, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stage:
    """An environment; without a template (or without steps) it is a control-flow Stage."""

    metadata: Metadata
    requested_freight: tuple[FreightRequest, ...]
    variables: tuple[Variable, ...] = ()
    template: PromotionTemplate | None = None
    verification: Verification | None = None
    shard: str = ""

    @property
    def is_control_flow(self) -> bool:
        """Whether it has no Promotions and passes available Freight on at once."""
        return self.template is None or not self.template.steps

    @property
    def task_variables(self) -> tuple[Variable, ...]:
        """The `vars` of its Promotions: its own, then those of the template."""
        return (*self.variables, *(self.template.variables if self.template is not None else ()))


@dataclass(frozen=True, slots=True)
class PromotionTask:
    """Shared steps; `cluster` tells a ClusterPromotionTask."""

    metadata: Metadata
    steps: tuple[Step, ...]
    variables: tuple[Variable, ...] = ()
    cluster: bool = False


# -- Project and cluster configuration -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One `matchExpressions` entry: operator is In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selector:
    """Kargo's `stageSelector`: name pattern, labels and expressions, all of which must hold."""

    name: str = ""
    match_labels: Mapping[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelRequirement, ...] = ()


@dataclass(frozen=True, slots=True)
class PromotionPolicy:
    """Whether the Stages that it selects promote by themselves."""

    selector: Selector
    auto_promotion_enabled: bool = False
    rollback_on_promotion: tuple[str, ...] = ()
    rollback_on_verification: tuple[str, ...] = ("Failed",)
    auto_rollback: bool = False


@dataclass(frozen=True, slots=True)
class WebhookReceiver:
    """One registry or repository that may send events; `secret` names the Secret with its credential."""

    name: str
    vendor: str
    secret: str
    config: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeepLink:
    """A link shown beside a Stage or Freight."""

    title: str
    url: str
    description: str = ""
    condition: str = ""


@dataclass(frozen=True, slots=True)
class PromotionWindow:
    """When the Stages that it selects may, or may not, be promoted: an RFC 5545 rule with start and end."""

    name: str
    kind: str
    rrule: str
    dtstart: str
    dtend: str
    stage_selector: Selector = Selector()
    project_selector: Selector = Selector()


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """Policies of one project; `cluster` tells a ClusterConfig, whose fields mean the same for all projects."""

    metadata: Metadata
    promotion_policies: tuple[PromotionPolicy, ...] = ()
    webhook_receivers: tuple[WebhookReceiver, ...] = ()
    promotion_windows: tuple[PromotionWindow, ...] = ()
    freight_links: tuple[DeepLink, ...] = ()
    stage_links: tuple[DeepLink, ...] = ()
    cluster: bool = False
    git_author: tuple[str, str] = ("", "")
    """Name and e-mail of who commits, from ClusterConfig's `gitClient`; each is empty where it says nothing."""
    signing_key: str = ""
    """The Secret with the key that `gitClient` would sign with."""


@dataclass(frozen=True, slots=True)
class Document:
    """A resource that is kept as written: Secret, ConfigMap, AnalysisTemplate, Enterprise kinds."""

    api_version: str
    kind: str
    metadata: Metadata
    body: Mapping[str, Json]
