"""kill -9 at every write of the journal, then a restart: each effect has happened once.

One Stage is promoted from a snapshot: for the writes up to the merge from one in which it runs the first release, for
those after it from one in which the bot died as it began to carry the second release out. Several roads work side by
side, since a road waits more than it works, each on ports of its own, since addresses stand in the repository's files.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
FIRST_OF_THE_STEPS = "INSERT INTO steps"
"""The write with which the bot begins to carry out what was merged."""


@dataclass(frozen=True, slots=True)
class Point:
    """Where to kill: before or after the merge, at the write of this number, its commit lost or kept."""

    merged: bool
    number: int
    when: str

    def __str__(self) -> str:
        return f"write {self.number} {'after' if self.merged else 'before'} the merge, {self.when}"


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


ONCE = Effects(1, 1, 1, 1, 1, 1, 1)


@dataclass(frozen=True, slots=True)
class Lane:
    """One road on ports of its own: where it runs, the two states that it is left in, and what the first one holds.

    `tip` is main's, `pulls` and `versions` count pull requests of the Stage and versions of its state.
    """

    road: Path
    released: Path
    merged: Path
    tip: str
    pulls: int
    versions: int

    def death(self, at: int | str, when: str) -> dict[str, str]:
        """What a bot is told that is to die at the write of this number, 0 for none, or of this text."""
        return {"KILL_AT": str(at), "KILL_WHEN": when, "KILL_LOG": str(self.road / "kills.log")}

    def writes(self) -> list[str]:
        """What the bot that was to die wrote to its journal, in order."""
        return [line.partition(" ")[2] for line in (self.road / "kills.log").read_text().splitlines()]


async def make_lane(directory: Path) -> Lane:
    """A lane whose Stage, which merges by itself, was left twice."""
    released = directory / "released"
    async with open_road(released, Seed(review="autoMerge: true\n"), ForkedBot) as road:
        await road.start_bot()
        await road.wait_for_success()
        road.forget_terraform()
        tip, pulls, versions = await road.tip(), len(await road.pulls()), road.versions()
    lane = Lane(directory / "road", released, directory / "merged", tip, pulls, versions)
    async with open_again(lane, merged=False) as road:
        await start_to_die(road, **lane.death(FIRST_OF_THE_STEPS, "lost"))
        await wait_for_the_end(road)
        assert lane.writes()[-1] == FIRST_OF_THE_STEPS
    copy_road(lane.road, lane.merged)
    return lane


@asynccontextmanager
async def open_again(lane: Lane, *, merged: bool) -> AsyncIterator[Road]:
    """The road as it was left at or before the merge; before it, the second release is published."""
    shutil.rmtree(lane.road, ignore_errors=True)
    copy_road(lane.merged if merged else lane.released, lane.road)
    (lane.road / "kills.log").unlink(missing_ok=True)
    async with open_road(lane.road, None, ForkedBot) as road:
        if not merged:
            await road.publish(otel="1.1.0", lambda_="1.1.0")
        yield road


async def promote_through_a_kill(lane: Lane, point: Point) -> list[str]:
    """Let the bot die at the point, start it again, and count; returns what is wrong."""
    async with open_again(lane, merged=point.merged) as road:
        plain = road.bot.extra
        await start_to_die(road, **lane.death(point.number, point.when))
        await wait_for_the_end(road)
        road.bot.extra = plain
        await road.bot.stop()
        await road.start_bot()
        asked = await finish(road)
        return await wrong(road, lane, asked=asked)


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


async def wrong(road: Road, before: Lane, *, asked: bool) -> list[str]:
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


async def list_writes(lane: Lane, *, merged: bool) -> list[str]:
    """What is written to the journal from there on when nobody dies, in order."""
    assert not await promote_through_a_kill(lane, Point(merged, 0, "kept"))
    return lane.writes()


def choose_points(writes: list[str], *, merged: bool) -> list[Point]:
    """Every write with its commit lost, and some with it kept; of a row of equal polls the first two and the last.

    What follows the last write is told by nobody else, so that one is always among those that are kept.
    """
    numbers = range(1, len(writes) + 1)
    polled = {n for n in numbers[2:-1] if len(set(writes[n - 3 : n + 1])) == 1}
    lost = [Point(merged, number, "lost") for number in numbers if number not in polled]
    some = random.Random(SEED).sample([point.number for point in lost[:-1]], 4 if merged else 2)
    return lost + [Point(merged, number, "kept") for number in (*some, lost[-1].number)]


async def list_points(lane: Lane) -> list[Point]:
    """Every point up to the merge, and every one from there on."""
    before = await list_writes(lane, merged=False)
    begins = before.index(FIRST_OF_THE_STEPS)
    after = await list_writes(lane, merged=True)
    assert begins > 5, "the journal is not seen by the killer"
    assert len(after) > 20, "the journal is not seen by the killer"
    return choose_points(before[:begins], merged=False) + choose_points(after, merged=True)


async def run_lane(lane: Lane, points: list[Point]) -> list[str]:
    """Every point of one lane, one after the other."""
    problems = []
    for point in points:
        try:
            problems += [f"{point}: {problem}" for problem in await promote_through_a_kill(lane, point)]
        except AssertionError as error:
            problems.append(f"{point}: {error}")
    return problems


async def test_a_kill_at_every_journal_write_changes_nothing(tmp_path: Path) -> None:
    lanes = await asyncio.gather(*(make_lane(tmp_path / f"lane-{number}") for number in range(LANES)))
    points = await list_points(lanes[0])
    found = await asyncio.gather(
        *(run_lane(lane, points[number::LANES]) for number, lane in enumerate(lanes))
    )
    problems = [problem for problems in found for problem in problems]
    assert not problems, "\n".join(problems)
