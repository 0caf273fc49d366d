"""Whose approval counts, and who hears why not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.approvals import Standing, count_approvals, is_entitled
from bot.domain.files import CommitId
from bot.domain.github import Permission, Review, ReviewState, User
from bot.domain.review_policy import ApprovalRule, Approvals
from tests.domain import reviews as b

OLD = CommitId("a" * 40)
STANDINGS = {
    "olivia": Standing(Permission.MAINTAIN, frozenset({"sre"})),
    "rafael": Standing(Permission.WRITE),
    "uma": Standing(Permission.READ),
    "robo": Standing(Permission.ADMIN),
}


def review(
    login: str, state: ReviewState = ReviewState.APPROVED, *, commit: CommitId | None = b.HEAD, at: int = 0
) -> Review:
    user = User(login, sum(map(ord, login)), bot=login == "robo")
    return Review(at, user, state, commit, b.NOW + timedelta(minutes=at))


@pytest.mark.parametrize(
    ("reviews", "excluded", "count", "reason"),
    [
        pytest.param([review("rafael")], {}, 1, "approved this head", id="a writer"),
        pytest.param([review("uma")], {}, 0, "is not entitled", id="a reader"),
        pytest.param([review("nobody")], {}, 0, "is not entitled", id="a stranger"),
        pytest.param([review("robo")], {}, 0, "is a bot", id="a bot, whatever its role"),
        pytest.param([review("rafael", commit=OLD)], {}, 0, "not the head", id="an older head"),
        pytest.param([review("rafael", commit=None)], {}, 0, "not the head", id="a head that is gone"),
        pytest.param(
            [review("Rafael")], {"rafael": "asked for it"}, 0, "asked for it", id="the requester, by any case"
        ),
        pytest.param([review("rafael", ReviewState.DISMISSED)], {}, 0, "dismissed", id="a dismissed review"),
    ],
)
def test_whose_approval_counts(
    reviews: list[Review], excluded: dict[str, str], count: int, reason: str
) -> None:
    standings = STANDINGS | {"Rafael".lower(): STANDINGS["rafael"]}
    tally = count_approvals(reviews, [b.HEAD], Approvals(), excluded, standings)
    assert tally.count == count
    assert reason in tally.verdicts[0].reason


def test_the_latest_review_of_a_person_counts_and_a_comment_changes_nothing() -> None:
    reviews = [
        review("rafael", ReviewState.CHANGES_REQUESTED, at=1),
        review("rafael", at=2),
        review("rafael", ReviewState.COMMENTED, at=3),
    ]
    tally = count_approvals(reviews, [b.HEAD], Approvals(), {}, STANDINGS)
    assert tally.approvers == ("rafael",)
    assert tally.enough


def test_an_entitled_persons_objection_holds_it_and_a_readers_does_not() -> None:
    approved = review("olivia")
    objected = [approved, review("rafael", ReviewState.CHANGES_REQUESTED)]
    assert not count_approvals(objected, [b.HEAD], Approvals(), {}, STANDINGS).enough
    reader = [approved, review("uma", ReviewState.CHANGES_REQUESTED)]
    assert count_approvals(reader, [b.HEAD], Approvals(), {}, STANDINGS).enough


def test_an_approval_of_any_head_with_the_same_digest_counts() -> None:
    assert (
        count_approvals([review("rafael", commit=OLD)], [OLD, b.HEAD], Approvals(), {}, STANDINGS).count == 1
    )


def test_a_plan_that_destroys_needs_those_who_may_approve_that() -> None:
    rule = Approvals(on_destroy=ApprovalRule(count=1, from_=("team:sre",)))
    tally = replace(count_approvals([review("rafael")], [b.HEAD], rule, {}, STANDINGS), destroy_needed=1)
    assert (tally.count, tally.destroy_count, tally.enough) == (1, 0, False)
    tally = replace(count_approvals([review("olivia")], [b.HEAD], rule, {}, STANDINGS), destroy_needed=1)
    assert tally.enough


@pytest.mark.parametrize(
    ("allowed", "login", "entitled"),
    [
        pytest.param((), "rafael", True, id="none named: write is enough"),
        pytest.param((), "uma", False, id="none named: read is not"),
        pytest.param(("user:Uma",), "uma", True, id="named by login, in any case"),
        pytest.param(("team:sre",), "olivia", True, id="in the team"),
        pytest.param(("team:sre",), "rafael", False, id="not in the team"),
        pytest.param(("perm:maintain",), "olivia", True, id="role is enough"),
        pytest.param(("perm:maintain",), "rafael", False, id="role is not enough"),
        pytest.param(("perm:nonsense",), "olivia", False, id="an unknown role lets nobody in"),
        pytest.param(("rafael",), "rafael", False, id="an entry without a kind lets nobody in"),
    ],
)
def test_who_is_entitled(allowed: tuple[str, ...], login: str, entitled: bool) -> None:
    assert is_entitled(login, allowed, STANDINGS[login]) is entitled
