"""The whole database as one object."""

from __future__ import annotations

from bot.adapters.store.database import Database, open_database
from bot.adapters.store.queues import Queues
from bot.adapters.store.records import Records
from bot.ports import Vault


class DatabaseStore(Queues, Records):
    """Our own tables on SQLite (one process) or PostgreSQL (several replicas)."""

    def __init__(self, database: Database, vault: Vault) -> None:
        Queues.__init__(self, database)
        Records.__init__(self, database, vault)

    def close(self) -> None:
        """Close every connection."""
        self._database.close()


def open_store(url: str, vault: Vault) -> DatabaseStore:
    """Open (and on first use create) the store at a `sqlite:///` or `postgresql://` address."""
    return DatabaseStore(open_database(url), vault)
