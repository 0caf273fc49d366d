"""What is told of what happened: the timeline for people, and the audit log that nobody can change unseen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bot.domain.audit import AuditBounds, AuditEntry, AuditHead, AuditRow
from bot.domain.retention import Horizon


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the timeline, shown to people: what happened, to which promotion, and why."""

    at: datetime
    project: str
    stage: str
    promotion: str
    kind: str
    message: str
    number: int = 0
    """Grows with every event; 0 before it is stored."""
    detail: str = ""
    """What the audit log says beside the message; the timeline does not keep it."""


class AuditStore(Protocol):
    """The audit log: entries are only ever added. Every event but waits and errors is an entry as well.

    So is what only the database sees for certain: another configuration in force, and each apply.
    """

    async def add_audit(self, entry: AuditEntry) -> None:
        """Add an entry behind the newest one."""

    async def find_audit_of(self, promotion: str) -> AuditHead | None:
        """The newest entry that speaks of a Promotion, None if there is none."""

    async def get_audit_bounds(self) -> AuditBounds:
        """The last entry that was forgotten, and the newest one."""

    async def list_audit(self, *, after: int = 0, limit: int = 1000) -> Sequence[AuditRow]:
        """Entries with a greater number than `after`, oldest first."""

    async def forget_audit(self, horizon: Horizon) -> int:
        """The oldest entries, whose last hash is kept; the newest one always stays."""
