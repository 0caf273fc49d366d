"""People's own pull requests that change what Terraform reads: planned there, approved, merged, promoted once more."""

from __future__ import annotations

import asyncio

import pytest

from bot.sandbox.github.pulls import NewPull
from bot.sandbox.github.records import Delivery, PullRequest
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import Seed
from tests.e2e.road import OPERATIONS, Road
from tests.e2e.talk import redeliver, say, wait_for_reply

pytestmark = pytest.mark.e2e

TFVARS = "env/{}/terraform/env.auto.tfvars"
VALUES = "env/{}/helm/values.yaml"
BOTH = Seed(stages=(("dev", ""), ("staging", "dev")))


async def propose(road: Road, branch: str, files: dict[str, tuple[str, str]]) -> PullRequest:
    """olivia's own pull request to main, from a branch that replaces a text in each of these files."""
    changed = {}
    for path, (old, new) in files.items():
        text = await road.read(path)
        assert old in text, f"{path} does not hold {old!r}"
        changed[path] = text.replace(old, new)
    await road.push(changed, f"Edit {branch}", branch=branch)
    return await open_pull(road, branch, "olivia")


async def open_pull(road: Road, head: str, user: str) -> PullRequest:
    new = NewPull(f"Change {head}", head, "main", "")
    return await asyncio.to_thread(road.sandbox.github.actions.open_pull, user, OPERATIONS, new)


async def revert(road: Road, number: int, user: str = "olivia") -> PullRequest:
    """Press "Revert" on a merged pull request."""
    return await asyncio.to_thread(road.sandbox.github.actions.revert, user, OPERATIONS, number)


async def wait_for_plan(road: Road, number: int, *texts: str) -> str:
    """The plan comment, once the plan check on the present head is over and the comment holds these texts."""

    async def probe() -> str | None:
        check = road.check(road.pull(number).head_sha, "lockstep / plan")
        body = "".join(comment.body for comment in road.comments(number, "plan"))
        ready = check is not None and check.conclusion is not None
        return body if ready and all(text in body for text in texts) else None

    return await road.until(f"a plan on #{number} with {texts}", probe)


async def merge_approved(road: Road, number: int, *reviewers: str) -> str:
    """Approve what is shown now, and merge it once the required check is green."""
    for reviewer in reviewers or ("rafael",):
        await road.approve(number, reviewer)
    await road.wait_until_mergeable(number)
    return await road.merge(number)


async def promotions(road: Road, *, after: int) -> list[str]:
    """What the timeline tells of promotions that began, oldest first."""
    return [f"{e.stage}: {e.message}" for e in await road.events(after=after) if e.kind == "promotion"]


async def knows(road: Road, tag: str) -> bool:
    """Whether there is Freight with this tag of otel-app."""
    return any(e.kind == "freight" and f"otel-app {tag}" in e.message for e in await road.events())


async def redeliver_merge(road: Road, number: int) -> None:
    """Have GitHub send the event of the merge once more."""
    sent = road.sandbox.github.world.store.find(Delivery, event="pull_request", action="closed")
    await redeliver(road, next(row for row in sent if f'"number":{number}' in row.payload.replace(" ", "")))


async def test_it_is_planned_and_after_the_merge_promoted_once_more_stage_by_stage(
    start_road: StartRoad,
) -> None:
    road = await start_road(BOTH, released=True)
    await road.release("staging")
    stages = ("dev", "staging")
    urls = {stage: road.outputs(stage)["lambda_url"] for stage in stages}
    written = {stage: road.versions(stage) for stage in stages}
    edit = ("memory_mb =", "url_generation = 2\nmemory_mb =")
    pull = await propose(road, "address", {TFVARS.format(stage): edit for stage in stages})
    body = await wait_for_plan(road, pull.number, "<known after apply: lambda_url>")
    assert body.index("acme/dev") < body.index("acme/staging")
    assert {stage: road.versions(stage) for stage in stages} == written

    # The address is made anew: what is replaced asks for a second pair of eyes here, too.
    await road.approve(pull.number, "rafael")
    await road.wait_for_check(pull.number, "lockstep", None)
    after = await road.last_event()
    merge = await merge_approved(road, pull.number, "dana")
    await road.wait_for_event("fulfil", stage="dev", after=after)
    await road.bot.kill()
    await road.start_bot()
    await road.wait_for_success("dev", after=after)
    await road.wait_for_success("staging", after=after)

    began = await promotions(road, after=after)
    assert [text.partition(":")[0] for text in began] == ["dev", "staging"]
    assert all(text.endswith(f"after #{pull.number}") for text in began)
    assert {stage: road.applies(stage) for stage in stages} == {"dev": 2, "staging": 2}
    for stage in stages:
        url = road.outputs(stage)["lambda_url"]
        assert url != urls[stage]
        assert url in await road.read(VALUES.format(stage))
        assert road.live(stage)[1]["LAMBDA_URL"] == url
    releases = await road.commits_since(merge)
    assert [c.message.partition("\n")[0].split(" to ")[0] for c in releases] == [
        "Promote staging",
        "Promote dev",
    ]
    outcomes = road.checks(merge)
    assert {name: run.conclusion for name, run in outcomes.items() if name != "lockstep"} == {
        "lockstep / dev": "success",
        "lockstep / staging": "success",
    }
    assert road.issue(pull.number).title == "Change address"

    await redeliver_merge(road, pull.number)
    await road.wait_until_quiet()
    assert await promotions(road, after=after) == began
    assert await road.leaks() == []


async def test_a_merge_past_the_rules_is_held_and_a_fork_is_planned_on_a_word(released: Road) -> None:
    road = released
    pull = await propose(road, "memory", {TFVARS.format("dev"): ("memory_mb = 128", "memory_mb = 192")})
    await wait_for_plan(road, pull.number, "192")
    road.forget_terraform()
    after = await road.last_event()
    await road.bot.stop()
    merge = await road.merge(pull.number, "dana", bypass=True)
    await road.start_bot()
    await road.wait_for_event("waits", "merged, held: 0 of 1 approvals", after=after)
    await road.wait_until_quiet()
    assert road.applies() == 0
    outcome = road.check(merge, "lockstep / dev")
    assert outcome is not None
    assert outcome.conclusion == "action_required"
    await road.approve(pull.number)
    await road.wait_for_success(after=after)
    assert '"memory_mb": 192' in str(road.sandbox.cloud.read_state("acme/dev")).replace("'", '"')

    # A stranger's code is not run, whatever it is, until somebody has read that very commit.
    road.forget_terraform()
    actions = road.sandbox.github.actions
    await asyncio.to_thread(road.sandbox.github.create_fork, "uma", OPERATIONS)
    text = (await road.read(TFVARS.format("dev"))).replace("memory_mb = 192", "memory_mb = 224")
    files: dict[str, bytes | None] = {TFVARS.format("dev"): text.encode()}
    head = await asyncio.to_thread(actions.push, "uma", "uma/operations", "fix", files, "More")
    fork = await open_pull(road, "uma:fix", "uma")
    await road.wait_for_check(fork.number, "lockstep / plan", "action_required")
    await road.wait_for_check(fork.number, "lockstep", None)
    assert "may not" in await say(road, fork.number, f"/plan {head}", "uma", answer="-1")
    assert head in await say(road, fork.number, "/plan", "rafael", answer="-1")
    await road.wait_until_quiet()
    assert road.terraform() == {}
    await say(road, fork.number, f"/plan {head}", "rafael")
    await wait_for_plan(road, fork.number, "224")
    ran = road.terraform()
    again = await asyncio.to_thread(
        actions.push, "uma", "uma/operations", "fix", {"more.txt": b"more"}, "And"
    )
    await road.wait_for_check(fork.number, "lockstep / plan", "action_required")
    assert road.pull(fork.number).head_sha == again
    await road.wait_until_quiet()
    assert road.terraform() == ran


async def test_a_revert_marks_the_stage_until_it_is_reverted_itself(released: Road) -> None:
    road = released
    await road.publish(otel="1.1.0")
    number = await road.release()
    road.forget_terraform()
    after = await road.last_event()
    undo = await revert(road, number)
    await merge_approved(road, undo.number)
    differs = await road.wait_for_event("differs", after=after)
    assert VALUES.format("dev") in differs.message
    await road.publish(otel="1.2.0")
    await road.until("Freight of 1.2.0", lambda: knows(road, "1.2.0"))
    await road.wait_until_quiet()
    assert len(await road.pulls()) == 2
    asked = await road.comment(number, "/explain")
    assert "differs from its Freight" in await wait_for_reply(road, asked)
    assert road.terraform() == {}

    again = await revert(road, undo.number)
    await merge_approved(road, again.number)
    await road.wait_for_event("agrees", after=differs.number)
    pull = await road.wait_for_pull(after=number)
    assert "1.2.0" in road.issue(pull.number).title
