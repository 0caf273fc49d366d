"""A Stage has one pull request at a time: what is open elsewhere is closed before another is opened."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from bot.domain.files import CommitId
from bot.domain.github import PullNumber, PullRequest, Repository
from bot.domain.promotion import Promotion, Target
from bot.ports import Git, GitHub
from bot.workflow.publish import Publisher
from tests.domain import reviews as b

OTHER = Target(b.URL, "other")
GENERATED = "kargo/promotion/dev.01.aaaaaaa"


@dataclass
class World:
    """One repository: the branches that were deleted, and the pull requests that were closed."""

    deleted: list[str] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)

    async def fetch(self, url: str, *refs: str) -> None:
        return None

    async def resolve(self, url: str, revision: str) -> CommitId | None:
        return b.HEAD

    async def push(
        self, url: str, commit: CommitId | None, branch: str, *, expected: CommitId | None
    ) -> None:
        assert (commit, expected) == (None, b.HEAD)
        self.deleted.append(branch)

    def repository_of(self, url: str) -> Repository | None:
        return Repository("acme", "ops")

    async def get_pull_request(self, repository: Repository, number: PullNumber) -> PullRequest:
        return b.pull(number=number, open=number not in self.closed)

    async def update_pull_request(self, repository: Repository, number: PullNumber, *, state: str) -> None:
        assert state == "closed"
        self.closed.append(number)


def former(number: int, **changes: object) -> Promotion:
    return b.in_review(pull=PullNumber(number), superseded_by="newer", **changes)


@pytest.mark.parametrize(
    ("open_ones", "source", "closed", "deleted"),
    [
        pytest.param([former(5)], "", [], [], id="a branch of ours is taken over"),
        pytest.param([former(5, source="r/dev")], "r/dev", [], [], id="so is one that the task names again"),
        pytest.param(
            [former(5, source=GENERATED)],
            "kargo/promotion/dev.02.bbbbbbb",
            [5],
            [GENERATED],
            id="a generated one goes with its promotion",
        ),
        pytest.param([former(5, source="r/1")], "r/2", [5], [], id="one that an author named is left alone"),
        pytest.param(
            [former(6, target=OTHER), former(5)],
            "",
            [6],
            ["lockstep/shop/dev"],
            id="of several only those elsewhere",
        ),
    ],
)
async def test_what_newer_freight_superseded(
    open_ones: list[Promotion], source: str, closed: list[int], deleted: list[str]
) -> None:
    world = World()
    publisher = Publisher(cast(Git, world), cast(GitHub, world), ("lockstep", "lockstep@localhost"))
    promotion = await publisher.leave_former(b.promotion(), b.preview(source=source), open_ones)
    assert (promotion.target, promotion.source, promotion.pull) == (b.MAIN, source, None)
    assert (world.closed, world.deleted) == (closed, deleted)


@pytest.mark.parametrize(
    ("changes", "source", "stays"),
    [
        pytest.param({}, "", True, id="its own stays where it is"),
        pytest.param({}, "r/dev", False, id="the task names a branch now"),
        pytest.param({"source": "r/dev"}, "", False, id="the task no longer names one"),
        pytest.param({"target": OTHER}, "", False, id="the target is another one"),
    ],
)
async def test_the_promotions_own_pull_request(changes: dict[str, object], source: str, stays: bool) -> None:
    world = World()
    publisher = Publisher(cast(Git, world), cast(GitHub, world), ("lockstep", "lockstep@localhost"))
    promotion = b.in_review(**changes)
    moved = await publisher.leave_former(promotion, b.preview(source=source), ())
    assert (moved == promotion) is stays
    assert world.closed == ([] if stays else [7])
    if not stays:
        blank = replace(moved, pull=None, head=None, heads=(), own_commits=(), digest="")
        assert (moved, moved.branch) == (blank, source or "lockstep/shop/dev")
