"""What a lost database is filled with, and where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bot.domain.audit import BEGINNING, AuditEntry, AuditHead
from bot.domain.files import CommitId
from bot.domain.freight import Freight, FreightStatus
from bot.domain.github import DeploymentId, DeploymentState, PullRequest, Repository
from bot.domain.promotion import Promotion
from bot.ports.store import AppliedState, StageRecord


@dataclass(frozen=True, slots=True)
class RestoredFreight:
    """Freight with where it is and was."""

    freight: Freight
    status: FreightStatus


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """Rows of a database: `audit` is the entry behind which its audit log goes on."""

    freight: tuple[RestoredFreight, ...] = ()
    promotions: tuple[Promotion, ...] = ()
    stages: tuple[StageRecord, ...] = ()
    applied: tuple[AppliedState, ...] = ()
    audit: AuditHead = BEGINNING

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        return not (self.freight or self.promotions or self.stages or self.applied)


class Restoring(Protocol):
    """A database that can be filled."""

    async def is_fresh(self) -> bool:
        """Whether it knows of no Freight, no Promotion and no Stage."""

    async def restore(self, rebuilt: Rebuilt, entry: AuditEntry) -> Rebuilt:
        """Add what is not known, and the entry if anything was; the answer is what was added.

        No row that is there is changed, and either everything is added or nothing.
        """


@dataclass(frozen=True, slots=True)
class ShownDeployment:
    """A deployment of a repository; `payload` is its `marker`, empty if it has none."""

    id: DeploymentId
    environment: str
    commit: CommitId
    payload: str


@dataclass(frozen=True, slots=True)
class DeploymentResult:
    """The newest status of a deployment that our App gave."""

    state: DeploymentState
    at: datetime


class History(Protocol):
    """What GitHub still shows of the past. Raises TransientError and TerminalError."""

    async def list_recent_pull_requests(self, repository: Repository, limit: int) -> Sequence[PullRequest]:
        """The newest so many, open and closed, without those of forks; `mergeable` is not known from a list."""

    async def list_deployments(self, repository: Repository, limit: int) -> Sequence[ShownDeployment]:
        """The newest so many that our App made, newest first."""

    async def find_deployment_result(
        self, repository: Repository, deployment: DeploymentId
    ) -> DeploymentResult | None:
        """What our App said last of a deployment."""
