"""What people ask for in comments, on the whole road."""

from __future__ import annotations

import re

import pytest

from bot.sandbox.github.records import Delivery
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import TAG, C, P, S, Seed, commit, shipped, values
from tests.e2e.road import OPERATIONS, Road
from tests.e2e.talk import misbehave, reactions, redeliver, replies, say, wait_for_reply

pytestmark = pytest.mark.e2e

VALUES = "env/dev/helm/values.yaml"
IMAGES_ONLY = (C, values(TAG), commit("Promote ${{ ctx.stage }}"), P, S)
TWO_STAGES = (("dev", ""), ("staging", "dev"))
BY_HAND = shipped("config/project.yaml").replace("^(dev|staging|prod)$", "^dev$")


async def start_two_stages(start_road: StartRoad) -> Road:
    """dev, where the first release has arrived, and staging, which takes Freight only when somebody says so."""
    files = (("config/project.yaml", BY_HAND),)
    road = await start_road(Seed(steps=IMAGES_ONLY, stages=TWO_STAGES, files=files), released=True)
    await road.wait_until_quiet()
    return road


async def alias_of(road: Road, text: str) -> str:
    """The alias of the Freight that holds an artifact."""
    event = await road.wait_for_event("freight", text, stage="")
    return event.message.partition(":")[0]


async def wait_for_aborted(road: Road, after: int, reason: str) -> None:
    await road.wait_for_event("aborted", reason, after=after)
    await road.wait_until_quiet()


async def open_release(road: Road) -> int:
    """A pull request of an image-only release, approved."""
    await road.publish(otel="1.1.0")
    pull = await road.wait_for_pull(after=1)
    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    return pull.number


async def test_promote_brings_freight_to_a_stage_that_waits_to_be_asked(start_road: StartRoad) -> None:
    road = await start_two_stages(start_road)
    assert await road.pulls("staging") == []
    reply = await say(road, 1, "/promote staging", "uma", answer="-1")
    assert "uma" in reply
    assert "may not" in reply
    assert await road.pulls("staging") == []
    await say(road, 1, "/promote staging", answer="rocket")
    pull = await road.wait_for_pull("staging")
    # Who asked for it cannot be the one who approves it.
    await road.approve(pull.number, "rafael")

    async def refused() -> bool:
        run = road.check(pull.head_sha)
        return run is not None and "asked for this promotion" in (run.summary or "")

    await road.until("the requester's review not to count", refused)
    await road.approve(pull.number, "olivia")
    await road.wait_until_mergeable(pull.number)
    await road.merge(pull.number)
    await road.wait_for_success("staging")
    assert "tag: 1.0.0" in await road.read("env/staging/helm/values.yaml")


async def test_promote_says_why_it_cannot(start_road: StartRoad) -> None:
    road = await start_two_stages(start_road)
    reply = await say(road, 1, "/promote nowhere", answer="-1")
    assert "nowhere" in reply
    assert "acme/dev" in reply
    reply = await say(road, 1, "/promote staging no-such-freight", answer="-1")
    assert "no-such-freight" in reply
    await road.publish(otel="1.1.0")
    alias = await alias_of(road, "otel-app 1.1.0")
    await road.wait_for_pull(after=1)
    reply = await say(road, 1, f"/promote staging {alias}", answer="-1")
    assert "not available" in reply
    assert await road.pulls("staging") == []


@pytest.mark.parametrize("named", ["by alias", "by hash"])
async def test_promote_takes_the_freight_that_is_named(start_road: StartRoad, named: str) -> None:
    road = await start_two_stages(start_road)
    alias = await alias_of(road, "otel-app 1.0.0")
    messages = [commit.message for commit in road.git.commits("refs/heads/main")]
    found = re.search(r"Lockstep-Freight: ([0-9a-f]+)", "\n".join(messages))
    assert found is not None
    name = alias if named == "by alias" else found[1][:9]
    await say(road, 1, f"/promote acme/staging {name}", answer="rocket")
    pull = await road.wait_for_pull("staging")
    assert alias in f"{road.issue(pull.number).title} {road.issue(pull.number).body}"


async def test_plan_previews_again_and_keeps_the_approvals_of_an_equal_preview(released: Road) -> None:
    road = released
    number = await open_release(road)
    head, after = road.pull(number).head_sha, await road.last_event()
    await say(road, number, "/plan", answer="rocket")
    await road.wait_for_event("preview", "/plan", after=after)
    await road.wait_until_quiet()
    assert road.pull(number).head_sha == head
    await road.wait_until_mergeable(number)


async def test_cancel_ends_the_promotion_and_closes_its_pull_request(released: Road) -> None:
    road = released
    number = await open_release(road)
    after = await road.last_event()
    await say(road, number, "/cancel", answer="rocket")
    await wait_for_aborted(road, after, "cancelled")
    assert road.issue(number).state == "closed"
    assert await road.branches() == ["main"]
    assert len(await road.pulls()) == 2
    assert "tag: 1.0.0" in await road.read(VALUES)


async def test_a_hold_keeps_a_pull_request_from_being_merged_until_resume(released: Road) -> None:
    road = released
    number = await open_release(road)
    await say(road, number, "/hold wait for the sales event", answer="rocket")
    run = await road.wait_for_check(number, "lockstep", None)
    assert "sales event" in f"{run.title} {run.summary}"
    await say(road, number, "/resume", answer="rocket")
    await road.wait_until_mergeable(number)
    after = await road.last_event()
    await road.merge(number)
    await road.wait_for_success(after=after)


async def test_a_hold_also_keeps_what_a_person_asked_for(released: Road) -> None:
    road = released
    await road.publish(otel="1.1.0")
    alias = await alias_of(road, "otel-app 1.1.0")
    pull = await road.wait_for_pull(after=1)
    after = await road.last_event()
    await say(road, pull.number, "/cancel", answer="rocket")
    await wait_for_aborted(road, after, "cancelled")
    await say(road, pull.number, f"/promote dev {alias}", answer="rocket")
    pull = await road.wait_for_pull(after=pull.number)
    await road.approve(pull.number, "olivia")
    await road.wait_until_mergeable(pull.number)
    await say(road, pull.number, "/hold not today", answer="rocket")
    await road.wait_for_check(pull.number, "lockstep", None)


async def test_a_freeze_turns_every_check_until_unfreeze(released: Road) -> None:
    road = released
    number = await open_release(road)
    reply = await say(road, number, "/freeze the audit runs", "rafael", answer="-1")
    assert "may not" in reply
    await say(road, number, "/freeze the audit runs", "olivia", answer="rocket")
    run = await road.wait_for_check(number, "lockstep", None)
    assert "the audit runs" in f"{run.title} {run.summary}"
    await say(road, number, "/unfreeze", "olivia", answer="rocket")
    await road.wait_until_mergeable(number)


async def test_rollback_goes_back_to_the_former_freight_and_holds_newer(released: Road) -> None:
    road = released
    first, url = await alias_of(road, "otel-app 1.0.0"), road.outputs()["lambda_url"]
    await road.publish(otel="1.1.0", lambda_="1.1.0")
    await road.wait_for_pull(after=1)
    number = await road.release()
    after = await road.last_event()
    await say(road, number, "/rollback dev", answer="rocket")
    pull = await road.wait_for_pull(after=number)
    assert first in f"{road.issue(pull.number).title} {road.issue(pull.number).body}"
    text = "\n".join(comment.body for comment in road.comments(pull.number, "plan"))
    assert "lambda-app:1.0.0" in text
    await road.approve(pull.number, "olivia")
    await road.wait_until_mergeable(pull.number)
    await road.merge(pull.number)
    await road.wait_for_success(after=after)
    assert "tag: 1.0.0" in await road.read(VALUES)
    assert "lambda-app:1.0.0" in str(road.sandbox.cloud.read_state("acme/dev"))
    assert road.outputs()["lambda_url"] == url
    # Newer Freight is held until somebody promotes it.
    await road.publish(otel="1.2.0")
    alias = await alias_of(road, "otel-app 1.2.0")
    await road.wait_until_quiet()
    assert len(await road.pulls()) == 3
    await say(road, pull.number, f"/promote dev {alias}", answer="rocket")
    await road.wait_for_pull(after=pull.number)


async def test_questions_are_answered_on_the_pull_request(released: Road) -> None:
    road = released
    number = await open_release(road)
    for text, wanted in (("/explain", "Approvals"), ("/status", "1.0.0"), ("/help", "/rollback")):
        comment = await road.comment(number, text, "uma")
        assert wanted in await wait_for_reply(road, comment), text
        assert reactions(road, comment) == ["eyes", "rocket"]


async def test_a_misspelt_command_is_answered_with_the_nearest(released: Road) -> None:
    road = released
    reply = await say(road, 1, "/promot dev", answer="-1")
    assert "/promote" in reply
    assert len(reply) < 300
    reply = await say(road, 1, "/rollback dev --force", answer="-1")
    assert "no options" in reply


async def test_only_the_first_line_of_a_new_comment_by_a_person_is_a_command(released: Road) -> None:
    road = released
    before = len(await road.requests())
    edited = await road.comment(1, "Nice work.")
    actions = road.sandbox.github.actions
    actions.edit_comment("rafael", OPERATIONS, edited, "/promote dev")
    for text in ("> /promote dev", "Please\n/promote dev", "```\n/promote dev\n```", "a /promote dev"):
        await road.comment(1, text)
    await road.wait_until_quiet()
    assert await road.requests_of_bot(before) == []
    assert len(await road.pulls()) == 1


async def test_a_command_that_is_delivered_twice_runs_once(released: Road) -> None:
    road = released
    await misbehave(road, kind="doubled", event="issue_comment")
    comment = await road.comment(1, "/status")
    await wait_for_reply(road, comment)
    await road.wait_until_quiet()
    sent = road.sandbox.github.world.store.find(Delivery, event="issue_comment", action="created")
    # And once more, by the button on the App's page.
    await redeliver(road, next(s for s in sent if "/status" in s.payload))
    await road.wait_until_quiet()
    assert len(replies(road, comment)) == 1


async def test_a_command_whose_delivery_was_lost_is_found(start_road: StartRoad) -> None:
    road = await start_road(released=True, LOCKSTEP_SWEEP="2")
    await misbehave(road, kind="lost", event="issue_comment")
    comment = await road.comment(1, "/status")
    await wait_for_reply(road, comment)


async def test_a_command_that_was_never_delivered_is_found(start_road: StartRoad) -> None:
    road = await start_road(released=True, LOCKSTEP_SWEEP="2")
    await road.wait_until_quiet()
    await misbehave(road, kind="vanished", event="issue_comment")
    comment = await road.comment(1, "/status")
    await wait_for_reply(road, comment)
    await road.wait_until_quiet()
    assert len(replies(road, comment)) == 1


async def test_freight_is_made_by_hand_of_the_versions_that_are_named(start_road: StartRoad) -> None:
    manual = shipped("config/warehouse.yaml").replace(
        "spec:\n", "spec:\n  freightCreationPolicy: Manual\n", 1
    )
    files = (("config/warehouse.yaml", manual),)
    road = await start_road(Seed(steps=IMAGES_ONLY, files=files), released=True)
    after = await road.last_event()
    await road.publish(otel="1.1.0")
    await road.publish(otel="1.2.0")
    for text, user, said in (
        ("/freight otel", "uma", "may not do this"),
        ("/freight shop", "rafael", "acme/otel"),
        ("/freight otel web=1.0.0", "rafael", "names no subscription"),
        ("/freight otel otel-app=9.9.9", "rafael", "there is 1.2.0, 1.1.0, 1.0.0"),
    ):
        assert said in await say(road, 1, text, user, answer="-1")
    made = await wait_for_reply(road, await road.comment(1, "/freight otel otel-app=1.1.0", "rafael"))
    event = await road.wait_for_event("freight", stage="", after=after)
    alias, _, held = event.message.partition(": ")
    assert held == "otel-app 1.1.0, lambda-app 1.0.0, made by hand by rafael"
    assert alias in made
    assert "sha256:" in made
    pull = await road.wait_for_pull(after=1)
    assert alias in f"{road.issue(pull.number).title} {road.issue(pull.number).body}"
    full = road.address("registry.sandbox.example/otel-app")
    text = f"/freight acme/otel {full}=1.1.0 lambda-app=1.0.0"
    again = await wait_for_reply(road, await road.comment(1, text, "rafael"))
    assert f"{alias} is Freight already" in again
    assert len([event for event in await road.events() if event.kind == "freight"]) == 2
