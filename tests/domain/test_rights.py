"""Who may give which command, as the policy says it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.review_policy import DEFAULT_COMMANDS, ReviewPolicy, right_to


@pytest.mark.parametrize(
    ("named", "command", "who"),
    [
        pytest.param({}, "apply", "approvers", id="a default of its own"),
        pytest.param({}, "hold", "write", id="without any it is write permission"),
        pytest.param({}, "unfreeze", "maintain", id="who may freeze may unfreeze"),
        pytest.param({"plan": "admin"}, "cancel", "admin", id="who may plan may cancel"),
        pytest.param(
            {"plan": "admin", "cancel": "approvers"}, "cancel", "approvers", id="unless it is named"
        ),
        pytest.param({"hold": "maintain"}, "resume", "maintain", id="who may hold may resume"),
        pytest.param({"resume": "admin"}, "hold", "write", id="and not the other way round"),
        pytest.param({"doctor": "admin"}, "doctor", "admin", id="the doctor, named"),
    ],
)
def test_who_may(named: dict[str, str], command: str, who: str) -> None:
    policy = replace(ReviewPolicy(), commands={**DEFAULT_COMMANDS, **named})
    assert right_to(policy, command) == who
