"""What the port `GitHub` promises, on the simulated GitHub; every request is held against GitHub's own description."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from bot.adapters.clock import SystemClock
from bot.adapters.github import GitHubApp, GitHubSettings
from bot.domain.files import CommitId
from bot.domain.github import (
    Annotation,
    Button,
    CheckRun,
    CheckStatus,
    CommentId,
    Conclusion,
    DeploymentState,
    Permission,
    PullRequest,
    Repository,
    ReviewState,
)
from bot.ports import GitHub, MergeDone, MergeRefused, TerminalError, TransientError
from tests.contract.openapi import contract
from tests.sandbox.github.conftest import Stage, stage

SHOP = Repository("acme", "shop")
MARKER = "lockstep:plan shop/dev"


@dataclass
class World:
    """The simulated GitHub and our adapter on it."""

    stage: Stage
    app: GitHubApp

    def fail(self, kind: str, method: str, path: str, count: int = 1, **more: float) -> None:
        """Let the next matching request go wrong."""
        rule = {"kind": kind, "method": method, "path": path, "count": count, **more}
        self.stage.github.faults.add([rule])

    def sent(self, method: str, path: str) -> int:
        """How many such requests arrived."""
        return sum(entry.method == method and path in entry.path for entry in self.stage.github.requests())

    async def open(self, branch: str = "promote") -> PullRequest:
        """A branch with a change, and our pull request of it."""
        await self.stage.branch(branch)
        return await self.app.open_pull_request(
            SHOP, head_branch=branch, base_branch="main", title="promote dev", body="text"
        )


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with stage(tmp_path / "github") as made:
        settings = GitHubSettings(
            made.credentials.app_id,
            made.credentials.private_key_pem,
            api_url=f"{made.base}/api/v3/",
            web_url=made.base,
            write_interval=0.0,
        )
        async with GitHubApp(settings, SystemClock()) as app:
            app._connection._client.event_hooks["request"].append(judge)
            yield World(made, app)
            await made.github.settled()


async def judge(request: httpx.Request) -> None:
    path = request.url.raw_path.decode().split("?")[0].removeprefix("/api/v3")
    contract().check_request(request.method, path, request.content)


async def test_it_is_the_port(world: World) -> None:
    github: GitHub = world.app
    assert await github.app_id() == world.stage.credentials.app_id
    assert await github.list_repositories() == (SHOP,)


# -- pull requests ---------------------------------------------------------------------------------------------


async def test_a_pull_request_is_opened_once(world: World) -> None:
    first = await world.open()
    again = await world.app.open_pull_request(
        SHOP, head_branch="promote", base_branch="main", title="another", body="other"
    )
    assert again.number == first.number
    assert (first.title, first.body, first.open, first.merged) == ("promote dev", "text", True, False)
    assert (first.head_branch, first.base_branch, first.from_fork) == ("promote", "main", False)
    assert first.author.bot
    assert world.sent("POST", "/pulls") == 1


async def test_two_at_once_open_one(world: World) -> None:
    await world.stage.branch("promote")
    opened = await asyncio.gather(
        *(
            world.app.open_pull_request(SHOP, head_branch="promote", base_branch="main", title="t", body="b")
            for _ in range(4)
        )
    )
    assert len({pull.number for pull in opened}) == 1


async def test_an_opening_whose_answer_was_lost_is_found(world: World) -> None:
    world.fail("5xx-after", "POST", r"/pulls$")
    pull = await world.open()
    assert [item.number for item in await world.app.list_pull_requests(SHOP)] == [pull.number]
    assert world.sent("POST", "/pulls") == 1


async def test_an_opening_that_did_not_happen_is_transient(world: World) -> None:
    await world.stage.branch("promote")
    world.fail("5xx-before", "POST", r"/pulls$")
    with pytest.raises(TransientError):
        await world.app.open_pull_request(
            SHOP, head_branch="promote", base_branch="main", title="t", body="b"
        )
    assert await world.app.list_pull_requests(SHOP) == ()


async def test_a_new_pull_request_that_is_not_readable_yet_is_waited_for(world: World) -> None:
    world.fail("404-young", "GET", r"/pulls/\d+$", count=50, young_ms=400)
    assert (await world.open()).open


async def test_what_cannot_be_opened_says_why(world: World) -> None:
    with pytest.raises(TerminalError, match="422"):
        await world.app.open_pull_request(
            SHOP, head_branch="nothing", base_branch="main", title="t", body="b"
        )


async def test_pull_requests_are_found_by_branch_and_by_commit(world: World) -> None:
    pull = await world.open("lockstep/shop/dev")
    await world.open("other")
    found = await world.app.find_pull_request(SHOP, head_branch="lockstep/shop/dev")
    assert found is not None
    assert found.number == pull.number
    assert await world.app.find_pull_request(SHOP, head_branch="lockstep/shop") is None
    assert await world.app.find_pull_request(SHOP, head_branch="lockstep/shop/dev", state="closed") is None
    assert [item.number for item in await world.app.find_pull_requests_of(SHOP, pull.head)] == [pull.number]
    assert await world.app.find_pull_requests_of(SHOP, CommitId("0" * 40)) == ()


async def test_the_newest_of_a_branch_is_found(world: World) -> None:
    first = await world.open()
    await world.app.update_pull_request(SHOP, first.number, state="closed")
    second = await world.app.open_pull_request(
        SHOP, head_branch="promote", base_branch="main", title="t", body="b"
    )
    found = await world.app.find_pull_request(SHOP, head_branch="promote", state="all")
    assert found is not None
    assert found.number == second.number != first.number


async def test_title_body_and_state_are_set_once(world: World) -> None:
    pull = await world.open()
    for _ in range(2):
        await world.app.update_pull_request(SHOP, pull.number, title="new", body="fresh")
    seen = await world.app.get_pull_request(SHOP, pull.number)
    assert (seen.title, seen.body) == ("new", "fresh")
    assert world.sent("PATCH", "/pulls/") == 1


async def test_who_closed_it_is_told(world: World) -> None:
    pull = await world.open()
    world.stage.github.actions.close("rafael", "acme/shop", pull.number)
    seen = await world.app.get_pull_request(SHOP, pull.number)
    assert (seen.open, seen.merged, seen.closed_by) == (False, False, "rafael")


async def test_labels_are_replaced(world: World) -> None:
    pull = await world.open()
    await world.app.set_labels(SHOP, pull.number, ["stage:dev", "infra-change"])
    await world.app.set_labels(SHOP, pull.number, ["stage:dev"])
    await world.app.set_labels(SHOP, pull.number, ["stage:dev"])
    assert world.sent("PUT", "/labels") == 2


async def test_its_files_are_listed(world: World) -> None:
    pull = await world.open()
    assert await world.app.list_pull_request_files(SHOP, pull.number) == ("env/dev/values.yaml",)


async def test_reviews_come_with_the_commit_that_was_seen(world: World) -> None:
    pull = await world.open()
    world.stage.github.actions.request_changes("olivia", "acme/shop", pull.number, "no")
    world.stage.github.actions.approve("rafael", "acme/shop", pull.number)
    reviews = await world.app.list_reviews(SHOP, pull.number)
    assert [(item.user.login, item.state) for item in reviews] == [
        ("olivia", ReviewState.CHANGES_REQUESTED),
        ("rafael", ReviewState.APPROVED),
    ]
    assert {item.commit for item in reviews} == {pull.head}


async def test_the_authors_of_its_commits_are_known(world: World) -> None:
    await world.stage.branch("promote", user="rafael")
    pull = await world.open()
    authors = await world.app.list_commit_authors(SHOP, pull.number)
    assert len(authors) == 2
    assert set(authors[pull.head]) == {"olivia"}
    assert {login for logins in authors.values() for login in logins} == {"olivia", "rafael"}


# -- merging ---------------------------------------------------------------------------------------------------


async def merge(world: World, pull: PullRequest, head: CommitId | None = None) -> MergeDone | MergeRefused:
    return await world.app.merge_pull_request(
        SHOP, pull.number, head=head or pull.head, method="squash", title="title", message="why"
    )


async def test_a_merge_is_done_once_and_says_so_again(world: World) -> None:
    pull = await world.open()
    await world.stage.github.settled()
    done = await merge(world, pull)
    assert isinstance(done, MergeDone)
    assert await merge(world, pull) == done
    seen = await world.app.get_pull_request(SHOP, pull.number)
    assert (seen.merged, seen.open, seen.merge_commit) == (True, False, done.commit)


async def test_a_merge_whose_answer_was_lost_is_found(world: World) -> None:
    pull = await world.open()
    await world.stage.github.settled()
    world.fail("5xx-after", "PUT", r"/merge$")
    assert isinstance(await merge(world, pull), MergeDone)
    assert world.sent("PUT", "/merge") == 1


async def test_a_head_that_moved_is_not_merged(world: World) -> None:
    pull = await world.open()
    await world.stage.branch("promote", {"env/dev/values.yaml": b"image:\n  tag: 9.9.9\n"})
    await world.stage.github.settled()
    refused = await merge(world, pull)
    assert isinstance(refused, MergeRefused)
    assert refused.head_moved
    assert (await world.app.get_pull_request(SHOP, pull.number)).open


async def test_a_closed_pull_request_is_not_merged(world: World) -> None:
    pull = await world.open()
    world.stage.github.actions.close("rafael", "acme/shop", pull.number)
    refused = await merge(world, pull)
    assert isinstance(refused, MergeRefused)
    assert not refused.head_moved
    assert refused.message


async def test_a_merge_of_another_head_is_not_taken_for_ours(world: World) -> None:
    pull = await world.open()
    await world.stage.branch("promote", {"env/dev/values.yaml": b"image:\n  tag: 9.9.9\n"})
    await world.stage.github.settled()
    moved = await world.app.get_pull_request(SHOP, pull.number)
    assert isinstance(await merge(world, pull, moved.head), MergeDone)
    refused = await merge(world, pull)
    assert isinstance(refused, MergeRefused)
    assert refused.head_moved


# -- checks ----------------------------------------------------------------------------------------------------


def check(head: CommitId, **changes: object) -> CheckRun:
    values: dict[str, object] = {"name": "lockstep", "head": head, "title": "t", "summary": "s", **changes}
    return CheckRun(**values)  # type: ignore[arg-type]


async def test_a_check_runs_and_completes_in_one_run(world: World) -> None:
    pull = await world.open()
    begun = await world.app.post_check(SHOP, check(pull.head))
    assert begun.status is CheckStatus.IN_PROGRESS
    done = await world.app.post_check(
        SHOP,
        check(
            pull.head,
            title="ready",
            conclusion=Conclusion.SUCCESS,
            buttons=(Button("Plan again", "Preview once more", "plan"),),
        ),
    )
    assert (done.id, done.status, done.conclusion) == (begun.id, CheckStatus.COMPLETED, Conclusion.SUCCESS)
    assert await world.app.list_checks(SHOP, pull.head) == (done,)


async def test_the_same_completed_check_is_posted_once(world: World) -> None:
    pull = await world.open()
    wanted = check(pull.head, conclusion=Conclusion.FAILURE, text="why", external_id="p1")
    assert await world.app.post_check(SHOP, wanted) == await world.app.post_check(SHOP, wanted)
    assert world.sent("POST", "/check-runs") == 1


async def test_a_completed_check_is_followed_by_a_new_run(world: World) -> None:
    pull = await world.open()
    old = await world.app.post_check(SHOP, check(pull.head, conclusion=Conclusion.SUCCESS))
    new = await world.app.post_check(SHOP, check(pull.head))
    assert new.id > old.id
    assert new.status is CheckStatus.IN_PROGRESS
    assert await world.app.list_checks(SHOP, pull.head) == (new,)


async def test_a_check_whose_answer_was_lost_is_found(world: World) -> None:
    pull = await world.open()
    world.fail("5xx-after", "POST", r"/check-runs$")
    posted = await world.app.post_check(SHOP, check(pull.head, external_id="p1"))
    assert world.sent("POST", "/check-runs") == 1
    world.fail("5xx-after", "PATCH", r"/check-runs/")
    done = await world.app.post_check(SHOP, check(pull.head, external_id="p1", conclusion=Conclusion.SUCCESS))
    assert (done.id, done.conclusion) == (posted.id, Conclusion.SUCCESS)
    assert world.sent("PATCH", "/check-runs/") == 1


async def test_annotations_are_sent_in_batches_and_the_conclusion_last(world: World) -> None:
    pull = await world.open()
    notes = tuple(Annotation("env/dev/values.yaml", line, "warning", f"m{line}") for line in range(1, 121))
    wanted = check(pull.head, annotations=notes, conclusion=Conclusion.FAILURE)
    done = await world.app.post_check(SHOP, wanted)
    assert done.conclusion is Conclusion.FAILURE
    assert (world.sent("POST", "/check-runs"), world.sent("PATCH", "/check-runs/")) == (1, 2)
    listed = await world.stage.bot.ok(
        "GET", f"/repos/acme/shop/check-runs/{done.id}/annotations?per_page=100"
    )
    assert len(listed) == 100
    assert await world.app.post_check(SHOP, wanted) == done


async def test_a_crash_between_batches_is_gone_on_from(world: World) -> None:
    pull = await world.open()
    notes = tuple(Annotation("env/dev/values.yaml", line, "notice", f"m{line}") for line in range(1, 71))
    wanted = check(pull.head, annotations=notes, conclusion=Conclusion.SUCCESS)
    world.fail("5xx-before", "PATCH", r"/check-runs/")
    with pytest.raises(TransientError):
        await world.app.post_check(SHOP, wanted)
    (begun,) = await world.app.list_checks(SHOP, pull.head)
    assert begun.status is CheckStatus.IN_PROGRESS
    done = await world.app.post_check(SHOP, wanted)
    assert done.id == begun.id
    run = await world.stage.bot.ok("GET", f"/repos/acme/shop/check-runs/{done.id}")
    assert run["output"]["annotations_count"] == 70


# -- comments --------------------------------------------------------------------------------------------------


async def test_our_comment_is_written_once_and_edited_in_place(world: World) -> None:
    pull = await world.open()
    first = await world.app.post_comment(SHOP, pull.number, "one", marker=MARKER)
    again = await world.app.post_comment(SHOP, pull.number, "one", marker=MARKER)
    edited = await world.app.post_comment(SHOP, pull.number, "two", marker=MARKER)
    assert first == again == edited
    assert (world.sent("POST", "/comments"), world.sent("PATCH", "/comments/")) == (1, 1)
    (comment,) = await world.app.list_comments(SHOP, pull.number)
    assert comment.body == f"<!-- {MARKER} -->\ntwo"
    assert comment.by_app
    assert not comment.body.startswith("<!-- <!--")


async def test_another_marker_is_another_comment(world: World) -> None:
    pull = await world.open()
    first = await world.app.post_comment(SHOP, pull.number, "one", marker="lockstep:a")
    other = await world.app.post_comment(SHOP, pull.number, "one", marker="<!-- lockstep:ab -->")
    assert first != other


async def test_a_comment_with_a_copied_marker_is_not_ours(world: World) -> None:
    pull = await world.open()
    forged = world.stage.github.actions.comment(
        "olivia", "acme/shop", pull.number, f"<!-- {MARKER} -->\nApproved by all"
    )
    ours = await world.app.post_comment(SHOP, pull.number, "one", marker=MARKER)
    assert ours != forged.id
    comments = {item.id: item for item in await world.app.list_comments(SHOP, pull.number)}
    assert comments[CommentId(forged.id)].body.endswith("Approved by all")
    assert not comments[CommentId(forged.id)].by_app


async def test_a_comment_whose_answer_was_lost_is_found(world: World) -> None:
    pull = await world.open()
    world.fail("5xx-after", "POST", r"/comments$")
    await world.app.post_comment(SHOP, pull.number, "one", marker=MARKER)
    assert len(await world.app.list_comments(SHOP, pull.number)) == 1


async def test_a_deleted_comment_is_written_anew(world: World) -> None:
    pull = await world.open()
    first = await world.app.post_comment(SHOP, pull.number, "one", marker=MARKER)
    await world.stage.bot.ok("DELETE", f"/repos/acme/shop/issues/comments/{first}")
    assert await world.app.get_comment(SHOP, first) is None
    assert await world.app.post_comment(SHOP, pull.number, "one", marker=MARKER) != first


async def test_more_comments_than_a_page_are_read(world: World) -> None:
    pull = await world.open()
    for number in range(103):
        world.stage.github.actions.comment("olivia", "acme/shop", pull.number, f"c{number}")
    comments = await world.app.list_comments(SHOP, pull.number)
    assert [item.body for item in comments] == [f"c{number}" for number in range(103)]


async def test_an_edited_comment_is_marked(world: World) -> None:
    pull = await world.open()
    said = world.stage.github.actions.comment("olivia", "acme/shop", pull.number, "/plan")
    seen = await world.app.get_comment(SHOP, CommentId(said.id))
    assert seen is not None
    assert (seen.user.login, seen.body, seen.edited) == ("olivia", "/plan", False)


async def test_a_reaction_twice_is_one(world: World) -> None:
    pull = await world.open()
    said = world.stage.github.actions.comment("olivia", "acme/shop", pull.number, "/plan")
    for _ in range(2):
        await world.app.react(SHOP, CommentId(said.id), "eyes")
    listed = await world.stage.bot.ok("GET", f"/repos/acme/shop/issues/comments/{said.id}/reactions")
    assert [item["content"] for item in listed] == ["eyes"]


# -- people ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["read", "triage", "write", "maintain", "admin"])
async def test_a_role_is_read_exactly(world: World, role: str) -> None:
    world.stage.github.create_user("zoe")
    world.stage.github.set_role("acme/shop", "zoe", role)
    assert await world.app.get_permission(SHOP, "zoe") is Permission(role)


async def test_a_stranger_has_no_permission(world: World) -> None:
    world.stage.github.create_user("mallory")
    assert await world.app.get_permission(SHOP, "mallory") in {Permission.NONE, Permission.READ}
    assert await world.app.get_permission(SHOP, "nobody-at-all") is Permission.NONE


async def test_team_members(world: World) -> None:
    assert await world.app.is_team_member("acme", "platform", "olivia")
    world.stage.github.create_user("mallory")
    assert not await world.app.is_team_member("acme", "platform", "mallory")
    assert not await world.app.is_team_member("acme", "no-such-team", "olivia")


# -- deployments, deliveries, tokens ---------------------------------------------------------------------------


async def test_a_deployment_is_created_once_and_has_its_state(world: World) -> None:
    pull = await world.open()
    payload = {"promotion": "p1", "freight": "f1"}
    made = [
        await world.app.create_deployment(
            SHOP, ref=pull.head, environment="dev", production=False, payload=payload
        )
        for _ in range(2)
    ]
    assert made[0] == made[1]
    for _ in range(2):
        await world.app.set_deployment_state(
            SHOP, made[0], DeploymentState.SUCCESS, description="done", log_url="https://lockstep.example/p1"
        )
    listed = await world.stage.bot.ok("GET", f"/repos/acme/shop/deployments/{made[0]}/statuses")
    assert [item["state"] for item in listed] == ["success"]
    other = await world.app.create_deployment(
        SHOP, ref=pull.head, environment="dev", production=False, payload={"promotion": "p2"}
    )
    assert other != made[0]


async def test_a_deployment_whose_answer_was_lost_is_found(world: World) -> None:
    pull = await world.open()
    world.fail("5xx-after", "POST", r"/deployments$")
    await world.app.create_deployment(
        SHOP, ref=pull.head, environment="dev", production=True, payload={"promotion": "p1"}
    )
    assert world.sent("POST", "/deployments") == 1


async def test_lost_deliveries_are_listed_and_asked_for_again(world: World) -> None:
    await world.stage.github.settled()
    since = datetime.now(UTC) - timedelta(minutes=5)
    assert await world.app.list_failed_deliveries(since) == ()
    world.stage.receiver.status = 500
    await world.open()
    await world.stage.github.settled()
    lost = await world.app.list_failed_deliveries(since)
    assert lost
    world.stage.receiver.status = 202
    for delivery, _ in lost:
        await world.app.redeliver(delivery)
    await world.stage.github.settled()
    assert await world.app.list_failed_deliveries(since) == ()


async def test_a_token_for_git_reaches_one_repository(world: World) -> None:
    url = world.app.clone_url(SHOP)
    assert world.app.repository_of(url) == SHOP
    token = await world.app.token_for(url)
    assert token
    assert await world.app.token_for(url) == token
    read_only = await world.app.token_for(url, write=False)
    assert read_only not in {None, token}
    assert await world.app.token_for("https://elsewhere.example/acme/shop.git") is None
    assert await world.app.token_for(world.app.clone_url(Repository("acme", "unknown"))) is None


async def test_a_secondary_limit_holds_back_all_later_writes(world: World) -> None:
    pull = await world.open()
    world.fail("secondary-limit", "POST", r"/comments$", retry_after=60)
    with pytest.raises(TransientError) as caught:
        await world.app.post_comment(SHOP, pull.number, "one", marker=MARKER)
    assert caught.value.retry_after == 60
    with pytest.raises(TransientError, match="asked us to stop writing"):
        await world.app.post_check(SHOP, check(pull.head))
    assert world.sent("POST", "/check-runs") == 0
    assert (await world.app.get_pull_request(SHOP, pull.number)).open
