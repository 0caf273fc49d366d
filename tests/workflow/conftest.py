"""Fixtures over the world in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workflow.life import QuickLoop
from tests.workflow.life_bed import Bed, Begin


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Begins the life of a Stage whose task has these steps; its bot ends with the test."""
    loop, made = QuickLoop(), list[Bed]()

    def make(*steps: str) -> Bed:
        made.append(Bed(loop, tmp_path, steps))
        return made[-1]

    yield make
    for bed in made:
        bed.bot.die()
    loop.close()
