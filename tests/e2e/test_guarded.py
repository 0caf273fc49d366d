"""Scenario 43 and section 10 of the review gate: tasks that open and await their pull request themselves."""

from __future__ import annotations

import asyncio

import pytest

from bot.sandbox.github.records import CheckRun, PullRequest
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import (
    ENVIRONMENT,
    TAG,
    URL,
    C,
    H,
    S,
    Seed,
    apply,
    clone,
    commit,
    indent,
    output,
    values,
)
from tests.e2e.road import OPERATIONS, Road

pytestmark = pytest.mark.e2e

TFVARS = "env/dev/terraform/env.auto.tfvars"
VALUES = "env/dev/helm/values.yaml"


def behind(step: str) -> str:
    """A step that works in the checkout which is made behind the merge."""
    return step.replace("./src", "./merged")


PREPARE = """\
uses: git-commit
as: prepare
config:
  path: ./src
  message: |
    Function ${{ imageFrom(vars.lambda).Tag }} for ${{ ctx.stage }}

    Asked for by the task.
"""
PUSH = "uses: git-push\nas: push\nconfig:\n  path: ./src\n  generateTargetBranch: true\n"
PUSH_NAMED = "uses: git-push\nas: push\nconfig:\n  path: ./src\n  targetBranch: release/${{ ctx.stage }}\n"
PLAN = f"""\
uses: tf-plan
as: plan
config:
  dir: ./src/env/${{{{ ctx.stage }}}}/terraform
{indent(ENVIRONMENT, 2)}"""
OPEN = """\
uses: git-open-pr
as: open
config:
  repoURL: ${{ vars.repoURL }}
  sourceBranch: ${{ task.outputs['push'].branch }}
  targetBranch: ${{ vars.branch }}
  title: Release ${{ ctx.targetFreight.name }} to ${{ ctx.stage }}
  description: |
    Runbook: look at the *dashboard* first.

    ${{ task.outputs['plan'].plan }}
  labels: [release, "${{ ctx.stage }}"]
"""
OPEN_PLAIN = """\
uses: git-open-pr
as: open
config:
  repoURL: ${{ vars.repoURL }}
  sourceBranch: ${{ task.outputs['push'].branch }}
  targetBranch: ${{ vars.branch }}
"""
NUMBER = "  repoURL: ${{ vars.repoURL }}\n  prNumber: ${{ task.outputs['open'].pr.id }}\n"
WAIT = f"uses: git-wait-for-pr\nas: wait\nconfig:\n{NUMBER}"
MERGE = f"uses: git-merge-pr\nas: merge\nconfig:\n{NUMBER}  wait: true\n  mergeMethod: squash\n"
P = "uses: git-push\nconfig:\n  path: ./src\n  targetBranch: ${{ vars.branch }}\n"

SYNC = S.replace("outputs['commit']", "outputs['wait']")

POST = "uses: http\nconfig:\n  url: https://hooks.example/told\n  method: POST\n"

REST = (apply(), output(), values(TAG, URL), commit(), P, S)
FRESH = (C, H, PLAN, PREPARE, PUSH, OPEN, WAIT, *(behind(step) for step in (clone(), *REST)))
"""As Kargo's documentation has it: a generated branch, and a fresh checkout of the target behind the merge."""
IN_PLACE = (C, H, PREPARE, PUSH_NAMED, OPEN_PLAIN, WAIT, *REST)
"""In one checkout, by a branch that the author names."""
IMAGE = (C, values(TAG), PREPARE, PUSH, OPEN_PLAIN, WAIT, SYNC)
MERGING = (C, values(TAG), PREPARE, PUSH_NAMED, OPEN_PLAIN, MERGE, SYNC.replace("['wait']", "['merge']"))


async def wait_for_pull(road: Road, *, after: int = 0) -> PullRequest:
    """The open pull request of the task's own branch, once its plan comment and its check are there."""

    async def probe() -> PullRequest | None:
        for pull in open_pulls(road):
            if pull.number > after and road.comments(pull.number, "plan") and road.check(pull.head_sha):
                return pull
        return None

    return await road.until("the task's own pull request", probe)


def open_pulls(road: Road) -> list[PullRequest]:
    found = road.sandbox.github.world.store.find(PullRequest, repo_id=road.repository.id)
    return [pull for pull in found if road.issue(pull.number).state == "open"]


def lockstep_checks(road: Road, pull: PullRequest) -> list[CheckRun]:
    """All that the required check ever said on the head: a moment of green is enough for a merge."""
    store = road.sandbox.github.world.store
    return store.find(CheckRun, repo_id=road.repository.id, head_sha=pull.head_sha, name="lockstep")


async def test_the_whole_road_of_a_task_with_its_own_pull_request(start_road: StartRoad) -> None:
    road = await start_road(Seed(steps=FRESH))
    pull = await wait_for_pull(road)
    issue = road.issue(pull.number)
    body = issue.body or ""
    assert pull.head_ref.startswith("kargo/promotion/dev.")
    assert issue.title.startswith("Release ")
    assert "Runbook: look at the *dashboard* first." in body
    said = body.partition("Runbook")[2]
    assert "terraform_data" in said or "Plan:" in said, said
    assert "<known after apply: lambda_url>" in body
    assert sorted(issue.labels) == ["dev", "release"]
    assert list(await road.files(pull.number)) == [TFVARS]
    head = road.git.commit(pull.head_sha).message
    assert head.startswith("Function 1.0.0 for dev\n\nAsked for by the task.")
    assert "Lockstep-Preview:" in head
    assert set(road.checks(pull.head_sha)) == {"lockstep", "lockstep / plan"}

    assert {run.conclusion for run in lockstep_checks(road, pull)} == {None}
    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    before = await road.tip()
    merge = await road.merge(pull.number)
    await road.wait_for_success()
    (release,) = await road.commits_since(merge)
    assert list(release.parents) == [merge]
    assert "Apply complete!" in release.message
    assert sorted({line.partition(":")[0] for line in await road.changed(before)}) == [VALUES, TFVARS]
    assert road.outputs()["lambda_url"] in await road.read(VALUES)
    assert road.operation()["syncResult"]["revision"] == release.sha
    assert road.live()[0] == ["1.0.0"]
    assert road.applies() == 1
    assert await road.branches() == ["main"]
    assert await road.leaks() == []


async def test_a_killed_bot_opens_nothing_twice_and_a_merge_without_approval_is_held(
    start_road: StartRoad,
) -> None:
    road = await start_road(Seed(steps=IN_PLACE), released=True)
    await road.publish(otel="1.1.0", lambda_="1.1.0")
    await road.wait_for_event("preview", "a new promotion")
    await road.until("the pull request to be there", lambda: _first(open_pulls(road)))
    await road.bot.kill()
    await road.start_bot()
    pull = await wait_for_pull(road)
    await road.wait_until_quiet()
    assert [p.number for p in open_pulls(road)] == [pull.number]
    assert (pull.head_ref, road.issue(pull.number).title) == ("release/dev", "Function 1.1.0 for dev")
    assert list(await road.files(pull.number)) == [TFVARS]

    road.forget_terraform()
    after = await road.last_event()
    merge = await road.merge(pull.number, "dana", bypass=True)
    await road.wait_for_event("held", "0 of 1 approvals", after=after)
    await road.wait_until_quiet()
    assert (road.terraform(), await road.tip()) == ({}, merge)
    await road.approve(pull.number)
    await road.wait_for_success(after=after)
    # The plan that was approved is applied: nothing is planned, and the state locked, once more.
    assert (road.terraform()["LOCK"], road.terraform()["POST"]) == (1, 1)
    (release,) = await road.commits_since(merge)
    assert road.operation()["syncResult"]["revision"] == release.sha
    assert road.live()[0] == ["1.1.0"]
    # What an author named is theirs: other work may have begun there.
    assert await road.branches() == ["main", "release/dev"]


async def _first(pulls: list[PullRequest]) -> PullRequest | None:
    return next(iter(pulls), None)


async def test_newer_freight_has_the_only_open_pull_request_and_closing_it_is_a_rejection(
    start_road: StartRoad,
) -> None:
    road = await start_road(Seed(steps=IMAGE), released=True)
    await road.publish(otel="1.1.0")
    old = await wait_for_pull(road)
    await road.publish(otel="1.2.0")
    pull = await wait_for_pull(road, after=old.number)
    assert [p.number for p in open_pulls(road)] == [pull.number]
    assert await road.branches() == [pull.head_ref, "main"]
    after = await road.last_event()
    await asyncio.to_thread(road.sandbox.github.actions.close, "rafael", OPERATIONS, pull.number)
    await road.wait_for_event("aborted", "is rejected here", after=after)
    await road.wait_until_quiet()
    assert open_pulls(road) == []
    assert await road.branches() == ["main"]
    assert road.live()[0] == ["1.0.0"]


async def test_the_app_merges_for_git_merge_pr_what_people_pushed_and_approved(start_road: StartRoad) -> None:
    road = await start_road(Seed(steps=MERGING), released=True)
    await road.publish(otel="1.1.0")
    pull = await wait_for_pull(road)
    pushed = await road.edit(
        VALUES, "replicaCount: 1", "replicaCount: 2", branch="release/dev", user="rafael"
    )
    await road.until("a head on top of it", lambda: _is_below(road, pushed, pull.number))
    await road.approve(pull.number, "rafael")
    await road.wait_until_quiet()
    assert not road.pull(pull.number).merged
    after = await road.last_event()
    await road.approve(pull.number, "olivia")
    await road.wait_for_success(after=after)
    merged = road.pull(pull.number)
    assert merged.merged
    assert len(road.git.commit(await road.tip()).parents) == 1
    assert "replicaCount: 2" in await road.read(VALUES)
    assert road.operation()["syncResult"]["revision"] == await road.tip()
    assert road.live()[0] == ["1.1.0"]


async def _is_below(road: Road, commit: str, number: int) -> bool:
    head = road.pull(number).head_sha
    return list(road.git.commit(head).parents) == [commit] and road.check(head) is not None


async def test_without_a_diff_the_rest_is_reviewed_on_an_empty_commit(start_road: StartRoad) -> None:
    road = await start_road(Seed(steps=FRESH), released=True)
    await road.edit(
        "env/dev/terraform/main.tf", '["logs:PutLogEvents"]', '["logs:PutLogEvents", "s3:GetObject"]'
    )
    await road.publish(otel="1.1.0")
    pull = await road.wait_for_pull(after=1)
    assert pull.head_ref == "lockstep/acme/dev"
    assert await road.files(pull.number) == {}
    assert [p.number for p in open_pulls(road)] == [pull.number]
    await road.release()
    assert "s3:GetObject" in str(road.sandbox.cloud.read_state("acme/dev"))
    assert road.live()[0] == ["1.1.0"]
    assert await road.branches() == ["main"]


async def test_a_pipeline_that_opens_its_pull_request_itself_from_now_on(start_road: StartRoad) -> None:
    """The open one is left for the one that the task names; what cannot be guarded opens none, and says why."""
    wrapped = (C, values(TAG), PREPARE, P)
    road = await start_road(Seed(steps=wrapped), released=True)
    await road.publish(otel="1.1.0")
    first = await road.wait_for_pull(after=1)
    await road.push(dict(Seed(steps=IMAGE).texts()), "Open it ourselves")
    pull = await wait_for_pull(road, after=first.number)
    await road.wait_until_quiet()
    assert [p.number for p in open_pulls(road)] == [pull.number]
    assert await road.branches() == [pull.head_ref, "main"]
    await road.push(dict(Seed(steps=(*IMAGE[:4], POST, *IMAGE[4:])).texts()), "Tell before the merge")
    red = await road.wait_for_check(pull.number, "lockstep", "failure")
    assert "http stands before the step that waits for the merge" in f"{red.title} {red.summary}"
    assert [p.number for p in open_pulls(road)] == [pull.number]
