"""The tables of step configurations and the steps themselves know the same kinds."""

from __future__ import annotations

from bot.pipeline import STEP_SCHEMAS
from bot.steps import KINDS


def test_every_step_kind_has_a_schema_and_the_other_way_round() -> None:
    assert set(STEP_SCHEMAS) == set(KINDS)
