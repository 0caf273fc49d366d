"""Scenarios 15 to 17: two Terraform states in one task, and an edit of a directory behind its apply."""

from __future__ import annotations

import asyncio

import pytest

from bot.sandbox.github.records import PullRequest
from tests.e2e.conftest import StartRoad
from tests.e2e.own_tasks import own_tasks
from tests.e2e.pipelines import A, C, H, M, P, apply, hcl, output
from tests.e2e.road import Road
from tests.e2e.talk import say

pytestmark = pytest.mark.e2e

TFVARS = "env/{}/terraform/env.auto.tfvars"
BACKEND = """\
terraform {{
  backend "http" {{
    address        = "https://state.sandbox.example/state/acme/{0}"
    lock_address   = "https://state.sandbox.example/state/acme/{0}"
    unlock_address = "https://state.sandbox.example/state/acme/{0}"
    lock_method    = "LOCK"
    unlock_method  = "UNLOCK"
    retry_max      = 1
  }}
}}
"""
READER = (
    BACKEND.format("dev-app")
    + """
data "terraform_remote_state" "function" {
  backend = "http"
  config = {
    address   = "https://state.sandbox.example/state/acme/dev"
    retry_max = 0
  }
}

resource "terraform_data" "caller" {
  input = data.terraform_remote_state.function.outputs.lambda_url
}
"""
)
TAKER = (
    BACKEND.format("staging-app")
    + """
variable "url" {
  type = string
}

resource "terraform_data" "caller" {
  input = var.url
}
"""
)
APP = apply(directory="./src/env/${{ ctx.stage }}/app").replace("as: tf-apply", "as: app")
WRITE = hcl("url", "${{ task.outputs['tf-output'].lambda_url.value }}").replace(
    "terraform/env.auto.tfvars", "app/app.auto.tfvars"
)
TASKS = {
    "dev": (C, H, A, APP, M, P),
    "staging": (C, H, A, output(), WRITE, APP, M, P),
    "prod": (C, A, H, M, P),
}
NO_FUNCTION = {
    "version": 4,
    "terraform_version": "1.11.4",
    "serial": 1,
    "lineage": "5d0a6d8e-6f0a-4a52-9a4e-acc000000002",
    "outputs": {"lambda_url": {"value": "none yet", "type": "string"}},
    "resources": [],
    "check_results": None,
}


async def _merge(road: Road, stage: str, pull: PullRequest) -> int:
    """Approve and merge; the answer is the event after which everything was asked for."""
    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    after = await road.last_event()
    await road.merge(pull.number)
    return after


async def _accept(road: Road, stage: str, pull: PullRequest, after: int) -> None:
    """Say `/apply` with the digest that the stop names, and wait for the end."""
    stopped = await road.wait_for_event("stopped", stage=stage, after=after)
    await road.wait_until_quiet()
    text = "".join(comment.body for comment in road.comments(pull.number, "outcome"))
    digest = text.partition("/apply ")[2][:16]
    await say(road, pull.number, f"/apply {digest}")
    await road.wait_for_success(stage, after=stopped.number)


def _plan(road: Road, pull: PullRequest) -> str:
    return "".join(comment.body for comment in road.comments(pull.number, "plan"))


async def test_an_apply_behind_another_is_planned_again_once_that_is_done(start_road: StartRoad) -> None:
    files = (("env/dev/app/main.tf", READER), ("env/staging/app/main.tf", TAKER))
    taken = ("env/staging/app/app.auto.tfvars", 'url = "none yet"\n')
    road = await start_road(own_tasks(TASKS, *files, taken), bot=False)
    await asyncio.to_thread(road.sandbox.cloud.write_state, "acme/dev", NO_FUNCTION)
    await road.start_bot()

    # It reads the state of the first: what it shows is provisional, and what comes of it is asked for.
    pull = await road.wait_for_pull("dev")
    assert "as of today: an earlier apply comes first" in _plan(road, pull)
    after = await _merge(road, "dev", pull)
    await _accept(road, "dev", pull, after)
    url = road.outputs("dev")["lambda_url"]
    assert url in str(road.sandbox.cloud.read_state("acme/dev-app"))

    # It takes an output of the first: it cannot be planned before that, and is asked for then.
    pull = await road.wait_for_pull("staging")
    assert "planned after the merge" in _plan(road, pull)
    after = await _merge(road, "staging", pull)
    await _accept(road, "staging", pull, after)
    url = road.outputs("staging")["lambda_url"]
    assert url in str(road.sandbox.cloud.read_state("acme/staging-app"))
    assert f'url = "{url}"' in await road.read("env/staging/app/app.auto.tfvars")

    # Its directory is edited behind it: that is warned of, and pending in the next release.
    pull = await road.wait_for_pull("prod")
    assert "after it was applied" in (road.issue(pull.number).body or "")
    after = await _merge(road, "prod", pull)
    await road.wait_for_success("prod", after=after)
    assert "lambda-app:1.0.0" in await road.read(TFVARS.format("prod"))
    assert "lambda-app:0.9.0" in str(road.sandbox.cloud.read_state("acme/prod"))

    last = pull.number
    await road.publish(otel="1.1.0", lambda_="1.1.0")
    pull = await road.wait_for_pull("prod", after=last)
    assert "lambda-app:1.0.0" in _plan(road, pull)
    assert "pending" in _plan(road, pull).lower()

    # The first changes in place and the second reads nothing new: it is skipped without a word.
    pull = await road.wait_for_pull("dev", after=last)
    assert "no changes as of today" in _plan(road, pull)
    written = len(road.sandbox.cloud.versions("acme/dev-app"))
    after = await _merge(road, "dev", pull)
    await road.wait_for_success("dev", after=after)
    assert "lambda-app:1.1.0" in str(road.sandbox.cloud.read_state("acme/dev"))
    assert len(road.sandbox.cloud.versions("acme/dev-app")) == written
