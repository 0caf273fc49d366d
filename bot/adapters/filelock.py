"""A lock file that one holder at a time has, between tasks of one process and between processes.

The lock belongs to the open file, so a child that inherits it keeps it after its parent has died.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from bot.ports import TransientError

_LOOK_EVERY = 0.1
"""Seconds between two attempts; the kernel has no way to wait for a file lock that a task could await."""


@contextlib.asynccontextmanager
async def hold_file(
    path: Path, *, timeout: float, what: str, on_busy: Callable[[], None] | None = None
) -> AsyncIterator[int]:
    """Hold the lock on a file that is created if need be; gives the file descriptor.

    Raises TransientError after `timeout` seconds; `what` names the thing that is locked. `on_busy` is called each
    time that somebody else is found to have it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = asyncio.get_running_loop().time() + timeout
        while not _try_lock(descriptor):
            if asyncio.get_running_loop().time() >= deadline:
                raise TransientError(
                    f"Waited {timeout:g} s for {what}, which another process is using; it is tried again later.",
                    retry_after=10.0,
                )
            if on_busy is not None:
                on_busy()
            await asyncio.sleep(_LOOK_EVERY)
        try:
            yield descriptor
        finally:
            # Unlocked by name, since a grandchild that outlives its parent may still have the file open.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
