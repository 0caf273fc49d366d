"""Blocking work in worker threads that outlives the cancellation of who waits for it."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """The result of blocking work; a cancellation is raised only after the work has ended.

    Without this the database could be closed under a thread that nobody waits for any more.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
