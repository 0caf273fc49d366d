"""Scenarios 1 to 7: releases of the shipped task that arrive."""

from __future__ import annotations

import pytest

from bot.sandbox.cloud import CloudFaults
from tests.e2e import claims
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import TAG, A, C, H, M, O, P, S, Seed, replaced, values
from tests.e2e.road import Road
from tests.e2e.talk import push_again

pytestmark = pytest.mark.e2e

TFVARS = "env/dev/terraform/env.auto.tfvars"
VALUES = "env/dev/helm/values.yaml"


def image_lines(old: str, new: str) -> list[str]:
    name = "registry.sandbox.example/lambda-app"
    return [f'{TFVARS}:-image_uri = "{name}:{old}"', f'{TFVARS}:+image_uri = "{name}:{new}"']


async def test_the_first_release_writes_the_url_that_its_apply_makes(start_road: StartRoad) -> None:
    road = await start_road(bot=False)
    before = await claims.look_before(road)
    await road.start_bot()
    pull = await road.wait_for_pull()
    await road.wait_until_quiet()

    await claims.claim_nothing_happened_but_the_outbox(road, before)
    assert set(road.terraform()) == {"GET"}
    assert await claims.lane(road) == "coordinated"
    files = await road.files(pull.number)
    assert {path: claims.patch_lines(patch) for path, patch in files.items()} == {
        TFVARS: [road.address(line.removeprefix(f"{TFVARS}:")) for line in image_lines("0.9.0", "1.0.0")]
    }
    assert claims.deferred(road, pull.number) == [
        '-  tag: "0.9.0"  # written by a promotion',
        "+  tag: 1.0.0  # written by a promotion",
        '-  LAMBDA_URL: ""  # exists after Terraform\'s first apply',
        "+  LAMBDA_URL: <known after apply: lambda_url>  # exists after Terraform's first apply",
    ]
    assert claims.on_merge(road, pull.number) == [
        "tf-apply", "tf-output", "yaml-update", "commit", "git-push", "argocd-update",
    ]  # fmt: skip
    plan = road.check(pull.head_sha, "lockstep / plan")
    assert plan is not None
    assert (plan.conclusion, (plan.title or "")[:22]) == ("success", "4 to create, 3 outputs")
    gate = road.check(pull.head_sha)
    assert gate is not None
    assert gate.status == "in_progress"
    assert "1 approval" in (gate.title or "")

    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    await road.merge(pull.number)
    await road.wait_for_success()

    url = road.outputs()["lambda_url"]
    assert url.startswith("https://")
    release = await claims.claim_release(
        road,
        before,
        pull.number,
        [
            f'{VALUES}:-  tag: "0.9.0"  # written by a promotion',
            f"{VALUES}:+  tag: 1.0.0  # written by a promotion",
            f'{VALUES}:-  LAMBDA_URL: ""  # exists after Terraform\'s first apply',
            f"{VALUES}:+  LAMBDA_URL: {url}  # exists after Terraform's first apply",
            *image_lines("0.9.0", "1.0.0"),
        ],
        released=True,
    )
    assert release is not None
    named = claims.trailers(release.message)
    names = ("Freight", "Stage", "Promotion", "Step", "Terraform")
    assert set(named) >= {f"Lockstep-{name}" for name in names}
    assert named["Lockstep-Stage"] == "acme/dev"
    assert release.message.startswith(
        f"Promote dev to {named['Lockstep-Freight']}\n\notel-app: 1.0.0\nlambda-app: 1.0.0\n\nTerraform:\n"
        "Apply complete! Resources: 4 added, 0 changed, 0 destroyed.\n\nLockstep-"
    )
    # The order of effects: applied, then committed on top of the merge, then synced to that commit.
    assert road.terraform()["POST"] == 1
    assert road.terraform()["LOCK"] == road.terraform()["UNLOCK"] == 1
    assert road.operation()["syncResult"]["revision"] == release.sha
    assert road.live() == (["1.0.0"], {
        "LOG_LEVEL": "debug", "OTEL_SERVICE_NAME": "otel-app-dev", "LAMBDA_URL": url,
    })  # fmt: skip


async def test_two_new_images_keep_the_order_although_no_value_is_missing(released: Road) -> None:
    road = released
    before, url = await claims.look_before(road), road.outputs()["lambda_url"]
    await road.publish(otel="1.1.0", lambda_="1.1.0")
    pull = await road.wait_for_pull(after=1)
    await claims.claim_nothing_happened_but_the_outbox(road, before)
    assert await claims.lane(road) == "coordinated"
    assert (await road.wait_for_event("review", "the task asks for this order")).message
    assert list(await road.files(pull.number)) == [TFVARS]
    assert claims.deferred(road, pull.number) == [
        "-  tag: 1.0.0  # written by a promotion",
        "+  tag: 1.1.0  # written by a promotion",
    ]
    await road.release()
    assert road.outputs()["lambda_url"] == url
    release = await claims.claim_release(
        road,
        before,
        pull.number,
        [
            f"{VALUES}:-  tag: 1.0.0  # written by a promotion",
            f"{VALUES}:+  tag: 1.1.0  # written by a promotion",
            *image_lines("1.0.0", "1.1.0"),
        ],
        released=True,
    )
    assert release is not None
    assert "Apply complete! Resources: 0 added, 2 changed, 0 destroyed." in release.message
    assert road.live()[0] == ["1.1.0"]


async def claim_an_image_only_release(road: Road) -> None:
    """Scenario 3, whatever the state of the infrastructure is: Terraform is not even started."""
    before = await claims.look_before(road)
    await road.publish(otel="1.1.0")
    pull = await road.wait_for_pull(after=1)
    lines = ["-  tag: 1.0.0  # written by a promotion", "+  tag: 1.1.0  # written by a promotion"]
    await claims.claim_nothing_happened_but_the_outbox(road, before)
    assert await claims.lane(road) == "complete"
    assert {path: claims.patch_lines(p) for path, p in (await road.files(pull.number)).items()} == {
        VALUES: lines
    }
    assert claims.deferred(road, pull.number) == []
    assert claims.on_merge(road, pull.number) == ["argocd-update"]
    # The task's own message stands on the commit that the reviewer sees.
    head = road.git.commit(pull.head_sha)
    assert head.message.startswith("Promote dev to ")
    assert (
        "otel-app: 1.1.0\nlambda-app: 1.0.0\n\nTerraform:\nNo changes. Inputs equal those applied at "
        in head.message
    )

    await road.release()
    await claims.claim_release(
        road, before, pull.number, [f"{VALUES}:{line}" for line in lines], released=False
    )
    assert road.terraform() == {}
    assert road.operation()["syncResult"]["revision"] == road.pull(pull.number).merge_commit_sha
    assert road.live()[0] == ["1.1.0"]
    assert road.live()[1]["LAMBDA_URL"] == road.outputs()["lambda_url"]


async def test_an_image_alone_is_in_the_diff_and_runs_no_terraform(released: Road) -> None:
    await claim_an_image_only_release(released)


async def test_an_image_alone_waits_for_no_infrastructure(released: Road) -> None:
    # Terraform could not even read this state, and what it would find has drifted from the configuration.
    state = released.sandbox.cloud.read_state("acme/dev")
    assert state is not None
    for resource in state["resources"]:
        if resource["name"] == "execution_role":
            resource["instances"][0]["attributes"]["input"]["value"]["name"] = "renamed-by-hand"
    released.sandbox.cloud.write_state("acme/dev", state)
    released.sandbox.cloud.faults = CloudFaults(down=True)
    await claim_an_image_only_release(released)


async def test_what_an_abandoned_apply_left_is_pending_in_the_next_plan(released: Road) -> None:
    road = released
    await road.edit(TFVARS, "memory_mb = 128", "memory_mb = 128\nbroken = true")
    await road.publish(lambda_="1.1.0")
    pull = await road.wait_for_pull(after=1)
    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    await road.merge(pull.number)
    await road.wait_for_event("failed", "502 Bad Gateway")
    await road.wait_until_quiet()
    assert road.live()[0] == ["1.0.0"]

    await road.edit(TFVARS, "\nbroken = true", "")
    await road.publish(otel="1.1.0")
    freight = await road.wait_for_event("freight", "otel-app 1.1.0", stage="")
    before = await claims.look_before(road)
    await road.comment(pull.number, f"/promote dev {freight.message.partition(':')[0]}")
    pull = await road.wait_for_pull(after=pull.number)
    await road.wait_until_quiet()
    assert await claims.lane(road) == "coordinated"
    assert "pending" in road.comments(pull.number, "plan")[0].body
    assert await road.files(pull.number) == {}
    await road.release(reviewer="dana")
    await claims.claim_release(
        road,
        before,
        pull.number,
        [
            f"{VALUES}:-  tag: 1.0.0  # written by a promotion",
            f"{VALUES}:+  tag: 1.1.0  # written by a promotion",
        ],
        released=True,
    )
    assert road.live()[0] == ["1.1.0"]


async def test_the_same_artifacts_again_change_nothing(released: Road) -> None:
    road = released
    before, events = await claims.look_before(road), await road.last_event()
    digest = road.sandbox.registry.tags("otel-app")["1.0.0"]
    await push_again(road, "1.0.0")
    asked = road.sandbox.registry.counts().get("GET tags", 0)
    await road.publish(otel="1.0.0-rc.1")
    await road.sandbox.registry.drain()

    async def looked() -> bool:
        return road.sandbox.registry.counts().get("GET tags", 0) > asked

    await road.until("the Warehouse to be looked at", looked)
    await road.wait_until_quiet(2.0)
    assert road.sandbox.registry.tags("otel-app")["1.0.0"] == digest
    assert await road.requests_of_bot(before.requests) == []
    assert [e.message for e in await road.events(after=events) if e.stage == "dev"] == []
    assert await road.tip() == before.tip
    assert road.terraform() == {}


async def test_the_same_freight_again_is_a_no_op(released: Road) -> None:
    road = released
    before, events = await claims.look_before(road), await road.last_event()
    await road.comment(1, "/promote dev")
    await road.wait_for_success(after=events)
    # The description's marker may follow the audit log, which has the command now.
    strange = ("POST /repos/acme/operations/pulls", "git-receive-pack", "check-runs")
    assert [
        r for r in await road.requests_of_bot(before.requests) if any(part in r for part in strange)
    ] == []
    assert await road.tip() == before.tip
    assert road.terraform() == {}
    assert [p.number for p in await road.pulls()] == [1]
    assert road.live()[0] == ["1.0.0"]


async def test_an_output_that_is_partly_unknown_is_partly_expected(start_road: StartRoad) -> None:
    endpoint = """
output "endpoint" {
  value = {
    host = "functions.on.example"
    id   = terraform_data.function_url.id
  }
}
"""
    found = "${{ task.outputs['tf-output'].endpoint.value"
    written = values(TAG, ("env.HOST", found + ".host }}"), ("env.ID", found + ".id }}"))
    outputs = replaced(
        "env/dev/terraform/outputs.tf", ('output "lambda_url"', endpoint.lstrip() + '\noutput "lambda_url"')
    )
    held = replaced(VALUES, ('  LAMBDA_URL: ""', '  HOST: ""\n  ID: ""\n  LAMBDA_URL: ""'))
    road = await start_road(Seed(steps=(C, H, A, O, written, M, P, S), files=(outputs, held)))
    pull = await road.wait_for_pull()
    assert await claims.lane(road) == "coordinated"
    shown = claims.deferred(road, pull.number)
    assert "+  HOST: functions.on.example" in shown
    assert any(line.startswith("+  ID: <known after apply: endpoint") for line in shown), shown
    await road.release()
    made = road.outputs()["endpoint"]
    text = await road.read(VALUES)
    assert "  HOST: functions.on.example\n" in text
    assert f"  ID: {made['id']}\n" in text
    await claims.claim_no_leak(road)
