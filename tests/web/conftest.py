"""Fixtures of the receivers' tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.web.receiver_bed import Bed, make_empty_store, open_copy


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a database that has nothing in its tables."""
    directory = tmp_path_factory.mktemp("store")
    make_empty_store(directory)
    return directory


@pytest.fixture
async def bed(tmp_path: Path, empty_store: Path) -> AsyncIterator[Bed]:
    """Receivers of every kind."""
    async with open_copy(tmp_path, empty_store) as opened:
        yield opened
