"""What the port `GitHub` promises about pull requests, merges and where the App is, on the simulated GitHub."""

from __future__ import annotations

import asyncio

import pytest

from bot.domain.files import CommitId
from bot.domain.github import (
    PullRequest,
    ReviewState,
)
from bot.ports import GitHub, MergeDone, MergeRefused, TerminalError, TransientError
from tests.adapters.github.conftest import SHOP, World


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
