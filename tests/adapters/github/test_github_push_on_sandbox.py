"""github-push with our adapters on the simulated GitHub: real git for reading, GitHub's own commits on the branch."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.adapters.git import GitMirror
from bot.domain.files import CommitId
from bot.domain.promotion import StepStatus
from bot.ports import Moved, TerminalError
from bot.steps.contract import Config, StepResult
from bot.steps.git_clone import GitClone
from bot.steps.git_commit import GitCommit
from bot.steps.git_push import GitPush
from bot.steps.github_push import Move, SigningPusher
from tests.adapters.github.conftest import SHOP, World
from tests.steps.bench import Bench


@pytest.fixture
def bench(tmp_path: Path, world: World) -> Bench:
    mirror = GitMirror(tmp_path / "mirrors", world.app.token_for, network_timeout=20)
    return Bench(mirror, world.app.clone_url(SHOP), now=datetime.now(UTC))


def step(bench: Bench, world: World) -> GitPush:
    return GitPush(bench.git, "github-push", SigningPusher(bench.git, world.app, world.app.signed_push))


async def commit(bench: Bench, name: str, files: dict[str, bytes]) -> None:
    for path, data in files.items():
        await bench.tree.write(f"src/{path}", data)
    await bench.fulfil(GitCommit(bench.git), {"path": "src", "message": f"write {name}"}, name)


async def clone(bench: Bench) -> None:
    config: Config = {"repoURL": bench.url, "checkout": [{"path": "src", "branch": "main"}]}
    await bench.fulfil(GitClone(bench.git), config)


async def shown(world: World, sha: str) -> dict[str, object]:
    found: dict[str, object] = await world.stage.bot.ok("GET", f"/repos/acme/shop/git/commits/{sha}")
    return found


async def push(bench: Bench, world: World, **config: bool | str) -> StepResult:
    given: Config = {"path": "src", **config}
    return await bench.fulfil(step(bench, world), given, "push")


async def test_commits_are_made_and_signed_by_github(bench: Bench, world: World) -> None:
    await clone(bench)
    await commit(bench, "one", {"a/b.txt": b"text\n", "README.md": b"changed\n"})
    await commit(bench, "two", {"bytes": bytes(range(256))})
    await bench.tree.delete("src/a/b.txt")
    await commit(bench, "three", {})
    ours = bench.tree.checkout_at("src").head
    assert ours is not None
    done = await push(bench, world)
    assert done.status is StepStatus.SUCCEEDED, done.message
    sha = str(done.output["commit"])
    assert sha != ours
    made = await shown(world, sha)
    assert isinstance(made["verification"], dict)
    assert made["verification"]["verified"] is True
    assert str(made["message"]).startswith("write three\n")
    assert await bench.git.resolve(bench.url, "refs/heads/main") == sha
    commits = await bench.git.log(bench.url, None, CommitId(sha))
    assert (await bench.git.read_commit(bench.url, CommitId(sha))).tree == (
        await bench.git.read_commit(bench.url, ours)
    ).tree
    assert [entry.message.splitlines()[0] for entry in commits[:3]] == [
        "write three",
        "write two",
        "write one",
    ]


async def test_a_second_run_finds_what_the_first_one_pushed(bench: Bench, world: World) -> None:
    await clone(bench)
    await commit(bench, "one", {"x": b"1"})
    pin = bench.tree.checkout_at("src").pin
    first = await push(bench, world)
    bench.again(pins={"src": pin})
    await clone(bench)
    await commit(bench, "one", {"x": b"1"})
    again = await push(bench, world)
    assert (again.output, again.message) == (first.output, "the branch has it already")
    assert world.sent("PATCH", "/git/refs/") == 1


async def test_a_new_branch_is_made_of_signed_commits(bench: Bench, world: World) -> None:
    await clone(bench)
    await commit(bench, "one", {"x": b"1"})
    done = await push(bench, world, targetBranch="release/one")
    assert done.status is StepStatus.SUCCEEDED, done.message
    assert await bench.git.resolve(bench.url, "refs/heads/release/one") == done.output["commit"]


async def test_a_branch_that_moved_is_not_overwritten(bench: Bench, world: World) -> None:
    await clone(bench)
    await commit(bench, "one", {"x": b"1"})
    checkout = bench.tree.checkout_at("src")
    assert checkout.head is not None
    await world.stage.branch("main", {"other": b"theirs\n"})
    pusher = SigningPusher(bench.git, world.app, world.app.signed_push)
    base = checkout.pin.commit
    outcome, _ = await pusher.push(bench.url, checkout.head, Move("main", base, base, force=False))
    theirs = await bench.git.resolve(bench.url, "refs/heads/main")
    assert outcome == Moved(theirs)
    # Where the commits fit, they are carried over to where the branch is now.
    done = await push(bench, world, targetBranch="main")
    assert done.rebase_on is not None or done.status is StepStatus.SUCCEEDED


async def test_a_move_whose_answer_was_lost_counts(bench: Bench, world: World) -> None:
    await clone(bench)
    await commit(bench, "one", {"x": b"1"})
    world.fail("5xx-after", "PATCH", r"/git/refs/heads/main")
    assert (await push(bench, world)).status is StepStatus.SUCCEEDED
    assert world.sent("PATCH", "/git/refs/") == 1


async def test_more_than_ten_commits_are_refused(bench: Bench, world: World) -> None:
    await clone(bench)
    for number in range(11):
        await commit(bench, f"c{number}", {"x": str(number).encode()})
    with pytest.raises(TerminalError, match="more than 10 commits"):
        await push(bench, world)
