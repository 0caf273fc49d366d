from __future__ import annotations

import pytest

from bot.domain.freight import FreightName, FreightOrigin
from bot.domain.history import FreightCollection, next_collection, record_collection
from bot.domain.model import Retry
from bot.domain.problems import ConfigProblem, Severity, sort_problems
from bot.domain.promotion import State, StepStatus
from bot.domain.promotion_rules import error_threshold, final_phase, retry_timeout


@pytest.mark.parametrize(
    ("statuses", "state"),
    [
        ({}, State.SUCCEEDED),
        ({"a": StepStatus.SKIPPED, "b": StepStatus.SUCCEEDED}, State.SUCCEEDED),
        ({"a": StepStatus.FAILED, "b": StepStatus.ABORTED}, State.FAILED),
        ({"a": StepStatus.RUNNING}, State.ERRORED),
        ({"may-fail": StepStatus.ERRORED}, State.SUCCEEDED),
        ({"a": StepStatus.FAILED, "b": StepStatus.ERRORED}, State.ERRORED),
    ],
)
def test_the_worst_step_that_may_not_fail_decides(statuses: dict[str, StepStatus], state: State) -> None:
    steps = [("a", False), ("b", False), ("may-fail", True)]
    assert final_phase(steps, statuses) is state


def test_zero_is_a_timeout_but_no_threshold() -> None:
    assert retry_timeout(Retry(timeout=0.0), 300.0) == 0.0
    assert retry_timeout(Retry(), 300.0) == 300.0
    assert error_threshold(Retry(error_threshold=0), 3) == 3
    assert error_threshold(Retry(error_threshold=5), 3) == 5


def test_a_history_inherits_other_origins_and_is_cut() -> None:
    one, two = FreightOrigin("one"), FreightOrigin("two")
    history: tuple[FreightCollection, ...] = ()
    for number in range(12):
        history = record_collection(history, next_collection(history, one, FreightName(f"a{number}")))
    latest = next_collection(history, two, FreightName("b"))
    assert latest.items == {one: "a11", two: "b"}
    assert len(history) == 10
    assert history[0].items == {one: "a11"}


def test_problems_are_sorted_and_told_once() -> None:
    late = ConfigProblem("b.yaml", 1, "", "x")
    early = ConfigProblem("a.yaml", 9, "", "x", Severity.WARNING)
    assert sort_problems([late, early, late]) == (early, late)
