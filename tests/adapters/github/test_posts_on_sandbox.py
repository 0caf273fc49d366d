"""What the port `GitHub` promises about checks, comments, people and deployments, on the simulated GitHub."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

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
    Repository,
)
from bot.ports import TransientError
from tests.adapters.github.conftest import SHOP, World

MARKER = "lockstep:plan shop/dev"


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


async def test_a_deployment_that_is_not_readable_yet_is_waited_for(world: World) -> None:
    pull = await world.open()
    made = await world.app.create_deployment(
        SHOP, ref=pull.head, environment="dev", production=False, payload={"promotion": "p1"}
    )
    world.fail("404-young", "GET", r"/deployments/\d+", count=50, young_ms=600)
    await world.app.set_deployment_state(
        SHOP, made, DeploymentState.IN_PROGRESS, description="applying", log_url=""
    )
    assert world.sent("POST", "/statuses") == 1


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
