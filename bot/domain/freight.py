"""Freight: one immutable set of artifact versions that moves through the Stages together.

Fields and names are those of Kargo's `Freight` resource. How Freight is named, chosen and found available stands in
`identity`, `selection` and `availability`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NewType

from bot.domain.values import Json

FreightName = NewType("FreightName", str)
"""Forty hex digits: Kargo's hash over origin and artifacts."""


@dataclass(frozen=True, slots=True, order=True)
class FreightOrigin:
    """Where Freight comes from; only Warehouses make Freight."""

    name: str
    kind: str = "Warehouse"

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class GitCommit:
    """One commit of a git subscription."""

    repo_url: str
    id: str
    branch: str = ""
    tag: str = ""
    message: str = ""
    author: str = ""
    committer: str = ""
    subscription_name: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """One container image; `digest` is that of the index where the tag is one."""

    repo_url: str
    tag: str = ""
    digest: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    subscription_name: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """One Helm chart; `name` is empty for OCI repositories."""

    repo_url: str
    name: str
    version: str
    subscription_name: str = ""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One artifact of a generic subscription."""

    artifact_type: str
    subscription_name: str
    version: str
    metadata: Json = None


@dataclass(frozen=True, slots=True)
class Freight:
    """What is promoted; immutable but for its alias and status."""

    name: FreightName
    project: str
    alias: str
    origin: FreightOrigin
    discovered_at: datetime
    commits: tuple[GitCommit, ...] = ()
    images: tuple[Image, ...] = ()
    charts: tuple[Chart, ...] = ()
    artifacts: tuple[Artifact, ...] = ()

    @property
    def label(self) -> str:
        """What people read: its alias, or the first digits of its name where it has none."""
        return self.alias or self.name[:7]


@dataclass(frozen=True, slots=True)
class Verified:
    """That Freight was verified in a Stage; `longest_soak` is in seconds, of finished stays only."""

    verified_at: datetime
    longest_soak: float = 0.0


@dataclass(frozen=True, slots=True)
class FreightStatus:
    """Where one piece of Freight is, was verified, and was approved for; keys are Stage names."""

    currently_in: Mapping[str, datetime] = field(default_factory=dict)
    verified_in: Mapping[str, Verified] = field(default_factory=dict)
    approved_for: Mapping[str, datetime] = field(default_factory=dict)
    metadata: Mapping[str, Json] = field(default_factory=dict)
