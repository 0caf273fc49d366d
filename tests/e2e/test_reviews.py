"""Scenarios 30 to 35 and 41: what happens to a pull request between its opening and its merge."""

from __future__ import annotations

import pytest

from bot.sandbox.github.records import PullRequest
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import TAG, C, P, S, Seed, commit, values
from tests.e2e.road import Road
from tests.e2e.talk import enqueue, let_merges_queue, say

pytestmark = pytest.mark.e2e

BRANCH = "lockstep/acme/dev"
MAIN_TF = "env/dev/terraform/main.tf"
TFVARS = "env/dev/terraform/env.auto.tfvars"
VALUES = "env/dev/helm/values.yaml"


async def digest_of(road: Road, commit: str) -> str:
    """The digest that a commit of a promotion branch carries."""
    message = road.git.commit(commit).message
    return next((x.split()[1] for x in message.splitlines() if x.startswith("Lockstep-Preview:")), "")


async def wait_for_new_head(road: Road, old: PullRequest) -> PullRequest:
    """The pull request once its head is another one that carries another digest, with its check."""
    before = await digest_of(road, old.head_sha)

    async def probe() -> PullRequest | None:
        pull = road.pull(old.number)
        digest = await digest_of(road, pull.head_sha)
        return pull if digest and digest != before and road.check(pull.head_sha) else None

    return await road.until(f"a new head of #{old.number}", probe)


async def wait_for_title(road: Road, number: int, title: str) -> None:
    """Until the check on the head says this."""

    async def probe() -> bool:
        run = road.check(road.pull(number).head_sha)
        return run is not None and title in f"{run.title}\n{run.summary}"

    await road.until(f"the check of #{number} to say {title!r}", probe)


async def open_lambda_release(road: Road) -> PullRequest:
    """A release that changes infrastructure."""
    await road.publish(otel="1.1.0", lambda_="1.1.0")
    return await road.wait_for_pull(after=1)


async def test_a_reviewers_edit_becomes_part_of_what_is_approved(released: Road) -> None:
    road = released
    await road.publish(otel="1.1.0")
    pull = await road.wait_for_pull(after=1)
    await road.approve(pull.number, "olivia")
    await road.wait_until_mergeable(pull.number)
    pushed = await road.edit(VALUES, "replicaCount: 1", "replicaCount: 2", branch=BRANCH, user="rafael")

    pull = await wait_for_new_head(road, pull)
    head = road.git.commit(pull.head_sha)
    assert list(head.parents) == [pushed]
    assert head.tree == road.git.commit(pushed).tree
    assert await _in_progress(road, pull.number)
    await road.approve(pull.number, "rafael")
    await wait_for_title(road, pull.number, "wrote the commit")
    assert await _in_progress(road, pull.number)
    await road.approve(pull.number, "olivia")
    await road.wait_until_mergeable(pull.number)
    after = await road.last_event()
    await road.merge(pull.number)
    await road.wait_for_success(after=after)
    text = await road.read(VALUES)
    assert "replicaCount: 2" in text
    assert "tag: 1.1.0" in text
    assert road.live()[0] == ["1.1.0"]


async def _runs(road: Road, tag: str) -> bool:
    return road.live()[0] == [tag]


async def test_a_reviewers_edit_of_terraform_is_planned_and_applied(released: Road) -> None:
    road = released
    pull = await open_lambda_release(road)
    await road.edit(TFVARS, "memory_mb = 128", "memory_mb = 256", branch=BRANCH, user="rafael")
    pull = await wait_for_new_head(road, pull)
    await road.until("the plan to show it", lambda: _says(road, pull.number, "memory_mb"))
    await road.approve(pull.number, "olivia")
    after = await road.last_event()
    await road.wait_until_mergeable(pull.number)
    await road.merge(pull.number, "olivia")
    await road.wait_for_success(after=after)
    state = road.sandbox.cloud.read_state("acme/dev")
    assert '"memory_mb": 256' in str(state).replace("'", '"')
    assert "memory_mb = 256" in await road.read(TFVARS)
    assert "tag: 1.1.0" in await road.read(VALUES)


async def _says(road: Road, number: int, text: str) -> bool:
    return any(text in comment.body for comment in road.comments(number, "plan"))


async def test_an_edit_that_undoes_the_promotion_turns_the_check_red(released: Road) -> None:
    road = released
    await road.publish(otel="1.1.0")
    pull = await road.wait_for_pull(after=1)
    await road.edit(VALUES, "tag: 1.1.0", "tag: 1.0.0", branch=BRANCH, user="rafael")
    red = await road.wait_for_check(pull.number, "lockstep", "failure")
    assert "does not hold" in f"{red.title} {red.summary}"
    await road.approve(pull.number, "olivia")
    await road.wait_until_quiet()
    assert (await road.wait_for_check(pull.number, "lockstep", "failure")).conclusion == "failure"

    await road.edit(VALUES, "tag: 1.0.0", "tag: 1.1.0", branch=BRANCH, user="rafael")
    await road.until("the check to wait for approvals again", lambda: _in_progress(road, pull.number))
    await road.approve(pull.number, "olivia")
    after = await road.last_event()
    await road.wait_until_mergeable(pull.number)
    await road.merge(pull.number, "olivia")
    await road.wait_for_success(after=after)
    assert "tag: 1.1.0" in await road.read(VALUES)


async def _in_progress(road: Road, number: int) -> bool:
    run = road.check(road.pull(number).head_sha)
    return run is not None and run.status == "in_progress"


async def test_a_commit_elsewhere_keeps_head_digest_approvals_and_plan(released: Road) -> None:
    road = released
    pull = await open_lambda_release(road)
    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    await road.wait_until_quiet()
    road.forget_terraform()
    await road.edit("env/staging/helm/values.yaml", "replicaCount: 2", "replicaCount: 3")
    await road.wait_until_quiet()
    assert road.pull(pull.number).head_sha == pull.head_sha
    assert road.terraform() == {}
    after = await road.last_event()
    await road.merge(pull.number)
    await road.wait_for_success(after=after)
    kinds = [event.kind for event in await road.events(after=after) if event.stage == "dev"]
    assert "preview" not in kinds
    # The saved plan is applied: the state is locked once, and read no oftener than an apply and an output need.
    assert (road.terraform()["LOCK"], road.terraform()["POST"]) == (1, 1)
    assert "tag: 1.1.0" in await road.read(VALUES)
    assert "replicaCount: 3" in await road.read("env/staging/helm/values.yaml")


async def test_a_change_of_the_module_on_main_needs_new_approvals(released: Road) -> None:
    road = released
    pull = await open_lambda_release(road)
    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    await road.edit(MAIN_TF, '["logs:PutLogEvents"]', '["logs:PutLogEvents", "s3:GetObject"]')
    pull = await wait_for_new_head(road, pull)
    assert await _in_progress(road, pull.number)
    await road.until("the plan to show it", lambda: _says(road, pull.number, "execution_role"))
    await road.approve(pull.number, "olivia")
    after = await road.last_event()
    await road.wait_until_mergeable(pull.number)
    await road.merge(pull.number)
    await road.wait_for_success(after=after)
    assert "s3:GetObject" in str(road.sandbox.cloud.read_state("acme/dev"))


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
async def test_any_merge_method_ends_in_the_same_trees(released: Road, method: str) -> None:
    road = released
    pull = await open_lambda_release(road)
    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    road.forget_terraform()
    after, before = await road.last_event(), await road.tip()
    merge = await road.merge(pull.number, method=method)
    await road.wait_for_success(after=after)
    assert road.terraform()["POST"] == 1
    kinds = [event.kind for event in await road.events(after=after) if event.stage == "dev"]
    assert "preview" not in kinds
    assert sorted(path.partition(":")[0] for path in await road.changed(before)) == [
        VALUES, VALUES, TFVARS, TFVARS,
    ]  # fmt: skip
    release = (await road.commits_since(merge))[0]
    assert list(release.parents) == [merge]
    assert road.operation()["syncResult"]["revision"] == release.sha


async def test_a_merge_queue_is_answered_with_a_check(released: Road) -> None:
    road = released
    let_merges_queue(road)
    pull = await open_lambda_release(road)
    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    after = await road.last_event()
    await enqueue(road, pull.number)
    await road.wait_for_success(after=after)
    assert road.pull(pull.number).merged
    assert "tag: 1.1.0" in await road.read(VALUES)


async def test_a_merge_by_an_admin_without_approval_is_held(released: Road) -> None:
    road = released
    pull = await open_lambda_release(road)
    road.forget_terraform()
    after = await road.last_event()
    merge = await road.merge(pull.number, "dana", bypass=True)
    await road.wait_for_event("held", "0 of 1 approvals", after=after)
    await road.wait_until_quiet()
    assert road.terraform() == {}
    assert await road.tip() == merge
    assert road.live()[0] == ["1.0.0"]
    outcome = road.check(merge, "lockstep / dev")
    assert outcome is not None
    assert "0 of 1 approvals" in f"{outcome.title} {outcome.summary}"
    assert any("0 of 1 approvals" in comment.body for comment in road.comments(pull.number, "outcome"))

    await road.approve(pull.number)
    await road.wait_for_success(after=after)
    assert road.terraform()["POST"] == 1
    assert road.live()[0] == ["1.1.0"]


async def test_a_merge_by_an_admin_while_red_waits_for_apply(released: Road) -> None:
    road = released
    await road.publish(otel="1.1.0")
    pull = await road.wait_for_pull(after=1)
    await road.edit(VALUES, "tag: 1.1.0", "tag: 1.0.0", branch=BRANCH, user="rafael")
    await road.wait_for_check(pull.number, "lockstep", "failure")
    after = await road.last_event()
    await road.merge(pull.number, "dana", bypass=True)
    await road.wait_for_event("held", "does not hold", after=after)
    await road.wait_until_quiet()
    assert str(road.operation()["syncResult"]["revision"]) != await road.tip()
    assert road.live()[0] == ["1.0.0"]
    text = "\n".join(comment.body for comment in road.comments(pull.number, "outcome"))
    digest = text.partition("/apply ")[2][:16]
    assert "may not" in await say(road, pull.number, f"/apply {digest}", "uma", answer="-1")
    await say(road, pull.number, f"/apply {digest}", "olivia")
    await road.wait_for_success(after=after)
    assert str(road.operation()["syncResult"]["revision"]) == await road.tip()


async def test_automatic_merges_leave_replacements_to_a_person(start_road: StartRoad) -> None:
    road = await start_road(Seed(review="autoMerge: true\n"), released=True)
    await road.wait_until_quiet()
    url = road.outputs()["lambda_url"]
    await road.edit(TFVARS, "memory_mb = 128", "memory_mb = 128\nurl_generation = 2")
    await road.publish(lambda_="1.1.0")
    pull = await road.wait_for_pull(after=1)
    await road.wait_until_quiet()
    assert await _in_progress(road, pull.number)
    assert not road.pull(pull.number).merged
    after = await road.last_event()
    await road.approve(pull.number)
    await road.wait_for_success(after=after)
    assert road.pull(pull.number).merged
    assert road.outputs()["lambda_url"] != url
    assert road.outputs()["lambda_url"] in await road.read(VALUES)


async def test_automatic_merges_need_nobody_where_nothing_is_lost(start_road: StartRoad) -> None:
    road = await start_road(
        Seed(steps=(C, values(TAG), commit("Promote ${{ ctx.stage }}"), P, S), review="autoMerge: true\n"),
        released=True,
    )
    await road.publish(otel="1.1.0")
    await road.until("the release to run", lambda: _runs(road, "1.1.0"))
    assert [pull.merged for pull in await road.pulls()][-1]
