"""Scenarios 12 to 14, and conditions: tasks whose steps stand in another order than the shipped one."""

from __future__ import annotations

import pytest

from tests.e2e import claims
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import TAG, YU, A, C, H, M, O, P, S, Seed, Y, apply, commit, output, replaced, values

pytestmark = pytest.mark.e2e

TFVARS = "env/dev/terraform/env.auto.tfvars"
VALUES = "env/dev/helm/values.yaml"
IMAGE = "registry.sandbox.example/lambda-app"
VARS = """\
vars:
  - name: image_uri
    value: ${{ vars.lambda }}:${{ imageFrom(vars.lambda).Tag }}
"""
TAG_LINES = [
    f'{VALUES}:-  tag: "0.9.0"  # written by a promotion',
    f"{VALUES}:+  tag: 1.0.0  # written by a promotion",
]
TFVARS_LINES = [f'{TFVARS}:-image_uri = "{IMAGE}:0.9.0"', f'{TFVARS}:+image_uri = "{IMAGE}:1.0.0"']


def url_lines(url: str) -> list[str]:
    return [
        f'{VALUES}:-  LAMBDA_URL: ""  # exists after Terraform\'s first apply',
        f"{VALUES}:+  LAMBDA_URL: {url}  # exists after Terraform's first apply",
    ]


async def test_inputs_by_variables_alone_are_reviewed_in_an_empty_pull_request(start_road: StartRoad) -> None:
    without = replaced(TFVARS, (f'image_uri = "{IMAGE}:0.9.0"\n', ""))
    road = await start_road(Seed(steps=(C, apply(VARS), output(VARS), YU, M, P), files=(without,)), bot=False)
    before = await claims.look_before(road)
    await road.start_bot()
    pull = await road.wait_for_pull()
    await road.wait_until_quiet()
    await claims.claim_nothing_happened_but_the_outbox(road, before)
    assert await claims.lane(road) == "coordinated"
    assert await road.files(pull.number) == {}
    assert await road.changed(before.tip, pull.head_sha) == []
    assert len(await road.commits_since(before.tip, "lockstep/acme/dev")) == 1
    await road.release()
    release = await claims.claim_release(
        road, before, pull.number, [*TAG_LINES, *url_lines(road.outputs()["lambda_url"])], released=True
    )
    assert release is not None
    assert "Apply complete! Resources: 4 added" in release.message
    made = road.sandbox.cloud.read_state("acme/dev")
    assert made is not None
    assert road.address(f"{IMAGE}:1.0.0") in str(made)


async def test_values_written_before_the_apply_wait_for_it_like_those_behind_it(
    start_road: StartRoad,
) -> None:
    road = await start_road(Seed(steps=(C, Y, H, A, M, P, S)), bot=False)
    before = await claims.look_before(road)
    await road.start_bot()
    pull = await road.wait_for_pull()
    await road.wait_until_quiet()
    assert await claims.lane(road) == "coordinated"
    assert list(await road.files(pull.number)) == [TFVARS]
    assert claims.deferred(road, pull.number) == [line.partition(":")[2] for line in TAG_LINES]
    await road.release()
    await claims.claim_release(road, before, pull.number, [*TAG_LINES, *TFVARS_LINES], released=True)
    assert road.live()[0] == ["1.0.0"]


async def test_what_is_pushed_before_the_apply_is_merged_with_its_own_message(start_road: StartRoad) -> None:
    own = commit("Set the image of ${{ ctx.stage }}", "", "To ${{ imageFrom(vars.lambda).Tag }}.")
    road = await start_road(Seed(steps=(C, H, own, P, A)), bot=False)
    before = await claims.look_before(road)
    await road.start_bot()
    pull = await road.wait_for_pull()
    await road.wait_until_quiet()
    await claims.claim_nothing_happened_but_the_outbox(road, before)
    assert await claims.lane(road) == "infra-only"
    assert list(await road.files(pull.number)) == [TFVARS]
    assert claims.deferred(road, pull.number) == []
    assert claims.on_merge(road, pull.number) == ["tf-apply"]
    prepared = await road.commits_since(before.tip, "lockstep/acme/dev")
    assert len(prepared) == 1
    assert prepared[0].message.startswith("Set the image of dev\n\nTo 1.0.0.\n\nLockstep-")
    await road.release()
    await claims.claim_release(road, before, pull.number, TFVARS_LINES, released=False)
    assert road.terraform()["POST"] == 1
    assert road.outputs()["lambda_url"].startswith("https://")


@pytest.mark.parametrize(
    ("condition", "written"),
    [
        ("${{ task.outputs['tf-output'].lambda_url.value contains 'lambda-url' }}", True),
        ("${{ task.outputs['tf-output'].lambda_url.value contains 'elsewhere' }}", False),
    ],
    ids=["and it holds", "and it does not hold"],
)
async def test_a_step_whose_condition_is_an_output_is_shown_as_such(
    start_road: StartRoad, condition: str, written: bool
) -> None:
    only_if = values(("env.LOG_LEVEL", "info"), condition=condition)
    road = await start_road(Seed(steps=(C, H, A, O, values(TAG), only_if, M, P, S)), bot=False)
    before = await claims.look_before(road)
    await road.start_bot()
    pull = await road.wait_for_pull()
    await road.wait_until_quiet()
    await claims.claim_nothing_happened_but_the_outbox(road, before)
    assert await claims.lane(road) == "coordinated"
    assert "only if" in (road.issue(pull.number).body or "").lower()
    await road.release()
    lines = [f"{VALUES}:-  LOG_LEVEL: debug", f"{VALUES}:+  LOG_LEVEL: info"] if written else []
    await claims.claim_release(road, before, pull.number, [*TAG_LINES, *lines, *TFVARS_LINES], released=True)
