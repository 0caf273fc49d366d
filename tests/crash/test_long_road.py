"""Five kills on the way from a push to prod, at moments drawn from a seed: the road ends as if nothing had happened."""

from __future__ import annotations

import asyncio
import contextlib
import random
from pathlib import Path

import pytest

from bot.sandbox.github.errors import Refused
from tests.e2e.pipelines import Seed
from tests.e2e.road import Road, open_road

pytestmark = pytest.mark.crash

SEED = 20_260_202
KILLS = 5
STAGES = (("dev", ""), ("staging", "dev"), ("prod", "staging"))


async def review_for_ever(road: Road, retried: set[int]) -> None:
    """Approve and merge whatever is open, and say /retry where the end of an apply was not seen.

    `retried` takes the numbers of the pull requests where that was said.
    """
    approved: set[tuple[int, str]] = set()
    while True:
        for stage, _ in STAGES:
            for pull in await road.pulls(stage):
                if road.issue(pull.number).state == "open":
                    await review(road, pull.number, pull.head_sha, approved)
                elif pull.number not in retried and asks_for_retry(road, pull.number):
                    retried.add(pull.number)
                    await road.comment(pull.number, "/retry", user="olivia")
        await asyncio.sleep(0.2)


async def review(road: Road, number: int, head: str, approved: set[tuple[int, str]]) -> None:
    if (number, head) not in approved:
        approved.add((number, head))
        await road.approve(number)
    # GitHub refuses the merge until the check is green; then the next round tries again.
    with contextlib.suppress(Refused):
        await road.merge(number)


def asks_for_retry(road: Road, number: int) -> bool:
    return any("outcome unknown" in comment.body for comment in road.comments(number, "outcome"))


async def arrived(road: Road) -> bool:
    for stage, _ in STAGES:
        tags, environment = road.live(stage)
        if tags != ["1.0.0"] or environment.get("LAMBDA_URL") != road.outputs(stage).get("lambda_url"):
            return False
    return True


async def kill_and_start(road: Road, moments: random.Random) -> None:
    """Let it work for a while, kill it, start it again."""
    await asyncio.sleep(moments.uniform(0.5, 4.0))
    await road.bot.kill()
    await road.start_bot()


async def test_five_kills_on_the_way_to_prod_change_nothing(tmp_path: Path) -> None:
    moments = random.Random(SEED)
    async with open_road(tmp_path / "road", Seed(stages=STAGES)) as road:
        before = await road.tip()
        await road.start_bot()
        retried: set[int] = set()
        reviewer = asyncio.create_task(review_for_ever(road, retried))
        try:
            for _ in range(KILLS):
                await kill_and_start(road, moments)
            await road.until("the release in prod", lambda: arrived(road), patience=150.0)
        finally:
            reviewer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reviewer
        await road.wait_for_success("prod")
        commits = await road.commits_since(before)
        assert len([commit for commit in commits if len(commit.parents) == 2]) == len(STAGES)
        assert len([commit for commit in commits if len(commit.parents) == 1]) == len(STAGES)
        for stage, _ in STAGES:
            (pull,) = await road.pulls(stage)
            assert len(road.comments(pull.number, "plan")) == 1
            assert len(road.comments(pull.number, "outcome")) == 1
            assert road.most_changes(stage) == 1
            assert road.applies(stage) <= (2 if pull.number in retried else 1)
        assert await road.leaks() == []
