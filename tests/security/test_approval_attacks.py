"""Ways round an approval, tried on the whole road: each must end before anything is applied, rolled out or merged."""

from __future__ import annotations

import asyncio

import pytest

from bot.sandbox.github import pushes
from bot.sandbox.github.auth import person
from bot.sandbox.github.git import RefChange
from bot.sandbox.github.pulls import NewPull
from bot.sandbox.github.records import CheckRun, PullRequest
from bot.sandbox.github.signing import person_of
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import TAG, C, P, S, Seed, commit, values
from tests.e2e.road import OPERATIONS, Road
from tests.e2e.talk import reactions, say
from tests.e2e.test_reviews import (
    BRANCH,
    TFVARS,
    VALUES,
    open_lambda_release,
    wait_for_new_head,
    wait_for_title,
)

pytestmark = pytest.mark.e2e

IMAGE_ONLY = Seed(steps=(C, values(TAG), commit("Promote ${{ ctx.stage }}"), P, S))


async def open_pull(road: Road, branch: str, user: str = "rafael") -> PullRequest:
    """A person's own pull request from a branch to main."""
    new = NewPull("Small fix", branch, "main", "")
    return await asyncio.to_thread(road.sandbox.github.actions.open_pull, user, OPERATIONS, new)


async def wait_for_lockstep(road: Road, pull: PullRequest, title: str) -> str | None:
    """The conclusion of the required check once its title holds a text."""

    async def probe() -> bool:
        run = road.check(road.pull(pull.number).head_sha)
        return run is not None and title in (run.title or "")

    await road.until(f"the check of #{pull.number} to say {title!r}", probe)
    run = road.check(road.pull(pull.number).head_sha)
    return run.conclusion if run is not None else None


async def test_a_second_pull_request_of_the_same_head_turns_no_check_green(released: Road) -> None:
    road = released
    pull = await open_lambda_release(road)
    await road.wait_until_quiet()
    await asyncio.to_thread(road.git.run, "update-ref", "refs/heads/innocent", pull.head_sha)
    second = await open_pull(road, "innocent")
    assert second.head_sha == pull.head_sha
    await road.wait_until_quiet()
    found = road.sandbox.github.world.store.find(
        CheckRun, repo_id=road.repository.id, head_sha=pull.head_sha, name="lockstep"
    )
    # Not for a moment either, since that is all that a script with write permission needs to merge.
    assert {run.conclusion for run in found} == {None}


async def test_a_persons_pull_request_that_touches_a_stage_needs_its_approvals(released: Road) -> None:
    road = released
    await road.push({"env/dev/terraform/more.tf": "# more\n"}, "More", branch="more")
    pull = await open_pull(road, "more", "olivia")
    assert await wait_for_lockstep(road, pull, "Touches dev") is None
    await road.approve(pull.number, "rafael")
    assert await wait_for_lockstep(road, pull, "approved") == "success"


async def test_a_persons_pull_request_that_weakens_the_policy_needs_approvals(released: Road) -> None:
    road = released
    policy = "apiVersion: lockstep.dev/v1alpha1\nkind: ReviewPolicy\nmetadata: {name: zero}\nspec: {autoMerge: true}\n"
    await road.push({"config/zero.yaml": policy}, "Zero", branch="zero")
    pull = await open_pull(road, "zero", "olivia")
    assert await wait_for_lockstep(road, pull, "waits for approvals") is None


async def test_a_persons_pull_request_elsewhere_has_nothing_to_wait_for(released: Road) -> None:
    road = released
    await road.push({"notes/today.md": "Nothing.\n"}, "Notes", branch="notes")
    pull = await open_pull(road, "notes", "olivia")
    assert await wait_for_lockstep(road, pull, "Touches no promotion") == "success"


async def test_who_rules_another_repository_may_give_no_command_here(released: Road) -> None:
    road = released
    github = road.sandbox.github
    await asyncio.to_thread(github.create_user, "mallory", "Mallory")
    await asyncio.to_thread(github.create_repository, "acme", "toys", {"README.md": b"Toys\n"})
    await asyncio.to_thread(github.set_role, "acme/toys", "mallory", "admin")
    await asyncio.to_thread(github.install_app, road.demo.app_id, "acme", ["operations", "toys"])
    issue = await asyncio.to_thread(github.actions.open_issue, "mallory", "acme/toys", "Toys")
    asked = await asyncio.to_thread(
        github.actions.comment, "mallory", "acme/toys", issue.number, "/promote acme/dev"
    )

    async def answered() -> bool:
        return bool(set(reactions(road, asked.id)) & {"-1", "rocket"})

    await road.until("an answer to mallory", answered)
    assert "-1" in reactions(road, asked.id)
    assert "rocket" not in reactions(road, asked.id)


async def test_what_is_pushed_and_merged_behind_an_approval_is_not_rolled_out(start_road: StartRoad) -> None:
    road = await start_road(IMAGE_ONLY, released=True)
    await road.publish(otel="1.1.0")
    pull = await road.wait_for_pull(after=1)
    await road.approve(pull.number, "rafael")
    await road.wait_until_mergeable(pull.number)
    await road.wait_until_quiet()
    before = road.operation()
    await road.bot.stop()
    # No step reads or writes this path, so that only the head tells that it was not there when it was approved.
    await road.push({"env/other.yaml": "evil: true\n"}, "More", branch=BRANCH)
    await road.merge(pull.number, "dana", bypass=True)
    await road.start_bot()
    await road.wait_for_event("stopped", "pushed after the preview")
    await road.wait_until_quiet()
    assert road.operation() == before


async def test_who_wrote_a_commit_cannot_accept_the_merge_of_it(released: Road) -> None:
    road = released
    pull = await open_lambda_release(road)
    await road.edit(TFVARS, "memory_mb = 128", "memory_mb = 256", branch=BRANCH, user="rafael")
    pull = await wait_for_new_head(road, pull)
    message = road.git.commit(pull.head_sha).message
    digest = next(x.split()[1] for x in message.splitlines() if x.startswith("Lockstep-Preview:"))
    await road.merge(pull.number, "dana", bypass=True)
    await road.wait_for_event("held", "0 of 1 approvals")
    road.forget_terraform()
    said = await say(road, pull.number, f"/apply {digest}", "rafael", answer="-1")
    assert "wrote the commit" in said
    await road.wait_until_quiet()
    assert road.terraform() == {}
    after = await road.last_event()
    await say(road, pull.number, f"/apply {digest}", "olivia")
    await road.wait_for_success(after=after)


def push_as_another(road: Road, pusher: str, author: str) -> str:
    """Push a commit to the promotion branch that names somebody else as author and committer."""
    world, repository = road.sandbox.github.world, road.repository
    with world.store.lock:
        old = road.git.ref(f"refs/heads/{BRANCH}") or ""
        values_now = road.git.run("show", f"{old}:{VALUES}")
        tree = road.git.tree_with(old, {VALUES: values_now.replace(b"replicaCount: 1", b"replicaCount: 9")})
        who = person_of(world, world.need_user(author))
        new = road.git.commit_tree(tree, [old], "Innocent", author=who, committer=who)
        pushes.move_ref(
            world, person(world.need_user(pusher)), repository, RefChange(f"refs/heads/{BRANCH}", old, new)
        )
        return new


async def test_who_pushed_a_commit_in_anothers_name_cannot_approve_it(released: Road) -> None:
    road = released
    await road.publish(otel="1.1.0")
    pull = await road.wait_for_pull(after=1)
    await asyncio.to_thread(push_as_another, road, "rafael", "dana")
    pull = await wait_for_new_head(road, pull)
    await road.approve(pull.number, "rafael")
    await wait_for_title(road, pull.number, "pushed to the branch")
    await road.wait_until_quiet()
    run = road.check(pull.head_sha)
    assert run is not None
    assert run.conclusion is None
    await road.approve(pull.number, "olivia")
    await road.wait_until_mergeable(pull.number)


async def test_a_new_preview_keeps_what_people_committed(released: Road) -> None:
    road = released
    await road.publish(otel="1.1.0")
    pull = await road.wait_for_pull(after=1)
    await road.edit(VALUES, "replicaCount: 1", "replicaCount: 2", branch=BRANCH, user="rafael")
    pull = await wait_for_new_head(road, pull)
    await road.wait_until_quiet()
    after = await road.last_event()
    await say(road, pull.number, "/plan", "olivia")
    await road.wait_for_event("review", after=after)
    await road.wait_until_quiet()
    assert "replicaCount: 2" in await road.read(VALUES, BRANCH)


async def test_a_rollback_leads_only_to_what_was_verified_there(released: Road) -> None:
    road = released
    await road.publish(otel="1.1.0")
    await road.wait_for_pull(after=1)
    (newest,) = [e.message.split(":")[0] for e in await road.events() if "otel-app 1.1.0" in e.message]
    said = await say(road, 1, f"/rollback acme/dev {newest}", "olivia", answer="-1")
    assert "was never verified in dev" in said


async def test_one_who_accepts_is_not_two_who_approve(start_road: StartRoad) -> None:
    seed = Seed(steps=IMAGE_ONLY.steps, review="approvals: {count: 2}\n")
    road = await start_road(seed, released=True)
    await road.publish(otel="1.1.0")
    pull = await road.wait_for_pull(after=1)
    message = road.git.commit(pull.head_sha).message
    digest = next(x.split()[1] for x in message.splitlines() if x.startswith("Lockstep-Preview:"))
    await road.merge(pull.number, "dana", bypass=True)
    await road.wait_for_event("held", "0 of 2 approvals")
    said = await say(road, pull.number, f"/apply {digest}", "olivia", answer="-1")
    assert "2 approvals are needed" in said
    await road.approve(pull.number, "rafael")
    await road.wait_for_event("waits", "1 of 2 approvals")
    after = await road.last_event()
    await say(road, pull.number, f"/apply {digest}", "olivia")
    await road.wait_for_success(after=after)


async def test_a_retargeted_pull_request_waits_and_is_not_previewed_again(start_road: StartRoad) -> None:
    road = await start_road(IMAGE_ONLY, released=True)
    await road.publish(otel="1.1.0")
    pull = await road.wait_for_pull(after=1)
    await road.approve(pull.number, "rafael")
    await road.wait_until_mergeable(pull.number)
    await road.push({"README.md": "Elsewhere\n"}, "Elsewhere", branch="elsewhere")
    await road.wait_until_quiet()
    after = await road.last_event()
    edit = road.sandbox.github.actions.edit
    await asyncio.to_thread(edit, "rafael", OPERATIONS, pull.number, {"base": "elsewhere"})
    await road.wait_for_event("waits", "goes to elsewhere instead of main", after=after)
    await road.wait_until_quiet()
    kinds = [event.kind for event in await road.events(after=after)]
    assert "preview" not in kinds
    run = road.check(pull.head_sha)
    assert run is not None
    assert run.conclusion is None
