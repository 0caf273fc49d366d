"""What holds for all tests: properties are judged by their answers, never by how fast a machine finds them."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.postgres import postgres as postgres
from tests.postgres import postgres_url as postgres_url

settings.register_profile("lockstep", deadline=None)
settings.load_profile("lockstep")

_LONGEST_FIRST = ("tests/crash", "tests/e2e", "tests/browser")
"""Folders whose files take minutes; begun last they would run alone while the other workers have nothing left."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files, which `--no-loadscope-reorder` keeps there."""

    def place(item: pytest.Item) -> int:
        found = (n for n, folder in enumerate(_LONGEST_FIRST) if item.nodeid.startswith(folder))
        return next(found, len(_LONGEST_FIRST))

    items.sort(key=place)
