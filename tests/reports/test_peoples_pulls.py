"""What a person's own pull request shows: when its checks are green, red or wait, and what the comment holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.approvals import Tally
from bot.domain.github import Conclusion, PullNumber
from bot.domain.promotion import Following, State
from bot.domain.review import Preview, Problem
from bot.reports.answers import render_explain
from bot.reports.body import render_body
from bot.reports.fitting import COMMENT_LIMIT
from bot.reports.markdown import size
from bot.reports.peoples_pulls import (
    PlannedLine,
    PullView,
    render_own_check,
    render_own_comment,
    render_own_plan_check,
)
from bot.reports.states import state_words
from tests.reports.views import HEAD, NOW, preview, promotion, view

APPROVED, ASKED = Tally(count=1, needed=1), Tally(count=0, needed=1)
RED = replace(preview(), problems=(Problem("promote::apply-network", "Invalid reference"),))
WORD = "A fork is planned only when somebody reads it"


def line(stage: str = "dev", seen: Preview | None = None, **changes: object) -> PlannedLine:
    made = PlannedLine("acme", stage, "calm-otter", seen, promotion=promotion())
    return replace(made, **changes)  # type: ignore[arg-type]


def pull(*lines: PlannedLine, tally: Tally = APPROVED, **changes: object) -> PullView:
    touched = tuple((line.stage, "env/dev/main.tf") for line in lines)
    made = PullView(PullNumber(9), HEAD, touched, (tally,), tuple(lines))
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("view", "gate", "plan", "said"),
    [
        (pull(line(seen=preview())), "success", "success", "approved"),
        (pull(line(seen=preview()), tally=ASKED), None, "success", "waits for approvals"),
        (pull(line(seen=preview()), line("staging")), None, None, "staging: its plan is being made"),
        (pull(line(seen=preview()), line("staging", RED)), "failure", "failure", "Invalid reference"),
        (pull(line(waits=WORD), waits=WORD, button=True), None, "action_required", WORD),
        (pull(line(seen=RED, differs="it does not hold x")), "success", "success", "approved"),
        (pull(line(seen=preview(), idle=True)), "success", "success", "approved"),
    ],
    ids=[
        "planned and approved",
        "planned",
        "one plan is being made",
        "one plan fails",
        "a fork waits for a word",
        "what undoes a promotion needs approvals alone",
        "what changes no input needs approvals alone",
    ],
)
def test_the_checks(view: PullView, gate: str | None, plan: str | None, said: str) -> None:
    check, plans = render_own_check(view), render_own_plan_check(view)
    assert (check.conclusion, plans.conclusion) == (
        Conclusion(gate) if gate else None,
        Conclusion(plan) if plan else None,
    )
    assert said in check.title
    assert (check.external_id, plans.external_id) == ("pull/9", "pull/9/plan")
    assert bool(plans.buttons) == (plan is not None)


def test_the_comment_has_a_section_a_stage_in_order_with_plan_patch_and_steps() -> None:
    text = render_own_comment(pull(line(seen=preview()), line("staging", preview())))
    assert text.index("acme/dev") < text.index("acme/staging")
    for words in ("which dev has, is promoted there once more", "```diff", "in this order", "argocd-update"):
        assert text.count(words) >= 1, words


def test_what_undoes_a_promotion_says_what_follows() -> None:
    text = render_own_comment(pull(line(seen=preview(), differs="the branch does not hold x")))
    assert "differs from its Freight" in text
    assert "once more" not in text


@pytest.mark.parametrize("stages", [40, 2000])
def test_the_comment_keeps_githubs_limit(stages: int) -> None:
    lines = [line(f"stage-{number}", preview()) for number in range(stages)]
    text = render_own_comment(pull(*lines))
    assert size(text) <= COMMENT_LIMIT
    assert "stage-0" in text
    check = render_own_plan_check(pull(*lines))
    assert size(check.summary) <= COMMENT_LIMIT
    assert size(render_own_check(pull(*lines)).summary) <= COMMENT_LIMIT


def test_a_stage_that_differs_says_so_on_its_open_pull_request_and_in_explain() -> None:
    said = "staging differs from its Freight: values.yaml was changed in 1234567 by Olivia (Revert)"
    shown = view(differs=said)
    assert said in render_body(shown)
    explained = render_explain(shown)
    assert said in explained
    assert "/promote staging" in explained
    assert "differs" not in render_body(view()) + render_explain(view())


@pytest.mark.parametrize("state", list(State))
def test_a_re_promotion_is_told_from_a_promotion(state: State) -> None:
    follows = Following(PullNumber(9), NOW, NOW)
    words = state_words(promotion(state=state, follows=follows))
    assert words.startswith(f"re-promotion of {promotion().freight.alias} after #9: ")
    assert not state_words(promotion(state=state)).startswith("re-promotion")
