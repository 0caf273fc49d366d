"""`apply: BeforeMerge`: `/apply` on the approved pull request, then the App merges what was applied."""

from __future__ import annotations

import asyncio

import pytest

from bot.sandbox.cloud import CloudFaults
from bot.sandbox.github import pushes
from bot.sandbox.github.auth import person
from bot.sandbox.github.errors import Refused
from bot.sandbox.github.git import RefChange
from bot.sandbox.github.records import PullRequest
from tests.e2e.beside import is_locked, until_unlocked
from tests.e2e.claims import claim_no_leak, look_before, on_merge, trailers
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import Seed
from tests.e2e.road import Road
from tests.e2e.talk import say

pytestmark = pytest.mark.e2e

BEFORE = Seed(review="apply: BeforeMerge\n")
TFVARS = "env/dev/terraform/env.auto.tfvars"
VALUES = "env/dev/helm/values.yaml"
BRANCH = "lockstep/acme/dev"
STATE = "acme/dev"


async def approved(start_road: StartRoad, review: str = BEFORE.review) -> tuple[Road, PullRequest]:
    """A release that changes infrastructure, approved, and not applied yet."""
    road = await start_road(Seed(review=review), released=True)
    await road.sow(Seed(review=review))
    await road.wait_until_quiet()
    await road.publish(otel="1.1.0", lambda_="1.1.0")
    pull = await road.wait_for_pull(after=1)
    await road.approve(pull.number)
    await road.wait_for_event("waits", "an approver types `/apply`")
    await road.wait_until_quiet()
    road.forget_terraform()
    return road, pull


async def claim_one_commit(road: Road, before: str, number: int) -> str:
    """Main has one commit more, with inputs, tag and URL in it; the answer is its message."""
    (commit,) = await road.commits_since(before, first_parent=False)
    assert commit.sha == road.pull(number).merge_commit_sha
    assert "lambda-app:1.1.0" in await road.read(TFVARS)
    values = await road.read(VALUES)
    assert "tag: 1.1.0" in values
    assert road.outputs()["lambda_url"] in values
    assert road.live()[0] == ["1.1.0"]
    assert road.operation()["syncResult"]["revision"] == commit.sha
    assert road.applies() == 1
    await claim_no_leak(road)
    return commit.message


async def test_what_was_approved_is_applied_and_then_squashed_into_one_commit(start_road: StartRoad) -> None:
    road, pull = await approved(start_road)
    check = road.check(pull.head_sha)
    assert check is not None
    assert check.conclusion is None
    assert "/apply" in (check.title or "")
    with pytest.raises(Refused):
        await road.merge(pull.number)
    assert on_merge(road, pull.number, "On `/apply`")[-4:] == ["commit", "git-push", "merge", "argocd-update"]
    # Main moves on, where nobody of this promotion looks: the digest and the approval stay.
    before = await road.push({"README.md": "Another Stage was here.\n"}, "Somebody else")
    after = await road.last_event()
    await say(road, pull.number, "/apply")
    await road.wait_for_success(after=after)

    message = await claim_one_commit(road, before, pull.number)
    assert message.startswith("Promote dev to ")
    assert "Apply complete!" in message
    assert trailers(message)["Lockstep-Step"] == "promote::commit"
    assert await road.branches() == ["main"]


async def test_a_failed_apply_leaves_the_pull_request_red_until_somebody_retries(
    start_road: StartRoad,
) -> None:
    road, pull = await approved(start_road)
    before = await road.tip()
    road.sandbox.cloud.faults = CloudFaults(refuse=("acme/account",))
    await say(road, pull.number, "/apply")
    await road.wait_for_event("failed", "tf-apply")
    check = await road.wait_for_check(pull.number, "lockstep", "failure")
    assert "tf-apply" in (check.title or "")
    await road.wait_until_quiet()
    assert (await road.tip(), await road.tip(BRANCH)) == (before, pull.head_sha)
    assert road.issue(pull.number).state == "open"
    assert "`/retry` tries the failed step again" in road.comments(pull.number, "outcome")[0].body
    # Newer Freight takes nothing over once an apply began.
    await road.publish(otel="1.2.0")
    await road.wait_for_event("freight", "otel-app 1.2.0", stage="")
    await road.wait_until_quiet()
    assert len(await road.pulls()) == 2

    road.sandbox.cloud.faults = CloudFaults()
    after = await road.last_event()
    await say(road, pull.number, "/retry")
    await road.wait_for_event("succeeded", after=after)
    assert "lambda-app:1.1.0" in await road.read(TFVARS)
    assert "tag: 1.1.0" in await road.read(VALUES)
    assert len(await road.commits_since(before, first_parent=False)) == 1


async def test_a_push_of_a_person_stops_it_after_the_apply_until_the_branch_is_set_back(
    start_road: StartRoad,
) -> None:
    road, pull = await approved(start_road)
    before = await road.tip()
    road.sandbox.cloud.faults = CloudFaults(slow=4.0, path="acme/account")
    await say(road, pull.number, "/apply")
    await road.until("the apply to hold the lock", lambda: is_locked(road, STATE))
    theirs = await road.push({"README.md": "Read me first.\n"}, "Explain", branch=BRANCH)
    stopped = await road.wait_for_event("stopped", "the head moved while it was applied")
    road.sandbox.cloud.faults = CloudFaults()
    assert theirs[:7] in stopped.message
    check = await road.wait_for_check(pull.number, "lockstep", "failure")
    assert "the head moved" in (check.title or "")
    await road.wait_until_quiet()
    assert (await road.tip(), await road.tip(BRANCH)) == (before, theirs)
    assert road.live()[0] == ["1.0.0"]

    # The branch is set back, and what was left to do follows by itself; the approval of that head still counts.
    road.forget_terraform()
    await asyncio.to_thread(_set_back, road, theirs, pull.head_sha)
    await road.wait_for_success(after=stopped.number)
    assert len(await road.commits_since(before, first_parent=False)) == 1
    assert "tag: 1.1.0" in await road.read(VALUES)
    assert "Read me first" not in await road.read("README.md")
    assert road.applies() == 0


async def test_a_merge_by_hand_before_the_apply_is_fulfilled_as_any_merge(start_road: StartRoad) -> None:
    road, pull = await approved(start_road)
    before = await road.tip()
    after = await road.last_event()
    merge = await road.merge(pull.number, "olivia", bypass=True)
    await road.wait_for_success(after=after)
    release, merged = await road.commits_since(before)
    assert (merged.sha, list(release.parents)) == (merge, [merge])
    assert "tag: 1.1.0" in await road.read(VALUES)
    assert road.applies() == 1


async def test_a_kill_after_the_apply_applies_and_commits_nothing_twice(start_road: StartRoad) -> None:
    road, pull = await approved(start_road)
    before, states = await road.tip(), road.versions()
    await say(road, pull.number, "/apply")

    async def applied() -> bool:
        return road.versions() > states

    await road.until("the state to be written", applied)
    after = await road.last_event()
    await road.bot.kill()
    await until_unlocked(road, STATE)
    await road.start_bot()
    await road.wait_for_success(after=after)
    await claim_one_commit(road, before, pull.number)


def _set_back(road: Road, old: str, new: str) -> None:
    """Push by force, as the person who pushed before."""
    world = road.sandbox.github.world
    change = RefChange(f"refs/heads/{BRANCH}", old, new)
    pushes.move_ref(world, person(world.need_user("olivia")), road.repository, change)


async def test_a_rollback_that_keeps_the_infrastructure_brings_back_the_image_alone(
    start_road: StartRoad,
) -> None:
    seed = Seed(review="autoMerge: true\nrollback:\n  infra: Keep\n")
    road = await start_road(seed, released=True)
    await road.wait_until_quiet()
    after = await road.last_event()
    await road.publish(otel="1.1.0", lambda_="1.1.0")
    await road.wait_for_success(after=after)
    released = max(pull.number for pull in await road.pulls())
    url = road.outputs()["lambda_url"]
    before = await look_before(road)

    after = await road.last_event()
    await say(road, released, "/rollback dev", "olivia")
    pull = await road.wait_for_pull(after=released)
    body = road.issue(pull.number).body or ""
    assert "this rollback keeps the infrastructure as it is" in body
    assert f"`{TFVARS}`, which `hcl-update` would change" in body
    await road.approve(pull.number)
    await road.wait_for_success(after=after)
    assert await road.changed(before.tip) == [
        f"{VALUES}:-  tag: 1.1.0  # written by a promotion",
        f"{VALUES}:+  tag: 1.0.0  # written by a promotion",
    ]
    assert "lambda-app:1.1.0" in await road.read(TFVARS)
    assert url in await road.read(VALUES)
    assert road.live()[0] == ["1.0.0"]
    assert set(road.terraform()) <= {"GET"}, "the state is read, not locked and not written"
