"""The database is lost: what GitHub and Git say of it is enough to go on, and nothing else is believed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.domain.freight import FreightStatus
from bot.domain.history import FreightCollection
from bot.domain.marker import read_marker, render_marker
from bot.domain.promotion import Promotion
from bot.sandbox.github.pulls import NewPull
from tests.e2e.beside import lockstep
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import Seed
from tests.e2e.road import OPERATIONS, Road
from tests.e2e.talk import push_again, say

pytestmark = pytest.mark.e2e

TWO_STAGES = (("dev", ""), ("prod", "dev"))


def data(road: Road) -> Path:
    return road.bot.directory / "data"


@contextlib.contextmanager
def opened(road: Road) -> Iterator[DatabaseStore]:
    store = open_store(f"sqlite:///{data(road) / 'lockstep.db'}", KeyFileVault(data(road) / "vault.key"))
    try:
        yield store
    finally:
        store.close()


def lose_database(road: Road) -> None:
    for path in data(road).glob("lockstep*.db*"):
        path.unlink()


@dataclass(frozen=True, slots=True)
class Known:
    """What a database says, as far as decisions rest on it."""

    freight: Mapping[str, tuple[str, frozenset[str], frozenset[str]]]
    """By name: alias, where it is, and where it is verified."""
    stages: Mapping[str, FreightCollection]
    open: Mapping[str, tuple[str, int | None]]
    frozen: Mapping[str, str]


async def know(store: DatabaseStore) -> Known:
    def at(status: FreightStatus) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(status.currently_in), frozenset(status.verified_in)

    stages = await store.list_stages("acme")
    unfinished: Sequence[Promotion] = await store.list_unfinished_promotions()
    return Known(
        freight={item.name: (item.alias, *at(status)) for item, status in await store.list_freight("acme")},
        stages={stage.stage: stage.history[0] for stage in stages if stage.history},
        open={item.stage: (item.id, item.pull) for item in unfinished},
        frozen={stage.stage: stage.frozen for stage in stages},
    )


def read_applied(road: Road) -> Mapping[str, tuple[str, bool]]:
    """Of each Terraform state the inputs that were applied last, and whether that succeeded."""
    with contextlib.closing(sqlite3.connect(data(road) / "lockstep.db")) as connection:
        rows = connection.execute("SELECT document FROM lockstep_applied").fetchall()
    found = [json.loads(row[0]) for row in rows]
    return {item["state"]: (item["inputs"], item["succeeded"]) for item in found}


async def test_a_lost_database_is_rebuilt_and_the_bot_goes_on(start_road: StartRoad) -> None:
    road = await start_road(Seed(stages=TWO_STAGES), released=True)
    await road.release("prod")
    await road.publish(otel="1.1.0")
    opened_pull = await road.wait_for_pull("dev", after=1)
    await say(road, opened_pull.number, "/freeze the holidays", "olivia")
    await road.wait_until_quiet()
    status, shown, errors = await lockstep(road, "audit", "--verify")
    assert (status, errors) == (0, ""), shown
    await road.bot.stop()
    with opened(road) as store:
        before = await know(store)
    applied = read_applied(road)
    assert len(applied) == 2

    lose_database(road)
    status, shown, errors = await lockstep(road, "rebuild")
    assert (status, errors) == (0, ""), shown
    assert "open, previewed again" in shown
    with opened(road) as store:
        assert await know(store) == before
    assert set(before.frozen.values()) == {"the holidays (olivia)"}
    assert read_applied(road) == applied
    status, _, errors = await lockstep(road, "rebuild")
    assert status == 1
    assert "not empty" in errors
    status, shown, _ = await lockstep(road, "rebuild", "--into-existing")
    assert status == 0
    assert "restored: 0 promotions, 0 Freight" in shown

    road.forget_terraform()
    requests = len(await road.requests())
    await road.start_bot()
    await road.wait_for_event("preview", "digest")
    await road.wait_until_quiet()
    assert [pull.number for pull in await road.pulls("dev")] == [1, opened_pull.number]
    assert len(await road.pulls("prod")) == 1
    # The outputs of dev's state are read once; its inputs are known as applied, so it is not planned.
    assert set(road.terraform("dev")) <= {"GET"}
    assert road.terraform("prod") == {}
    assert "Terraform is not run" in (road.issue(opened_pull.number).body or "")
    assert not [
        r for r in await road.requests_of_bot(requests) if r.startswith("POST") and r.endswith("/pulls")
    ]
    await push_again(road, "1.1.0")
    await say(road, opened_pull.number, "/unfreeze", "olivia")
    await road.release("dev")
    following = await road.wait_for_pull("prod", after=opened_pull.number)
    assert "1.1.0" in road.issue(following.number).title
    assert not [event for event in await road.events() if event.kind == "freight"]
    status, shown, errors = await lockstep(road, "audit", "--verify")
    assert (status, errors) == (0, ""), shown
    assert "those up to" in shown


async def test_a_backup_of_a_running_bot_is_restored_and_the_log_shows_what_was_changed(
    released: Road, tmp_path: Path
) -> None:
    road = released
    await road.wait_until_quiet()
    target = tmp_path / "backup.tar"
    status, shown, errors = await lockstep(road, "backup", str(target))
    assert (status, errors) == (0, "")
    assert "lockstep.db" in shown
    assert "vault.key" in shown
    assert target.stat().st_mode & 0o777 == 0o600
    with tarfile.open(target) as tar:
        assert sorted(tar.getnames()) == ["lockstep-engine.db", "lockstep.db"]
    status, _, errors = await lockstep(road, "backup", str(target))
    assert status == 1
    assert "exists" in errors
    status, explained, errors = await lockstep(road, "explain", "dev")
    assert (status, errors) == (0, "")
    assert explained.startswith("acme/dev: waits: ")
    await road.bot.stop()

    lose_database(road)
    with tarfile.open(target) as tar:
        tar.extractall(data(road), filter="data")
    await road.start_bot()
    await road.publish(otel="1.1.0")
    await road.wait_for_pull(after=1)
    assert len(await road.pulls()) == 2
    await road.wait_until_quiet()
    await road.bot.stop()

    database = data(road) / "lockstep.db"
    status, shown, _ = await lockstep(road, "audit", "--json", "--stage", "acme/dev")
    entries = [json.loads(line) for line in shown.splitlines()]
    number = next(entry["number"] for entry in entries if entry["kind"] == "succeeded")
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE lockstep_audit SET actor = 'nobody' WHERE number = ?", (number,))
    status, shown, _ = await lockstep(road, "audit", "--verify")
    assert status == 1
    assert f"entry {number} was changed" in shown
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DELETE FROM lockstep_audit WHERE number = ?", (number,))
    status, shown, _ = await lockstep(road, "audit", "--verify")
    assert status == 1
    assert f"entry {number} is not there" in shown
    assert f"#1 names entry {number}" in shown


async def test_forged_copied_and_old_markers_are_not_believed(start_road: StartRoad) -> None:
    road = await start_road(released=True, bot=False)
    ours = road.issue(1).body or ""
    assert '"stage":"dev"' in ours
    await road.push({"notes.md": "copied"}, "Notes", branch="lockstep/acme/prod")
    actions = road.sandbox.github.actions
    copy = NewPull("Copied", "lockstep/acme/prod", "main", ours, False)
    number = (await asyncio.to_thread(actions.open_pull, "olivia", OPERATIONS, copy)).number
    keyed = KeyFileVault(data(road) / "vault.key").digest
    marker = read_marker(ours, keyed)
    assert marker is not None
    old = render_marker(replace(marker, place=None, schema=1), keyed)
    bodies = {
        ours: f"#{number}: its marker was copied: it was signed for {OPERATIONS}#1",
        ours.replace('"stage":"dev"', '"stage":"prod"'): "#1: its marker is not signed with this key",
        old: "#1: its marker is of an older version",
    }
    for body, says in bodies.items():
        await asyncio.to_thread(actions.edit, "olivia", OPERATIONS, 1, {"body": body})
        lose_database(road)
        status, shown, errors = await lockstep(road, "rebuild")
        assert (status, errors) == (3, "")
        assert f"not restored: {OPERATIONS}{says}" in shown
        with opened(road) as store:
            known = await know(store)
        # What the body of #1 no longer says, its commits and its deployment do.
        assert (list(known.stages), known.open) == (["dev"], {})


async def test_peoples_commits_stay_and_what_was_merged_meanwhile_waits_for_a_person(released: Road) -> None:
    road = released
    await road.publish(otel="1.1.0")
    pull = await road.wait_for_pull(after=1)
    theirs = await road.push({"notes.md": "ours"}, "Notes of a person", branch="lockstep/acme/dev")
    await road.wait_until_quiet(2.0)
    await road.bot.stop()
    lose_database(road)
    status, shown, errors = await lockstep(road, "rebuild")
    assert (status, errors) == (0, ""), shown
    await road.start_bot()
    await road.wait_for_event("preview", "digest")
    await road.wait_until_quiet()
    assert [found.number for found in await road.pulls()] == [1, pull.number]
    on_branch = await road.commits_since("main", "lockstep/acme/dev")
    assert theirs in [commit.sha for commit in on_branch]

    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    await road.bot.kill()
    merge = await road.merge(pull.number)
    lose_database(road)
    status, shown, _ = await lockstep(road, "rebuild")
    assert status == 3
    assert "its end is not known: it holds its Stage" in shown
    road.forget_terraform()
    await road.start_bot()

    async def failed() -> bool:
        run = road.check(merge, "lockstep / dev")
        return run is not None and run.conclusion == "failure"

    await road.until("the merge commit to show that nobody knows its end", failed)
    await road.wait_until_quiet()
    assert await road.tip() == merge
    assert (road.terraform(), road.live()[0]) == ({}, ["1.0.0"])
    await say(road, pull.number, "/promote dev")
    await road.wait_for_success()
    assert "tag: 1.1.0" in await road.read("env/dev/helm/values.yaml")
