"""The machine's clock as the port `Clock`."""

from __future__ import annotations

from datetime import UTC, datetime


class SystemClock:
    """The time of this machine, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)
