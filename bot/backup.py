"""`lockstep backup`: what a backup holds, by the settings alone; it can be made while the bot runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bot.adapters.backup import Copied, write_backup
from bot.adapting import engine_database
from bot.ports import TerminalError
from bot.settings import Settings

KEY_FILES = ("vault.key", "github-app.json")
"""What opens the databases, and what the bot signs in at GitHub with."""


def run_backup(settings: Settings, target: Path, *, with_keys: bool) -> Sequence[Copied]:
    """Write the backup; raises TerminalError if it cannot be made."""
    if not settings.on_sqlite:
        raise TerminalError(
            "the database is PostgreSQL, which has a tool of its own: pg_dump --format=custom of the whole database "
            "(the tables lockstep_* and the schema dbos), and keep vault.key beside it"
        )
    database = Path(settings.database.removeprefix("sqlite:///"))
    # The engine's first: what it does not know yet is asked for again by what is in ours, and never the other way.
    engine = Path(engine_database(settings).removeprefix("sqlite:///"))
    databases = [path for path in (engine, database) if path.exists() or path == database]
    keys = [path for name in KEY_FILES if (path := settings.data / name).exists()] if with_keys else []
    return write_backup(target, databases, keys)
