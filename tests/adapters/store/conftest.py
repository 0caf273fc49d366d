"""Stores for the tests: everything that holds on SQLite holds on PostgreSQL as well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'lockstep.db'}"
    found: str = request.getfixturevalue("postgres_url")
    return found


@pytest.fixture
def store(url: str, tmp_path: Path) -> Iterator[DatabaseStore]:
    """A store on it."""
    opened = open_store(url, KeyFileVault(tmp_path / "vault.key"))
    yield opened
    opened.close()


@pytest.fixture
def twin(url: str, tmp_path: Path, store: DatabaseStore) -> Iterator[DatabaseStore]:
    """Another store on the same database, as another replica has it."""
    opened = open_store(url, KeyFileVault(tmp_path / "vault.key"))
    yield opened
    opened.close()
