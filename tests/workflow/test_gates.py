"""Which holds and differences close a gate, and for whom."""

from __future__ import annotations

import pytest

from bot.domain.approvals import Tally
from bot.domain.auto_promotion import Hold
from bot.domain.github import PullNumber
from bot.domain.promotion import Following, Promotion
from bot.domain.review_policy import ReviewPolicy
from bot.ports import StageRecord
from bot.workflow.gates import gates_of, needed_approvals
from tests.domain import reviews as r

FOLLOWS = Following(PullNumber(7), r.NOW, r.NOW)
CHOSEN = Hold(r.ORIGIN, r.freight("b").name, "dev.00.bbbbbbb", r.NOW, "olivia promoted other Freight")
SAID = Hold(r.ORIGIN, r.freight().name, "dev.01.aaaaaaa", None, "olivia holds it")
DIFFERS = "dev differs from its Freight: values.yaml was changed"


def record(hold: Hold | None = None, differs: str = "") -> StageRecord:
    return StageRecord("shop", "dev", holds={r.ORIGIN: hold} if hold is not None else {}, differs=differs)


@pytest.mark.parametrize(
    ("promotion", "seen", "by_policy", "closed"),
    [
        (r.in_review(), record(CHOSEN), "", ["hold"]),
        (r.in_review(follows=FOLLOWS), record(CHOSEN), "", []),
        (r.in_review(follows=FOLLOWS), record(SAID), "", ["hold"]),
        (r.in_review(), record(differs=DIFFERS), "", []),
        (r.in_review(), record(differs=DIFFERS), "auto", ["hold"]),
        (r.in_review(actor="olivia"), record(differs=DIFFERS), "auto", []),
    ],
    ids=[
        "a person's choice holds what auto-promotion brings",
        "a person's choice does not hold what the Stage has",
        "a hold that was said holds everything",
        "people may merge what goes to a Stage that differs",
        "no policy merges what goes to a Stage that differs",
        "what a person asked for ends the difference",
    ],
)
def test_a_gate_is_closed(promotion: Promotion, seen: StageRecord, by_policy: str, closed: list[str]) -> None:
    gates = gates_of(promotion, r.preview(), Tally(1, 1, by_policy=by_policy), r.pull(), seen)
    assert [gate.name for gate in gates if not gate.open] == closed


def test_where_releases_are_not_reviewed_nobody_is_asked() -> None:
    assert needed_approvals(ReviewPolicy(review="None"), destroys=True, rollback=False) == (0, 0)
    assert needed_approvals(ReviewPolicy(), destroys=True, rollback=False) == (1, 2)
