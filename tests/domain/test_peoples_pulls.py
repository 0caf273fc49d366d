"""When a person's pull request is previewed again, whose approval is too early, whose turn it is after the merge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from bot.domain.files import CommitId
from bot.domain.github import PullNumber, Review, ReviewState, User
from bot.domain.model import Step
from bot.domain.peoples_pulls import (
    PeoplesPull,
    PlannedStage,
    Standpoint,
    choose_turn,
    early_reviewers,
    foreign_branch,
    next_preview,
    plan_stage,
    why_preview,
)
from bot.domain.promotion import Following, Promotion, PromotionId
from bot.domain.review import ApplyKind, Preview, Problem
from tests.domain import reviews as r

DAY = 86400.0
LATER = r.NOW + timedelta(minutes=5)
FOLLOWS = Following(PullNumber(7), r.NOW, r.NOW)


def re_promotion(stage: str = "dev", **changes: object) -> Promotion:
    made = r.promotion(
        id=PromotionId(f"{stage}.01.aaaaaaa"),
        stage=stage,
        head=r.HEAD,
        preview=1,
        digest="d1",
        follows=FOLLOWS,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def preview(**changes: object) -> Preview:
    made = r.preview(made_at=r.NOW, touched=frozenset({"env/main.tf"}))
    return replace(made, **changes)  # type: ignore[arg-type]


def planned() -> Preview:
    """A preview with a plan, which gets old."""
    return preview(steps=(r.apply(),))


def standpoint(**changes: object) -> Standpoint:
    made = Standpoint(r.HEAD, r.BASE, r.freight().name, re_promotion())
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("now", "found", "at", "why"),
    [
        (standpoint(), preview(), LATER, ""),
        (standpoint(), None, LATER, "not previewed yet"),
        (standpoint(head=CommitId("e" * 40)), preview(), LATER, "its head is eeeeeee"),
        (standpoint(freight=r.freight("b").name), preview(), LATER, "the Stage has"),
        (standpoint(promotion=re_promotion(steps=(Step(uses="fail"),))), preview(), LATER, "steps changed"),
        (standpoint(moved=("env/main.tf",)), preview(), LATER, "main changed env/main.tf"),
        (standpoint(moved=("notes.md",)), preview(), LATER, ""),
        (standpoint(), preview(), r.NOW + timedelta(days=2), ""),
        (standpoint(), planned(), r.NOW + timedelta(days=2), "older than the policy allows"),
        (standpoint(), preview(problems=(Problem("a", "down", transient=True),)), r.NOW, ""),
        (standpoint(), preview(problems=(Problem("a", "down", transient=True),)), LATER, "tried again"),
        (standpoint(), preview(problems=(Problem("a", "wrong"),)), LATER, ""),
    ],
    ids=[
        "what is there holds",
        "nothing is there",
        "it was pushed to",
        "other Freight arrived in the Stage",
        "the pipeline has other steps",
        "the base changed what the preview read",
        "the base changed something else",
        "without a plan nothing gets old",
        "the plan is too old",
        "a passing trouble is given a pause",
        "a passing trouble is tried again",
        "a mistake waits for a push",
    ],
)
def test_a_preview_is_made_again(now: Standpoint, found: Preview | None, at: datetime, why: str) -> None:
    said = why_preview(PlannedStage(re_promotion()), found, now, at, DAY)
    assert why in said
    assert bool(said) == bool(why)


def test_time_alone_asks_for_a_new_preview_only_where_something_gets_old() -> None:
    assert next_preview(preview(), DAY) is None
    assert next_preview(planned(), DAY) == r.NOW + timedelta(days=1)
    passing = preview(problems=(Problem("a", "down", transient=True),))
    assert next_preview(passing, DAY) == r.NOW + timedelta(seconds=30)


@pytest.mark.parametrize(
    ("before", "shown_at"),
    [
        (None, LATER),
        (PlannedStage(re_promotion(digest="d2")), r.NOW),
        (PlannedStage(re_promotion(digest="other")), LATER),
        (PlannedStage(re_promotion(digest="d2", head=CommitId("e" * 40))), LATER),
    ],
    ids=["the first", "the same on the same head", "another digest", "another head"],
)
def test_approvals_count_from_when_their_digest_was_first_shown(
    before: PlannedStage | None, shown_at: datetime
) -> None:
    made = plan_stage(re_promotion(digest=""), preview(digest="d2"), before, PullNumber(7), LATER)
    assert made.shown_at == shown_at
    assert made.promotion.heads == (r.HEAD,)


def test_inputs_that_are_applied_already_leave_nothing_to_promote() -> None:
    same = preview(steps=(r.apply(ApplyKind.UNCHANGED),))
    assert plan_stage(re_promotion(), same, None, PullNumber(7), LATER).idle
    red = replace(same, problems=(Problem("a", "wrong"),))
    assert not plan_stage(re_promotion(), red, None, PullNumber(7), LATER).idle
    assert not plan_stage(re_promotion(), planned(), None, PullNumber(7), LATER).idle


def review(login: str, state: ReviewState, seconds: float) -> Review:
    number = sum(login.encode())
    return Review(number, User(login, number), state, r.HEAD, r.NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("reviews", "early"),
    [
        ([review("Ann", ReviewState.APPROVED, -1)], {"ann"}),
        ([review("ann", ReviewState.APPROVED, 0)], set()),
        ([review("ann", ReviewState.APPROVED, -9), review("ann", ReviewState.APPROVED, 9)], set()),
        ([review("ann", ReviewState.APPROVED, -9), review("ann", ReviewState.COMMENTED, 9)], {"ann"}),
        ([review("ann", ReviewState.CHANGES_REQUESTED, -9)], set()),
    ],
    ids=[
        "before it was shown",
        "in the second in which it was shown",
        "once more after it was shown",
        "a comment is no second approval",
        "an objection never comes too early",
    ],
)
def test_an_approval_older_than_what_it_would_be_for_does_not_count(
    reviews: list[Review], early: set[str]
) -> None:
    assert set(early_reviewers(reviews, r.NOW + timedelta(microseconds=900_000))) == early
    assert not early_reviewers(reviews, None)


DEV, STAGING = PlannedStage(re_promotion()), PlannedStage(re_promotion("staging"))
D, S = DEV.promotion.id, STAGING.promotion.id


@pytest.mark.parametrize(
    ("plans", "known", "turn", "waits_for"),
    [
        ((DEV, STAGING), {}, DEV, None),
        ((DEV, STAGING), {D: False}, None, ("shop", "dev")),
        ((DEV, STAGING), {D: True}, STAGING, None),
        ((replace(DEV, done="nothing to do"), STAGING), {}, STAGING, None),
        ((DEV, STAGING), {D: True, S: False}, None, ("shop", "staging")),
        ((DEV, STAGING), {D: True, S: True}, None, None),
        ((), {}, None, None),
    ],
    ids=[
        "the first Stage begins",
        "the second waits for the first",
        "the second follows an end of any kind",
        "the second follows where nothing is to be done",
        "the second runs",
        "both are over",
        "there is nothing",
    ],
)
def test_stages_follow_one_another_after_the_merge(
    plans: tuple[PlannedStage, ...],
    known: Mapping[PromotionId, bool],
    turn: PlannedStage | None,
    waits_for: tuple[str, str] | None,
) -> None:
    found = choose_turn(PeoplesPull(r.URL, PullNumber(7), "main", plans=plans), known)
    assert (found.plan, found.waits_for) == (turn, waits_for)
    assert found.over == (turn is None and waits_for is None)


def test_plans_stand_in_the_pipelines_order_and_leave_with_their_stage() -> None:
    order = [DEV.key, STAGING.key]
    row = PeoplesPull(r.URL, PullNumber(7), "main", waits={"shop/dev": "it conflicts"})
    row = row.with_plan(STAGING, order).with_plan(DEV, order)
    assert (row.plans, row.waits) == ((DEV, STAGING), {})
    assert row.without([STAGING.key]).plans == (STAGING,)
    assert row.plan_of("shop", "prod") is None


@pytest.mark.parametrize(
    ("changes", "branch"),
    [
        ({"head_branch": "more-memory"}, "more-memory"),
        ({"head_branch": "main", "from_fork": True}, "refs/pull/7/head"),
        ({"head_branch": "", "from_fork": True}, "refs/pull/7/head"),
    ],
    ids=["a branch here", "a fork's, whose name is another branch here", "of a fork that is gone"],
)
def test_only_a_branch_of_the_repository_itself_is_taken_for_the_head_branch(
    changes: dict[str, object], branch: str
) -> None:
    pull = replace(r.pull(), number=PullNumber(7), **changes)  # type: ignore[arg-type]
    assert foreign_branch(pull) == branch
