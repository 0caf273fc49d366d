"""Whose approval never counts, whatever the account is called by now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest

from bot.domain.files import CommitId
from bot.domain.github import PullNumber, Repository, User
from bot.domain.review_policy import ReviewPolicy
from bot.ports import Clock, Git, GitHub, Store
from bot.workflow.configuration import Configuration
from bot.workflow.snapshots import Gatherer
from tests.domain import reviews as b


class Authors:
    """GitHub, as far as it tells who wrote the commits of a pull request."""

    async def list_commit_authors(
        self, repository: Repository, number: PullNumber
    ) -> Mapping[CommitId, Sequence[str]]:
        return {CommitId("9" * 40): ["Wanda"], b.HEAD: ["lockstep[bot]"]}


GATHERER = Gatherer(
    cast(Store, None),
    cast(Git, None),
    cast(GitHub, Authors()),
    cast(Clock, None),
    cast(Configuration, None),
)


@pytest.mark.parametrize(
    ("person", "why"),
    [
        pytest.param(User("MALLORY", 7), "asked for this promotion", id="the requester in capitals"),
        pytest.param(
            User("mallory-two", 7), "asked for this promotion", id="the requester under a new login"
        ),
        pytest.param(User("someone", 9), "pushed to the branch", id="who pushed, whatever the commit says"),
        pytest.param(User("wanda", 11), "wrote the commit 9999999", id="who wrote a commit"),
        pytest.param(User("rafael", 8), None, id="somebody else"),
    ],
)
async def test_who_is_excluded(person: User, why: str | None) -> None:
    promotion = replace(b.in_review(), actor="mallory", actor_id=7, pushers=(9,))
    excluded = await GATHERER.excluded(ReviewPolicy(), promotion, b.pull(), [person])
    assert excluded.get(person.login.lower()) == why
