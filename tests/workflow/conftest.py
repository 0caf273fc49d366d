"""Fixtures over the world in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.pipelines import policy, task
from tests.workflow.life import QuickLoop
from tests.workflow.life_bed import Bed, Begin


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Begins the life of a Stage; its bot ends with the test."""
    loop, made = QuickLoop(), list[Bed]()

    def make(*steps: str, review: str = "") -> Bed:
        files = {"promote.yaml": task(steps)} if steps else {}
        made.append(Bed(loop, tmp_path, files | ({"review.yaml": policy(review)} if review else {})))
        return made[-1]

    yield make
    for bed in made:
        bed.bot.die()
    loop.close()
