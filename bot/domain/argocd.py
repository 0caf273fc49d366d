"""Argo CD's Application, reduced to the fields that tell whether our revision runs and is well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bot.domain.values import Json

AUTHORIZED = "kargo.akuity.io/authorized-stage"
"""Kargo's annotation by which an Application's owner names the Stages that may change it."""


@dataclass(frozen=True, slots=True)
class ApplicationSource:
    """One source of an Application; `revision` is what Argo CD last compared with, empty if unknown."""

    repo_url: str
    path: str = ""
    chart: str = ""
    target_revision: str = ""
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """The running or last sync operation; `phase` is Argo CD's word. `infos` carries our promotion id."""

    phase: str
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    revisions: tuple[str, ...] = ()
    infos: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Application:
    """An Application as read just now; `sources` has one entry for a single-source Application."""

    name: str
    namespace: str
    project: str
    annotations: Mapping[str, str]
    sources: tuple[ApplicationSource, ...]
    sync_status: str
    health: str
    health_message: str = ""
    reconciled_at: datetime | None = None
    operation: Operation | None = None
    operation_pending: bool = False
    conditions: tuple[tuple[str, str], ...] = ()
    """Pairs of type and message."""
    unhealthy: tuple[str, ...] = ()
    auto_sync: bool = False
    auto_prune: bool = False
    url: str = ""
    raw_sources: tuple[Json, ...] = ()
