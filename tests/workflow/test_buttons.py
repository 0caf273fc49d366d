"""Buttons on check runs, pressed on the simulated GitHub: what their commands do, as far as the person may."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.sandbox.github.auth import person
from bot.sandbox.github.checks import press
from bot.sandbox.github.records import CheckRun, Comment
from tests.e2e.pipelines import Seed
from tests.e2e.road import Road, open_road

pytestmark = pytest.mark.e2e


async def press_plan(road: Road, run: CheckRun, user: str) -> None:
    """Press "Preview again"; GitHub would let nobody without write permission, which may have been taken since."""
    world = road.sandbox.github.world
    await asyncio.to_thread(press, world, person(world.need_user(user)), run, "plan")


async def test_preview_again_makes_a_new_preview_for_who_may_and_a_reply_for_who_may_not(
    tmp_path: Path,
) -> None:
    async with open_road(tmp_path / "road", Seed()) as road:
        await road.start_bot()
        pull = await road.wait_for_pull()
        first = await road.wait_for_check(pull.number, "lockstep / plan", "success")
        assert [(a["label"], a["identifier"]) for a in first.actions] == [("Preview again", "plan")]
        assert (first.external_id or "").endswith("/1/plan")

        await press_plan(road, first, "uma")

        async def refused() -> Comment | None:
            return next(iter(await road.replies()), None)

        reply = await road.until("the reply to uma", refused)
        assert "`@uma` pressed a button" in reply.body
        assert "needs perm:write" in reply.body
        await road.wait_until_quiet()
        newest = road.check(pull.head_sha, "lockstep / plan")
        assert newest is not None
        assert newest.external_id == first.external_id

        await press_plan(road, first, "rafael")

        async def again() -> bool:
            run = road.check(road.pull(pull.number).head_sha, "lockstep / plan")
            return run is not None and (run.external_id or "").endswith("/2/plan")

        await road.until("the second preview", again)
        await road.wait_until_quiet()
        assert len(await road.replies()) == 1
        assert len(road.comments(pull.number, "plan")) == 1
