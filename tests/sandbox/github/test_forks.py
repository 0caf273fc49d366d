"""Pull requests from forks: they follow the fork's branch, and the App cannot write there."""

import pytest

from bot.sandbox.github.errors import Refused
from bot.sandbox.github.pulls import NewPull
from tests.sandbox.github.conftest import Stage

REPO = "/repos/acme/shop"
NAME = "acme/shop"


async def test_a_reader_opens_a_pull_request_from_a_fork_and_it_follows_the_fork(github: Stage) -> None:
    fork = github.github.create_fork("uma", NAME)
    assert github.github.create_fork("uma", NAME).id == fork.id
    acts = github.github.actions
    first = acts.push("uma", "uma/shop", "fix", {"a.txt": b"1"}, "fix")
    pull = acts.open_pull("uma", NAME, NewPull("fix", "uma:fix", "main"))
    with pytest.raises(Refused):
        acts.open_pull("uma", NAME, NewPull("again", "uma:fix", "main"))
    seen = await github.bot.ok("GET", f"{REPO}/pulls/{pull.number}")
    assert (seen["head"]["label"], seen["head"]["repo"]["full_name"]) == ("uma:fix", "uma/shop")
    assert (seen["head"]["repo"]["fork"], seen["base"]["repo"]["fork"]) == (True, False)
    assert seen["head"]["sha"] == first
    second = acts.push("uma", "uma/shop", "fix", {"b.txt": b"2"}, "more")
    files = await github.bot.ok("GET", f"{REPO}/pulls/{pull.number}/files")
    assert [item["filename"] for item in files] == ["a.txt", "b.txt"]
    run = await github.bot.ok("POST", f"{REPO}/check-runs", {"name": "lockstep", "head_sha": second})
    assert run["pull_requests"] == []
    await github.github.settled()
    names = github.receiver.names()
    assert names.count("pull_request.synchronize") == 1
    assert "push" not in names
    assert await github.bot.ok("GET", f"{REPO}/pulls?head=uma:fix")
    assert not await github.bot.ok("GET", f"{REPO}/pulls?head=acme:fix")


async def test_a_fork_is_merged_and_its_branch_left_alone(github: Stage) -> None:
    github.github.create_fork("uma", NAME)
    acts = github.github.actions
    acts.push("uma", "uma/shop", "fix", {"a.txt": b"1"}, "fix")
    number = acts.open_pull("uma", NAME, NewPull("fix", "uma:fix", "main")).number
    await github.branch("main", {"other.txt": b"o"})
    answer = await github.bot("PUT", f"{REPO}/pulls/{number}/update-branch", {})
    assert answer.status_code == 403
    await github.as_user("dana").ok("PATCH", REPO, {"delete_branch_on_merge": True})
    merged = await github.bot.ok("PUT", f"{REPO}/pulls/{number}/merge", {})
    assert github.git().commit(merged["sha"]).message.startswith(f"Merge pull request #{number} from uma/fix")
    assert github.git("uma/shop").ref("refs/heads/fix")


async def test_a_branch_of_the_repository_itself_stays_with_writers(github: Stage) -> None:
    await github.branch("promote")
    with pytest.raises(Refused, match="push access"):
        github.github.actions.open_pull("uma", NAME, NewPull("t", "promote", "main"))
    with pytest.raises(Refused):
        github.github.actions.open_pull("uma", NAME, NewPull("t", "uma:promote", "main"))
    acts = github.github.actions
    github.github.create_fork("uma", NAME)
    acts.push("uma", "uma/shop", "fix", {"a.txt": b"1"}, "fix")
    number = acts.open_pull("uma", NAME, NewPull("fix", "uma:fix", "main")).number
    acts.delete_branch("uma", "uma/shop", "fix")
    assert (await github.bot.ok("GET", f"{REPO}/pulls/{number}"))["state"] == "closed"
