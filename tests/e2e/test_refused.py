"""Scenarios 8 to 11 and 19: previews that fail, where they are shown, and how they turn green."""

from __future__ import annotations

import pytest

from bot.sandbox.github.records import CheckRun
from tests.e2e import claims
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import TAG, A, C, H, M, O, P, S, Seed, output, replaced, values
from tests.e2e.road import Road

pytestmark = pytest.mark.e2e

TFVARS = "env/dev/terraform/env.auto.tfvars"
VALUES = "env/dev/helm/values.yaml"


async def wait_for_red(road: Road, containing: str) -> tuple[int, CheckRun]:
    """The pull request that is red for this reason: in its check, its body, and the timeline."""
    await road.wait_for_event("review", containing)
    pull = await road.wait_for_pull()
    gate = await road.wait_for_check(pull.number, "lockstep", "failure")
    assert containing in (gate.title or "")
    assert containing in (road.issue(pull.number).body or "").replace("\\", "")
    return pull.number, gate


async def claim_nothing_is_applied_when_merged_anyway(road: Road, before: claims.Before, number: int) -> None:
    """Invariants 8 and 16: merged by somebody who may pass the rules, a red preview still has no effect."""
    await road.approve(number)
    await road.merge(number, "olivia", bypass=True)
    await road.wait_for_event("held", "merged while red")
    await road.wait_until_quiet()
    merge = road.pull(number).merge_commit_sha or ""
    assert [c.sha for c in await road.commits_since(before.tip)] == [merge]
    outcome = road.check(merge, "lockstep / dev")
    assert outcome is not None
    assert outcome.conclusion == "action_required"
    assert len(road.sandbox.cloud.versions("acme/dev")) == before.state_versions
    assert str(road.operation().get("startedAt", "")) == before.operation


async def test_a_sensitive_output_in_a_file_is_red_before_anything_is_applied(start_road: StartRoad) -> None:
    written = values(TAG, ("env.LAMBDA_URL", "${{ task.outputs['tf-output'].invoke_key.value }}"))
    road = await start_road(Seed(steps=(C, H, A, output("sensitive: true"), written, M, P, S)), bot=False)
    before = await claims.look_before(road)
    await road.start_bot()
    number, gate = await wait_for_red(road, "invoke_key")
    assert "sensitive" in f"{gate.title} {gate.summary}"
    await road.wait_until_quiet()
    await claims.claim_nothing_happened_but_the_outbox(road, before)
    await claims.claim_no_leak(road)
    await claim_nothing_is_applied_when_merged_anyway(road, before, number)


async def test_a_missing_key_of_the_values_is_red_and_green_once_main_has_it(start_road: StartRoad) -> None:
    road = await start_road(
        Seed(files=(replaced(VALUES, ('  LAMBDA_URL: ""  # exists after Terraform\'s first apply\n', "")),)),
        bot=False,
    )
    before = await claims.look_before(road)
    await road.start_bot()
    number, _ = await wait_for_red(road, "env.LAMBDA_URL")
    red_head = road.pull(number).head_sha
    await road.wait_until_quiet()
    await claims.claim_nothing_happened_but_the_outbox(road, before)
    await claims.claim_comments(road, number, outcome=False)

    await road.edit(VALUES, "  LOG_LEVEL: debug\n", '  LOG_LEVEL: debug\n  LAMBDA_URL: ""\n')
    await road.wait_for_check(number, "lockstep", None)
    await road.wait_for_event("waits", "0 of 1 approvals")
    await road.wait_until_quiet()
    assert road.pull(number).head_sha != red_head
    assert await claims.lane(road) == "coordinated"
    assert "+  LAMBDA_URL: <known after apply: lambda_url>" in claims.deferred(road, number)
    await road.release()
    assert road.live()[1]["LAMBDA_URL"] == road.outputs()["lambda_url"]
    assert [p.number for p in await road.pulls()] == [number]


async def test_a_missing_key_of_the_tfvars_opens_nothing_and_fails_a_check_on_main(
    start_road: StartRoad,
) -> None:
    image = 'image_uri = "registry.sandbox.example/lambda-app:0.9.0"\n'
    road = await start_road(Seed(files=(replaced(TFVARS, (image, "")),)), bot=False)
    before = await claims.look_before(road)
    await road.start_bot()
    event = await road.wait_for_event("failed", "image_uri")
    assert TFVARS in event.message
    await road.wait_until_quiet()
    assert await road.pulls() == []
    assert await road.branches() == ["main"]
    check = road.check(before.tip, "lockstep / dev")
    assert check is not None
    assert check.conclusion == "failure"
    assert "image_uri" in (check.title or "")
    await claims.claim_nothing_happened_but_the_outbox(road, before)
    assert road.terraform() == {}

    # As it had no effect it is tried again when a touched path changes.
    await road.edit(TFVARS, "memory_mb = 128", 'image_uri = "to-be-replaced"\nmemory_mb = 128')
    pull = await road.wait_for_pull()
    await road.release()
    assert road.live()[0] == ["1.0.0"]
    assert [p.number for p in await road.pulls()] == [pull.number]


async def test_a_plan_that_fails_is_red_with_terraforms_first_error(start_road: StartRoad) -> None:
    main = "env/dev/terraform/main.tf"
    broken = replaced(main, ("image_uri = var.image_uri", "image_uri = var.imgae_uri"))
    road = await start_road(Seed(files=(broken,)), bot=False)
    before = await claims.look_before(road)
    await road.start_bot()
    number, gate = await wait_for_red(road, "Reference to undeclared input variable")
    assert "main.tf:" in (gate.title or "")
    plan = road.check(road.pull(number).head_sha, "lockstep / plan")
    assert plan is not None
    assert plan.conclusion == "failure"
    assert [(a["path"], a["annotation_level"]) for a in plan.annotations] == [(main, "failure")]
    assert "imgae_uri" in f"{plan.summary} {plan.text}"
    # What does not hinge on the plan is shown all the same.
    assert list(await road.files(number)) == [TFVARS]
    await road.wait_until_quiet()
    await claims.claim_nothing_happened_but_the_outbox(road, before)

    await road.edit(main, "var.imgae_uri", "var.image_uri")
    await road.wait_for_event("waits", "0 of 1 approvals")
    assert await claims.lane(road) == "coordinated"
    await road.release()
    assert road.live()[0] == ["1.0.0"]


async def test_an_output_in_an_address_is_red(start_road: StartRoad) -> None:
    written = values(TAG, path="${{ task.outputs['tf-output'].lambda_url.value }}.yaml")
    road = await start_road(Seed(steps=(C, H, A, O, written, M, P, S)), bot=False)
    before = await claims.look_before(road)
    await road.start_bot()
    number, _ = await wait_for_red(road, "a reviewer cannot see it")
    await road.wait_until_quiet()
    await claims.claim_nothing_happened_but_the_outbox(road, before)
    await claims.claim_no_leak(road)
    await claim_nothing_is_applied_when_merged_anyway(road, before, number)
