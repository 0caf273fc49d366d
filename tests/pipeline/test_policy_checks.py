"""What the schema cannot say of a ReviewPolicy."""

from __future__ import annotations

import pytest

from bot.domain.model import Variable
from bot.domain.review_policy import ReviewPolicy
from bot.pipeline.policy_checks import check_review_policy


@pytest.mark.parametrize(
    ("policy", "path", "message"),
    [
        pytest.param(
            ReviewPolicy(drift_schedule="61 * * * *"),
            ("spec", "drift", "schedule"),
            "no minute",
            id="a minute",
        ),
        pytest.param(
            ReviewPolicy(drift_schedule="0 0 31 2 *"),
            ("spec", "drift", "schedule"),
            "no month",
            id="no such day",
        ),
        pytest.param(
            ReviewPolicy(drift_correct=("aws_sg.a", "regex:(")),
            ("spec", "drift", "correct", 1),
            "the pattern cannot be understood",
            id="a pattern",
        ),
        pytest.param(
            ReviewPolicy(plan_env=(Variable("A", "${{ nonsense( }}"),)),
            ("spec", "planEnv", 0, "value"),
            "",
            id="an expression",
        ),
    ],
)
def test_what_cannot_be_understood_is_told_at_its_place(
    policy: ReviewPolicy, path: tuple[str | int, ...], message: str
) -> None:
    (finding,) = check_review_policy(policy)
    assert tuple(finding.path) == path
    assert message in finding.message


def test_a_policy_that_is_right_has_no_findings() -> None:
    policy = ReviewPolicy(drift_schedule="*/30 2-4 * * mon", drift_correct=("glob:aws_sg.*", "a.b"))
    assert [*check_review_policy(policy)] == []
