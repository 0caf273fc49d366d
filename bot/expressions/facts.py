"""What Kargo's functions answer from, as frozen values: one for each purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bot.domain.freight import Artifact, Chart, Freight, FreightStatus
from bot.domain.model import FreightRequest, Warehouse
from bot.domain.values import Json, Unknown, Value


@dataclass(frozen=True, slots=True)
class FreightFacts:
    """The Freight that is promoted, of all requested origins, and who could have made it."""

    requests: tuple[FreightRequest, ...] = ()
    warehouses: Mapping[str, Warehouse] = field(default_factory=dict)
    """The project's Warehouses by name."""
    freight: tuple[Freight, ...] = ()


@dataclass(frozen=True, slots=True)
class DiscoveredCommit:
    """A commit that a Warehouse found."""

    id: str
    branch: str = ""
    tag: str = ""
    subject: str = ""
    author: str = ""
    committer: str = ""
    creator_date: datetime | None = None


@dataclass(frozen=True, slots=True)
class DiscoveredImage:
    """An image that a Warehouse found."""

    tag: str
    digest: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class DiscoveredArtifacts:
    """What a Warehouse found: pairs of repository URL (or subscription name) and finds, newest first.

    A chart stands for all its versions: of each, name and version count.
    """

    commits: tuple[tuple[str, tuple[DiscoveredCommit, ...]], ...] = ()
    images: tuple[tuple[str, tuple[DiscoveredImage, ...]], ...] = ()
    charts: tuple[tuple[str, tuple[Chart, ...]], ...] = ()
    artifacts: tuple[tuple[str, tuple[Artifact, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class SecretData:
    """The content of a Secret; `generic` tells the credential type that `sharedSecret` may read."""

    data: Mapping[str, str]
    generic: bool = False


@dataclass(frozen=True, slots=True)
class DataFacts:
    """The project's and the shared Secrets and ConfigMaps, and metadata of Freight and Stages, by name."""

    secrets: Mapping[str, SecretData] = field(default_factory=dict)
    shared_secrets: Mapping[str, SecretData] = field(default_factory=dict)
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    shared_config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    freight: Mapping[str, FreightStatus] = field(default_factory=dict)
    """The status of every Freight of the project."""
    stage_metadata: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepMeta:
    """How a step of the Promotion went; in a preview status and times may be unknown."""

    alias: str
    status: str | Unknown
    continue_on_error: bool = False
    message: str = ""
    started_at: datetime | Unknown | None = None
    finished_at: datetime | Unknown | None = None
    error_count: int = 0


@dataclass(frozen=True, slots=True)
class StepFacts:
    """Where the evaluation stands: the step, and outputs and fates of those before it, by full alias.

    The output of a step that ran without one is None.
    """

    alias: str
    outputs: Mapping[str, Value] = field(default_factory=dict)
    metas: tuple[StepMeta, ...] = ()


@dataclass(frozen=True, slots=True)
class PromotionFacts:
    """One Promotion as its expressions see it; `target` is set for target Promotions only."""

    project: str
    stage: str
    promotion: str = ""
    actor: str = ""
    rollback: bool = False
    ui_base_url: str = ""
    freight_name: str = ""
    freight_alias: str = ""
    freight_origin: str = ""
    freight: FreightFacts = FreightFacts()
    data: DataFacts = DataFacts()
    target: Mapping[str, Json] | None = None
    now: datetime | Unknown | None = None
