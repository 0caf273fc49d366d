"""What `/explain` and `/status` say of a verification."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.promotion import State
from bot.domain.view import StageLine
from bot.reports.answers import render_explain, render_status
from tests.reports import views

WAITS = "waits for verification: 2 of 5 measurements, next at 2026-05-07 15:01:00 UTC"
FAILED = 'verification failed: metric "ok" assessed Failed due to failed (1) > failureLimit (0)'


@pytest.mark.parametrize(
    ("line", "says"),
    [
        pytest.param(
            StageLine("staging", views.NEW, here=True, state=WAITS),
            f"- ⏳ **Verification**: {WAITS}",
            id="waits",
        ),
        pytest.param(
            StageLine("staging", views.NEW, here=True, state=FAILED),
            "- ❌ **Verification**: verification failed",
            id="failed",
        ),
        pytest.param(
            StageLine("staging", views.NEW, verified=True, here=True),
            "- ✅ **Verification**: verified",
            id="verified",
        ),
        pytest.param(
            StageLine("staging", views.OLD, here=True, state=WAITS), "", id="the Stage has other Freight"
        ),
    ],
)
def test_a_promotion_that_succeeded_is_explained_with_its_verification(line: StageLine, says: str) -> None:
    view = replace(views.view(promotion=views.promotion(state=State.SUCCEEDED)), stages=(line,))
    told = render_explain(view)
    assert ("**Verification**" in told) is bool(says)
    assert says in told


def test_the_table_of_stages_tells_how_far_it_is() -> None:
    view = replace(views.view(), stages=(StageLine("dev", views.NEW, state=WAITS),))
    assert f"| {WAITS} |" in render_status(view)
