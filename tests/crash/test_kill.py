"""kill -9 at every write of the journal, then a restart: each effect has happened once.

One Stage is promoted from a snapshot in which it runs the first release. Several roads work side by side, since a road
waits more than it works, each on ports of its own, since addresses stand in the files of the repository.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from bot.sandbox.bot_process import BotFailed
from tests.crash.killer import ForkedBot
from tests.e2e.pipelines import Seed
from tests.e2e.road import Road, copy_road, open_road

pytestmark = pytest.mark.crash

SEED = 20_260_101
LANES = 4


@dataclass(frozen=True, slots=True)
class Point:
    """Where to kill: at the write of this number, its commit lost or kept."""

    number: int
    when: str

    def __str__(self) -> str:
        return f"write {self.number}, {self.when}"


@dataclass(frozen=True, slots=True)
class Effects:
    """How often each effect of one release has happened."""

    pulls: int
    plan_comments: int
    outcome_comments: int
    merges: int
    release_commits: int
    changes: int
    """Of the resource that changed most often."""
    syncs: int


@dataclass(frozen=True, slots=True)
class Before:
    """What there was before the release: the tip of main, pull requests of the Stage, versions of its state."""

    tip: str
    pulls: int
    versions: int


ONCE = Effects(1, 1, 1, 1, 1, 1, 1)


async def make_snapshot(directory: Path) -> None:
    """A stopped road on which dev, which merges by itself, runs the first release."""
    async with open_road(directory, Seed(review="autoMerge: true\n"), ForkedBot) as road:
        await road.start_bot()
        await road.wait_for_success()
        road.forget_terraform()


async def promote_through_a_kill(snapshot: Path, directory: Path, point: Point) -> list[str]:
    """Publish both images, let the bot die at the point, start it again, and count; returns what is wrong."""
    shutil.rmtree(directory, ignore_errors=True)
    copy_road(snapshot, directory)
    async with open_road(directory, None, ForkedBot) as road:
        before = Before(await road.tip(), len(await road.pulls()), road.versions())
        plain = road.bot.extra
        log = directory / "kills.log"
        await road.publish(otel="1.1.0", lambda_="1.1.0")
        await start_to_die(road, KILL_AT=str(point.number), KILL_WHEN=point.when, KILL_LOG=str(log))
        await wait_for_the_end(road)
        road.bot.extra = plain
        await road.bot.stop()
        await road.start_bot()
        asked = await finish(road)
        return await wrong(road, before, asked=asked)


async def start_to_die(road: Road, **extra: str) -> None:
    """Start the bot; the first writes may come, and kill it, before anybody has seen that it is ready."""
    try:
        await road.start_bot(**extra)
    except BotFailed:
        process = road.bot.process
        if process is None or process.returncode != -signal.SIGKILL:
            raise


async def wait_for_the_end(road: Road) -> None:
    """Until the bot is dead, or the release has arrived."""
    process = road.bot.process
    assert process is not None
    for _ in range(400):
        if process.returncode is not None:
            return
        if await successes(road) >= 2:
            return
        await asyncio.sleep(0.15)
    raise AssertionError(f"neither death nor success\n{await road.tell()}")


async def successes(road: Road) -> int:
    """How many promotions have succeeded, the first release included; 0 while the bot does not answer."""
    try:
        return len({event.promotion for event in await road.events() if event.kind == "succeeded"})
    except httpx.TransportError:
        return 0


async def finish(road: Road) -> bool:
    """Wait until dev runs the release; an apply whose end nobody saw is looked at by a person, who says /retry.

    The answer is whether somebody had to.
    """
    asked = False

    async def arrived() -> bool:
        nonlocal asked
        events = await road.events()
        last = next((e for e in reversed(events) if e.kind in ("succeeded", "errored", "failed")), None)
        if last is not None and last.kind == "errored" and "outcome unknown" in last.message and not asked:
            asked = True
            await road.comment((await road.pulls())[-1].number, "/retry", user="olivia")
        tags, environment = road.live()
        there = tags == ["1.1.0"] and environment.get("LAMBDA_URL") == road.outputs().get("lambda_url")
        return there and await successes(road) >= 2

    await road.until("the release in dev", arrived)
    await road.wait_until_quiet()
    return asked


async def wrong(road: Road, before: Before, *, asked: bool) -> list[str]:
    """What has not happened exactly once, and what must never happen."""
    all_pulls = await road.pulls()
    number = all_pulls[-1].number
    commits = await road.commits_since(before.tip)
    releases = [commit for commit in commits if len(commit.parents) == 1]
    found = Effects(
        pulls=len(all_pulls) - before.pulls,
        plan_comments=len(road.comments(number, "plan")),
        outcome_comments=len(road.comments(number, "outcome")),
        merges=len([commit for commit in commits if len(commit.parents) == 2]),
        release_commits=len(releases),
        changes=road.most_changes(since=before.versions),
        syncs=1 if road.operation().get("phase") == "Succeeded" else 0,
    )
    problems = [] if found == ONCE else [f"{found}"]
    # A kill in the middle of an apply interrupts it; then the rest is a second one, after a person's word.
    if road.applies() > (2 if asked else 1):
        problems.append(f"{road.applies()} applies")
    problems += [f"leak: {leak}" for leak in await road.leaks()]
    return problems


async def list_writes(snapshot: Path, directory: Path) -> list[str]:
    """What is written to the journal when nobody dies, in order."""
    assert not await promote_through_a_kill(snapshot, directory, Point(0, "kept"))
    return [line.partition(" ")[2] for line in (directory / "kills.log").read_text().splitlines()]


def choose_points(writes: list[str]) -> list[Point]:
    """Every write with its commit lost, and some with it kept; of a row of equal polls the first two and the last.

    What follows the last write is told by nobody else, so that one is always among those that are kept.
    """
    numbers = range(1, len(writes) + 1)
    polled = {n for n in numbers[2:-1] if len(set(writes[n - 3 : n + 1])) == 1}
    lost = [Point(number, "lost") for number in numbers if number not in polled]
    kept = [*random.Random(SEED).sample([point.number for point in lost[:-1]], 5), lost[-1].number]
    return lost + [Point(number, "kept") for number in kept]


async def run_lane(snapshot: Path, directory: Path, points: list[Point]) -> list[str]:
    """Every point of one lane, one after the other."""
    problems = []
    for point in points:
        try:
            problems += [
                f"{point}: {problem}" for problem in await promote_through_a_kill(snapshot, directory, point)
            ]
        except AssertionError as error:
            problems.append(f"{point}: {error}")
    return problems


async def test_a_kill_at_every_journal_write_changes_nothing(tmp_path: Path) -> None:
    snapshots = [tmp_path / f"snapshot-{lane}" for lane in range(LANES)]
    await asyncio.gather(*(make_snapshot(snapshot) for snapshot in snapshots))
    writes = await list_writes(snapshots[0], tmp_path / "road-0")
    assert len(writes) > 20, "the journal is not seen by the killer"
    points = choose_points(writes)
    lanes = await asyncio.gather(
        *(run_lane(snapshots[lane], tmp_path / f"road-{lane}", points[lane::LANES]) for lane in range(LANES))
    )
    problems = [problem for lane in lanes for problem in lane]
    assert not problems, "\n".join(problems)
