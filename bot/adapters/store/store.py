"""The whole database as one object."""

from __future__ import annotations

from bot.adapters.store.analyses import Analyses
from bot.adapters.store.answers import Answers
from bot.adapters.store.audit import Audit
from bot.adapters.store.database import Database, bind_once, open_database
from bot.adapters.store.drifts import Drifts
from bot.adapters.store.measures import Measures
from bot.adapters.store.peoples_pulls import PeoplesPulls
from bot.adapters.store.plans import Plans
from bot.adapters.store.queues import Queues
from bot.adapters.store.records import Records
from bot.adapters.store.restoring import Restoring
from bot.adapters.store.retention import Retention
from bot.adapters.store.timeline import Timeline
from bot.ports import Vault


class DatabaseStore(
    Queues,
    Records,
    Timeline,
    Analyses,
    Answers,
    Drifts,
    Measures,
    PeoplesPulls,
    Retention,
    Plans,
    Audit,
    Restoring,
):
    """Our own tables on SQLite (one process) or PostgreSQL (several replicas)."""

    def __init__(self, database: Database, vault: Vault) -> None:
        Queues.__init__(self, database)
        Records.__init__(self, database, vault)
        Timeline.__init__(self, database)
        Analyses.__init__(self, database)
        Answers.__init__(self, database, vault)
        Drifts.__init__(self, database, vault)
        Measures.__init__(self, database)
        PeoplesPulls.__init__(self, database)
        Retention.__init__(self, database)
        Plans.__init__(self, database)
        Audit.__init__(self, database)
        Restoring.__init__(self, database)

    def close(self) -> None:
        """Close every connection."""
        self._database.close()


def open_store(url: str, vault: Vault) -> DatabaseStore:
    """Open (and on first use create) the store at a `sqlite:///` or `postgresql://` address.

    Raises TerminalError as `open_database` does, and if the database was written with another key than the vault's:
    replicas with different keys could neither open each other's plans nor agree on any digest.
    """
    database = open_database(url)
    try:
        bind_once(
            database,
            "vault",
            vault.digest(b"lockstep database"),
            "the key file is not the one that this database was written with; give every replica the same vault.key. "
            "If that key is lost, delete the row 'vault' from lockstep_meta: open promotions must then be made again",
        )
    except BaseException:
        database.close()
        raise
    return DatabaseStore(database, vault)
