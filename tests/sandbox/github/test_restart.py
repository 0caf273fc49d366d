"""The directory outlives the process: state, deliveries that wait, and what a crash left half done."""

import shutil
from pathlib import Path

import pytest

from bot.sandbox.github.auth import person
from bot.sandbox.github.git import ZERO
from bot.sandbox.github.merging import finish_intents
from bot.sandbox.github.provisioning import create_repository, create_user
from bot.sandbox.github.records import Delivery, Intent, Repository
from bot.sandbox.github.signing import Draft, person_of, server_commit
from bot.sandbox.github.store import SCHEMA_VERSION, Store
from bot.sandbox.github.world import BASE_MARK, World
from tests.sandbox.github.conftest import REPOSITORY, Stage, stage

REPO = f"/repos/{REPOSITORY}"


async def test_everything_is_there_after_a_restart_on_another_port(tmp_path: Path, template: Path) -> None:
    shutil.copytree(template, tmp_path / "github")
    async with stage(tmp_path / "github") as first:
        pull = await first.pull()
        await first.bot.ok("POST", f"{REPO}/issues/{pull['number']}/comments", {"body": "plan"})
        await first.github.settled()
        key, token = first.credentials, first.bot.token
    async with stage(tmp_path / "github") as second:
        assert second.credentials == key
        second.bot.token = token
        seen = await second.bot.ok("GET", f"{REPO}/pulls/{pull['number']}")
        assert seen["url"].startswith(second.base)
        assert (seen["head"]["sha"], seen["comments"]) == (pull["head"]["sha"], 1)
        await second.bot.ok("PUT", f"{REPO}/pulls/{pull['number']}/merge", {"sha": pull["head"]["sha"]})
        assert second.receiver.events("installation") == []


async def test_no_stored_row_holds_the_servers_url(github: Stage) -> None:
    pull = await github.pull()
    await github.bot.ok("POST", f"{REPO}/check-runs", {"name": "n", "head_sha": pull["head"]["sha"]})
    await github.github.settled()
    for row in github.github.deliveries():
        assert github.base not in row.payload
        assert BASE_MARK in row.payload


async def test_a_delivery_that_waited_is_sent_by_the_next_start(tmp_path: Path, template: Path) -> None:
    shutil.copytree(template, tmp_path / "github")
    world = World(tmp_path / "github")
    assert world.store.count(Delivery, state="pending") == 1
    world.store.close()
    async with stage(tmp_path / "github") as made:
        await made.github.settled()
        assert made.receiver.names() == ["installation.created"]


@pytest.mark.parametrize("moved", [pytest.param(True, id="ref moved"), pytest.param(False, id="ref did not")])
async def test_a_merge_cut_off_by_a_crash_is_finished_or_forgotten(github: Stage, moved: bool) -> None:
    pull = await github.pull()
    world, git = github.github.world, github.git()
    repo = github.github.repository(REPOSITORY)
    base = git.ref("refs/heads/main") or ZERO
    olivia = world.need_user("olivia")
    tree = git.merge_tree(base, pull["head"]["sha"]) or ""
    new = server_commit(world, repo, Draft(tree, [base], "squashed", person_of(world, olivia)))
    world.store.add(Intent(repo.id, pull["number"], base, new, "squash", olivia.id))
    if moved:
        git.update_ref("refs/heads/main", new, base)
    finish_intents(world)
    assert world.store.find(Intent) == []
    seen = await github.bot.ok("GET", f"{REPO}/pulls/{pull['number']}")
    assert seen["merged"] is moved
    await github.github.settled()
    assert ("pull_request.closed" in github.receiver.names()) is moved


async def test_a_branch_that_moved_while_nobody_was_told_is_followed(tmp_path: Path, template: Path) -> None:
    shutil.copytree(template, tmp_path / "github")
    async with stage(tmp_path / "github") as first:
        pull = await first.pull()
        git = first.git()
        head = git.commit(pull["head"]["sha"])
        late = git.commit_tree(head.tree, [head.sha], "late\n", author=head.author, committer=head.committer)
        git.set_ref("refs/heads/promote", late)
    async with stage(tmp_path / "github") as second:
        seen = await second.bot.ok("GET", f"{REPO}/pulls/{pull['number']}")
        assert seen["head"]["sha"] == late
        await second.github.settled()
        assert "pull_request.synchronize" in second.receiver.names()


def test_a_database_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "github.sqlite")
    store._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    store.close()
    with pytest.raises(ValueError, match="use a newer program"):
        Store(tmp_path / "github.sqlite")


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)

    def fail() -> None:
        with world.store.transaction():
            create_user(world, "eve")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert world.user("eve") is None
    create_user(world, "eve")
    assert person(world.need_user("EVE")).name == "eve"
    world.store.close()


def test_columns_that_an_older_program_did_not_have_are_added_with_their_defaults(tmp_path: Path) -> None:
    world = World(tmp_path)
    create_user(world, "eve")
    repo = create_repository(world, "eve", "r", {})
    world.store._connection.execute('ALTER TABLE "Repository" DROP COLUMN "fork_of"')
    world.store._connection.execute('ALTER TABLE "Repository" DROP COLUMN "allow_merge_commit"')
    world.store.close()
    again = World(tmp_path)
    assert again.store.need(Repository, repo.id) == repo
    again.store.close()
