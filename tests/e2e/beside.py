"""Beside the bot: its commands on the command line, and the lock of a Terraform state that it holds."""

from __future__ import annotations

import asyncio
import sys

from tests.e2e.road import Road


async def lockstep(road: Road, *arguments: str) -> tuple[int, str, str]:
    """Run a command with the bot's environment; status, output and errors."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bot",
        *arguments,
        env=road.bot.environment(road.demo),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode is not None
    assert "Traceback" not in errors.decode(), errors.decode()
    return process.returncode, output.decode(), errors.decode()


async def is_locked(road: Road, state: str) -> bool:
    """Whether somebody holds the lock of a state."""
    return road.sandbox.cloud.lock(state) is not None


async def until_unlocked(road: Road, state: str) -> None:
    """Until Terraform, which outlives the bot only to end in good order, has given the lock back."""
    for _ in range(300):
        if not await is_locked(road, state):
            return
        await asyncio.sleep(0.1)
    # It was killed itself: an operator who knows that removes the lock.
    road.sandbox.cloud.break_lock(state)
