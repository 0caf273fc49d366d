"""`lockstep audit`: reading the audit log, and holding it against itself and the markers on GitHub."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.domain.audit import Anchor, AuditBounds, AuditRow, verify_anchors, verify_chain
from bot.domain.marker import Marker
from bot.ports.timeline import AuditStore

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries are shown: since a time, and of one Stage (its project empty: of any project)."""

    since: datetime | None = None
    project: str = ""
    stage: str = ""

    def holds(self, row: AuditRow) -> bool:
        """Whether the entry is one of them."""
        entry = row.entry
        return (
            (self.since is None or entry.at >= self.since)
            and self.stage in ("", entry.stage)
            and self.project in ("", entry.project)
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What verifying found: how many entries, how many markers that agree, and every place that is broken."""

    entries: int
    bounds: AuditBounds
    anchors: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Auditor:
    """Reads the log. `list_markers` reads what GitHub holds against it."""

    store: AuditStore
    list_markers: Callable[[], Awaitable[Sequence[tuple[str, Marker]]]]

    async def read(self, wanted: Wanted) -> AsyncIterator[AuditRow]:
        """The entries that are wanted, oldest first."""
        async for row in self._rows():
            if wanted.holds(row):
                yield row

    async def verify(self) -> Verdict:
        """Hold the whole log against itself and GitHub; raises TransientError and TerminalError of the world."""
        # The markers first: an entry of which one speaks was written before it.
        markers = await self.list_markers()
        before = await self.store.get_audit_bounds()
        found = [row async for row in self._rows()]
        # While this is read, entries may be added at the end, and the oldest forgotten.
        after = await self.store.get_audit_bounds()
        bounds = AuditBounds(after.forgotten, before.newest)
        rows = [row for row in found if bounds.forgotten.number < row.number <= bounds.newest.number]
        anchors = [Anchor(where, marker.audit) for where, marker in markers if marker.audit is not None]
        agreed, differ = verify_anchors(anchors, {row.number: row.hash for row in rows}, bounds)
        return Verdict(len(rows), bounds, agreed, (*verify_chain(rows, bounds), *differ))

    async def _rows(self) -> AsyncIterator[AuditRow]:
        after = -1
        while True:
            page = await self.store.list_audit(after=after, limit=_PAGE)
            for row in page:
                yield row
            if len(page) < _PAGE:
                return
            after = page[-1].number
