"""Scenario 39: release commits reach a protected branch by follow-up pull requests."""

from __future__ import annotations

import asyncio

import pytest

from bot.sandbox.github.accounts import User
from bot.sandbox.github.errors import Refused
from bot.sandbox.github.records import PullRequest
from bot.sandbox.github.rules import BranchRules, Bypass
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import URL, A, C, H, M, O, P, S, Seed, Y, commit, values
from tests.e2e.road import OPERATIONS, Road
from tests.e2e.talk import misbehave, say

pytestmark = pytest.mark.e2e

VALUES = "env/dev/helm/values.yaml"
TFVARS = "env/dev/terraform/env.auto.tfvars"
_MAINTAIN = 2
BY_PULL_REQUEST = "writeBack: PullRequest\n"


def protect(road: Road, *, reviews: int = 0) -> None:
    """Let nobody but maintainers push to main, the App neither."""
    rules = BranchRules(
        required_checks=(("lockstep", road.demo.app_id),),
        required_reviews=reviews,
        bypass=(Bypass("RepositoryRole", _MAINTAIN),),
    )
    road.sandbox.github.set_rules(OPERATIONS, "main", rules)


def follow_ups(road: Road) -> list[PullRequest]:
    """All follow-up pull requests, oldest first."""
    found = road.sandbox.github.world.store.find(PullRequest, repo_id=road.repository.id)
    return sorted((p for p in found if "/_release/" in p.head_ref), key=lambda p: p.number)


async def wait_for_follow_up(road: Road, *, after: int = 0) -> PullRequest:
    """The open follow-up pull request that is newer than `after`."""

    async def probe() -> PullRequest | None:
        found = [p for p in follow_ups(road) if p.number > after]
        return next((p for p in found if road.issue(p.number).state == "open"), None)

    return await road.until("a follow-up pull request", probe)


async def merge_release(road: Road, version: str) -> tuple[int, str]:
    """Publish a version of both images, and merge its promotion pull request; its number, and the merge."""
    await road.publish(otel=version, lambda_=version)
    pull = await road.wait_for_pull(after=1)
    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    return pull.number, await road.merge(pull.number)


def text(road: Road, number: int) -> str:
    """The body of a pull request."""
    return road.issue(number).body or ""


def merged_at(road: Road, number: int) -> str:
    """The commit that a pull request became."""
    return road.pull(number).merge_commit_sha or ""


async def test_a_protected_branch_gets_its_release_by_a_follow_up(start_road: StartRoad) -> None:
    road = await start_road(Seed(review=BY_PULL_REQUEST), released=True, bot=False)
    protect(road)
    await road.start_bot()
    after = await road.last_event()
    number, merge = await merge_release(road, "1.1.0")
    await road.wait_for_success(after=after)
    assert "open a follow-up pull request to `main`" in text(road, number)
    assert "It is committed by a follow-up pull request" in text(road, number)

    (follow_up,) = follow_ups(road)
    issue = road.issue(follow_up.number)
    assert f"#{number}" in text(road, follow_up.number)
    assert "+  tag: 1.1.0" in text(road, follow_up.number)
    assert "lockstep" in road.sandbox.github.world.store.need(User, issue.author_id).login
    check = road.check(follow_up.head_sha)
    assert check is not None
    assert check.conclusion == "success"
    assert f"follow-up pull request #{follow_up.number}" in (road.comments(number, "outcome")[0].body or "")

    # What later steps see is what the merge left: Argo CD was asked for exactly that.
    left = merged_at(road, follow_up.number)
    assert await road.tip() == left
    assert road.operation()["syncResult"]["revision"] == left
    assert "tag: 1.1.0" in await road.read(VALUES)
    assert road.live()[0] == ["1.1.0"]
    assert [c.sha for c in await road.commits_since(merge)] == [left]
    assert follow_up.head_ref not in await road.branches()
    # Its merge is nothing new to anybody.
    assert len(await road.pulls()) == 2
    assert not await road.leaks()


async def test_people_can_spoil_and_stop_a_follow_up_but_not_bend_it(start_road: StartRoad) -> None:
    road = await start_road(Seed(review=BY_PULL_REQUEST), released=True, bot=False)
    # A review is asked for by GitHub, too, so that the follow-up waits for people.
    protect(road, reviews=1)
    await road.start_bot()
    number, merge = await merge_release(road, "1.1.0")
    first = await wait_for_follow_up(road)
    await road.wait_for_check(first.number, "lockstep", "success")

    await road.edit(VALUES, "1.1.0", "6.6.6", branch=first.head_ref)
    check = await road.wait_for_check(first.number, "lockstep", "failure")
    assert f"{VALUES} is not what was approved" in (check.summary or "")
    await road.approve(first.number)
    with pytest.raises(Refused):
        await road.merge(first.number)

    after = await road.last_event()
    await asyncio.to_thread(road.sandbox.github.actions.close, "rafael", OPERATIONS, first.number)
    await road.wait_for_event("failed", f"#{first.number} was closed by rafael", after=after)
    await road.wait_until_quiet()
    assert await road.tip() == merge
    assert road.live()[0] == ["1.0.0"]
    assert "/rollback" in (road.comments(number, "outcome")[0].body or "")

    # It is opened again, on a branch that somebody moved meanwhile at another place and at ours.
    await road.edit(VALUES, "# Environment of", "# The environment of")
    after = await road.last_event()
    # Said on the follow-up, which is known to be this promotion's.
    await say(road, first.number, "/retry", answer="rocket")
    second = await wait_for_follow_up(road, after=first.number)
    await road.wait_for_check(second.number, "lockstep", "success")
    assert second.head_ref.endswith("-2")
    await road.approve(second.number)
    await road.wait_for_success(after=after)
    assert await road.tip() == merged_at(road, second.number)
    values_now = await road.read(VALUES)
    assert "tag: 1.1.0" in values_now
    assert "# The environment of" in values_now


async def test_a_push_that_is_refused_becomes_a_follow_up_also_after_a_kill(start_road: StartRoad) -> None:
    # Two pushes to main behind the apply, and the policy's default.
    first = commit("Tag of ${{ ctx.stage }}").replace("as: commit", "as: tag")
    name = ("env.OTEL_SERVICE_NAME", "otel-${{ imageFrom(vars.image).Tag }}")
    seed = Seed(steps=(C, H, A, O, Y, first, P, values(URL, name), M, P, S))
    road = await start_road(seed, released=True, bot=False)
    protect(road)
    await road.start_bot()
    # GitHub takes long over the follow-up, and the bot dies between its branch and its pull request.
    await road.publish(otel="1.1.0", lambda_="1.1.0")
    pull = await road.wait_for_pull(after=1)
    body = text(road, pull.number)
    assert (
        "since rules of the branch refuse the App's push (`pull_request`, `required_status_checks`)" in body
    )
    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    await misbehave(road, kind="5xx-before", method="POST", path="/pulls$", count=0)
    after = await road.last_event()
    merge = await road.merge(pull.number)
    await road.until("the branch of the follow-up", lambda: _branch_is_there(road))
    await road.bot.kill()
    assert follow_ups(road) == []
    road.sandbox.github.faults.clear()
    await road.start_bot()
    await road.wait_for_success(after=after)
    both = follow_ups(road)
    assert [road.issue(p.number).state for p in both] == ["closed", "closed"]
    assert [c.sha for c in await road.commits_since(merge)] == [
        merged_at(road, p.number) for p in reversed(both)
    ]
    assert road.operation()["syncResult"]["revision"] == await road.tip()
    assert "OTEL_SERVICE_NAME: otel-1.1.0" in await road.read(VALUES)
    assert [name for name in await road.branches() if "_release" in name] == []


async def test_where_nobody_reviews_everything_goes_by_one_follow_up(start_road: StartRoad) -> None:
    road = await start_road(Seed(review=f"review: None\n{BY_PULL_REQUEST}"), released=True, bot=False)
    protect(road)
    before = await road.tip()
    await road.start_bot()
    after = await road.last_event()
    await road.publish(otel="1.1.0", lambda_="1.1.0")
    await road.wait_for_success(after=after)
    (one,) = follow_ups(road)
    assert [c.sha for c in await road.commits_since(before)] == [merged_at(road, one.number)]
    changed = [line.partition(":")[0] for line in await road.changed(before)]
    assert changed == [VALUES, VALUES, TFVARS, TFVARS]


async def _branch_is_there(road: Road) -> bool:
    return any("/_release/" in name for name in await road.branches())
