"""Scenarios 36 to 40: what is done after a merge, when it does not go as it was approved."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bot.sandbox.cloud import CloudFaults
from bot.sandbox.github.records import Deployment, DeploymentStatus, PullRequest
from tests.e2e.beside import is_locked, until_unlocked
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import URL, C, O, P, Seed, commit, values
from tests.e2e.road import Road
from tests.e2e.talk import say

pytestmark = pytest.mark.e2e

MAIN_TF = "env/dev/terraform/main.tf"
VALUES = "env/dev/helm/values.yaml"
STATE = "acme/dev"


async def approved_release(road: Road) -> PullRequest:
    """The pull request of a release that changes infrastructure, ready to be merged."""
    await road.publish(otel="1.1.0", lambda_="1.1.0")
    pull = await road.wait_for_pull(after=1)
    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    await road.wait_until_quiet()
    road.forget_terraform()
    return pull


def deployment_state(road: Road) -> str:
    """The newest state of dev's newest deployment."""
    store = road.sandbox.github.world.store
    newest = max(store.find(Deployment, repo_id=road.repository.id), key=lambda item: item.id)
    states = store.find(DeploymentStatus, deployment_id=newest.id)
    return max(states, key=lambda item: item.id).state


def change_state(road: Road, change: dict[str, Any]) -> None:
    """Change a resource's input in the state, as somebody's own Terraform run would."""
    state = road.sandbox.cloud.read_state(STATE)
    assert state is not None
    state["serial"] += 1
    for resource in state["resources"]:
        if resource["name"] in change:
            attributes = resource["instances"][0]["attributes"]
            attributes["input"]["value"] |= change[resource["name"]]
            attributes["output"]["value"] |= change[resource["name"]]
    road.sandbox.cloud.write_state(STATE, state)


def change_output(road: Road, name: str, value: str) -> None:
    """Change an output in the state."""
    state = road.sandbox.cloud.read_state(STATE)
    assert state is not None
    state["serial"] += 1
    state["outputs"][name]["value"] = value
    road.sandbox.cloud.write_state(STATE, state)


async def test_a_half_done_apply_blocks_the_stage_until_its_rest_is_applied(released: Road) -> None:
    road = released
    pull = await approved_release(road)
    road.sandbox.cloud.faults = CloudFaults(refuse=("acme/account",))
    after = await road.last_event()
    merge = await road.merge(pull.number)
    await road.wait_for_event("failed", "tf-apply", after=after)
    await road.wait_until_quiet()
    assert "lambda-app:1.1.0" in str(road.sandbox.cloud.read_state(STATE))
    assert await road.tip() == merge
    assert "tag: 1.0.0" in await road.read(VALUES)
    assert road.live()[0] == ["1.0.0"]
    outcome = road.check(merge, "lockstep / dev")
    assert outcome is not None
    assert outcome.conclusion == "failure"
    assert len(road.comments(pull.number, "outcome")) == 1
    assert deployment_state(road) == "failure"

    # The Stage is blocked: newer Freight waits.
    await road.publish(otel="1.2.0")
    await road.wait_for_event("freight", "otel-app 1.2.0", stage="")
    await road.wait_until_quiet()
    assert len(await road.pulls()) == 2

    road.sandbox.cloud.faults = CloudFaults()
    after = await road.last_event()
    await say(road, pull.number, "/retry", answer="rocket")
    await road.wait_for_success(after=after)
    release = await road.commits_since(merge)
    assert len(release) == 1
    assert "tag: 1.1.0" in await road.read(VALUES)
    assert "1 added" not in release[0].message
    outcome = road.check(merge, "lockstep / dev")
    assert outcome is not None
    assert outcome.conclusion == "success"
    assert deployment_state(road) == "success"
    # And the newer Freight follows now.
    await road.wait_for_pull(after=pull.number)


async def test_a_kill_during_the_apply_leaves_an_unknown_outcome_to_a_person(released: Road) -> None:
    road = released
    pull = await approved_release(road)
    road.sandbox.cloud.faults = CloudFaults(slow=20.0, path="acme/account")
    merge = await road.merge(pull.number)
    # The function is changed while the account's quotas are waited for.
    await road.until("the apply to hold the lock", lambda: is_locked(road, STATE))
    await asyncio.sleep(2.0)
    await road.bot.kill()
    road.sandbox.cloud.faults = CloudFaults()
    await until_unlocked(road, STATE)
    await road.start_bot()
    await road.wait_for_event("errored", "outcome unknown")
    await road.wait_until_quiet()
    assert await road.tip() == merge
    outcome = road.check(merge, "lockstep / dev")
    assert outcome is not None
    assert outcome.conclusion == "failure"
    after = await road.last_event()
    await say(road, pull.number, "/retry", answer="rocket")
    await road.wait_for_success(after=after)
    assert len(await road.commits_since(merge)) == 1
    assert "tag: 1.1.0" in await road.read(VALUES)


async def test_a_kill_at_the_end_of_the_apply_goes_on_when_nothing_is_left(released: Road) -> None:
    road = released
    pull = await approved_release(road)
    road.sandbox.cloud.faults = CloudFaults(slow=1.5, path=STATE)
    after = await road.last_event()
    merge = await road.merge(pull.number)
    await road.until("the state to be written", lambda: _written(road))
    await road.bot.kill()
    road.sandbox.cloud.faults = CloudFaults()
    await until_unlocked(road, STATE)
    road.forget_terraform()
    await road.start_bot()
    await road.wait_for_success(after=after)
    assert "POST" not in road.terraform()
    assert len(await road.commits_since(merge)) == 1
    assert "tag: 1.1.0" in await road.read(VALUES)


async def _written(road: Road) -> bool:
    return "POST" in road.terraform()


async def test_another_output_than_expected_stops_before_the_commit(released: Road) -> None:
    road = released
    pull = await approved_release(road)
    road.sandbox.cloud.faults = CloudFaults(slow=0.5, path=STATE)
    after = await road.last_event()
    merge = await road.merge(pull.number)

    async def unlocked() -> bool:
        return "UNLOCK" in road.terraform()

    await road.until("the apply to end", unlocked)
    # Reading the outputs takes half a second from here, and reads what the provider returns now.
    change_output(road, "lambda_url", "https://other.on.example/")
    road.sandbox.cloud.faults = CloudFaults()
    stopped = await road.wait_for_event("stopped", after=after)
    await road.wait_until_quiet()
    assert "outputs" in stopped.message
    assert await road.tip() == merge
    assert road.live()[0] == ["1.0.0"]
    text = "\n".join(comment.body for comment in road.comments(pull.number, "outcome"))
    assert "other.on.example" in text
    digest = _digest_in(text)
    await say(road, pull.number, f"/apply {digest}", answer="rocket")
    await road.wait_for_success(after=after)
    assert "https://other.on.example/" in await road.read(VALUES)
    assert road.live()[1]["LAMBDA_URL"] == "https://other.on.example/"
    assert road.applies() == 1


def _digest_in(text: str) -> str:
    return text.partition("/apply ")[2][:16]


async def test_a_state_that_moved_without_another_plan_is_no_reason_to_stop(released: Road) -> None:
    road = released
    pull = await approved_release(road)
    change_state(road, {})
    after = await road.last_event()
    await road.merge(pull.number)
    await road.wait_for_success(after=after)
    assert "tag: 1.1.0" in await road.read(VALUES)


async def test_another_plan_than_was_approved_waits_for_an_approver(released: Road) -> None:
    road = released
    pull = await approved_release(road)
    change_state(road, {"execution_role": {"name": "renamed-by-hand"}})
    after = await road.last_event()
    merge = await road.merge(pull.number)
    await road.wait_for_event("stopped", "not the one that was approved", after=after)
    await road.wait_until_quiet()
    assert "POST" not in road.terraform()
    text = "\n".join(comment.body for comment in road.comments(pull.number, "outcome"))
    assert "execution_role" in text
    digest = _digest_in(text)
    reply = await say(road, pull.number, "/apply 0123456789abcdef", answer="-1")
    assert digest in reply
    reply = await say(road, pull.number, f"/apply {digest}", "uma", answer="-1")
    assert "may not" in reply
    assert "POST" not in road.terraform()
    assert await road.tip() == merge
    await say(road, pull.number, f"/apply {digest}", answer="rocket")
    await road.wait_for_success(after=after)
    assert "renamed-by-hand" not in str(road.sandbox.cloud.read_state(STATE))
    assert "tag: 1.1.0" in await road.read(VALUES)


async def test_a_merge_that_is_reverted_before_the_apply_ends_the_promotion(released: Road) -> None:
    road = released
    pull = await approved_release(road)
    before = await road.tip()
    await say(road, pull.number, "/freeze until the audit is over", "olivia", answer="rocket")
    after = await road.last_event()
    await road.merge(pull.number, "dana", bypass=True)
    await road.wait_for_event("held", "frozen", after=after)
    old = await road.read("env/dev/terraform/env.auto.tfvars", before)
    await road.push({"env/dev/terraform/env.auto.tfvars": old}, "Take it back")
    await road.wait_for_event("aborted", "reverted", after=after)
    await say(road, pull.number, "/unfreeze", "olivia", answer="rocket")
    await road.wait_until_quiet()
    assert road.terraform() == {}
    assert len(await road.pulls()) == 2
    assert deployment_state(road) == "inactive"


async def test_an_answer_of_the_state_that_changed_stops_before_any_effect(start_road: StartRoad) -> None:
    # Without an apply the output is known before the merge, and so the values are merged with it.
    road = await start_road(
        Seed(steps=(C, O, values(URL), commit("Promote ${{ ctx.stage }}"), P)), released=True
    )
    await road.wait_until_quiet()
    change_output(road, "lambda_url", "https://first.on.example/")
    await road.publish(otel="1.1.0")
    pull = await road.wait_for_pull(after=1)
    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    change_output(road, "lambda_url", "https://second.on.example/")
    after = await road.last_event()
    await road.merge(pull.number)
    await road.wait_for_event("stopped", "outputs", after=after)
