"""One child process under rules: what it may touch, how long it may take, how much it may write, and how it ends.

It starts in a session of its own with nothing on standard input. It is interrupted by SIGINT, which Terraform takes
as "finish what you are doing and save the state", and killed with its whole group if that takes too long; the kernel
sends the same SIGINT if the bot itself dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import resource
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bot.adapters.terraform.landlock import Ruleset
from bot.ports import TerminalError

_PARENT_DEATH_SIGNAL = 1
_libc = ctypes.CDLL(None, use_errno=True)

_DRAIN_SECONDS = 2.0
"""How long the pipes are read after the child has ended; a stray grandchild may keep them open for ever."""

_STDERR_LIMIT = 256 * 1024


class Stop:
    """A request to end a run, made from outside it; `reason` is what a person reads."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self.reason = ""

    def ask(self, reason: str) -> None:
        """End the run; the first reason stays."""
        self.reason = self.reason or reason
        self._asked.set()

    @property
    def asked(self) -> bool:
        """Whether somebody has asked."""
        return self._asked.is_set()

    async def wait(self) -> None:
        """Return once somebody asks."""
        await self._asked.wait()


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds for the command, seconds from SIGINT to SIGKILL, and bytes that it may write."""

    seconds: float
    grace: float = 60.0
    output: int = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Command:
    """What to run and under which rules; `inherited` file descriptors stay open in the child."""

    arguments: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    rules: Ruleset | None
    limits: Limits
    inherited: tuple[int, ...] = ()
    on_line: Callable[[bytes], None] | None = None
    """Gets each line of standard output as it comes, without its end."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. `stopped` says why it was ended from outside, and is empty if it was not."""

    code: int
    output: bytes
    error: str
    stopped: str = ""


@dataclass(slots=True)
class _Sink:
    """Bytes of one pipe, up to a limit; `full` is set when there were more."""

    limit: int
    on_line: Callable[[bytes], None] | None = None
    data: bytearray = field(default_factory=bytearray)
    full: asyncio.Event = field(default_factory=asyncio.Event)
    _shown: int = 0

    async def drain(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(1 << 16):
            room = self.limit - len(self.data)
            self.data += chunk[:room]
            if len(chunk) > room:
                # Read on, or the child would wait for room in the pipe instead of taking the signal.
                self.full.set()
            self._show()

    def _show(self) -> None:
        if self.on_line is None:
            return
        end = self.data.rfind(b"\n")
        if end >= self._shown:
            for line in bytes(self.data[self._shown : end]).split(b"\n"):
                self.on_line(line)
            self._shown = end + 1


async def execute(command: Command, stop: Stop) -> Ended:
    """Run a command to its end.

    A cancelled task interrupts it like `stop` does, and is cancelled once it has ended. Raises TerminalError if it
    cannot be started.
    """
    if stop.asked:
        return Ended(-1, b"", "", stop.reason)
    process = await _start(command)
    out = _Sink(command.limits.output, command.on_line)
    err = _Sink(_STDERR_LIMIT)
    assert process.stdout is not None
    assert process.stderr is not None
    pipes = [asyncio.create_task(out.drain(process.stdout)), asyncio.create_task(err.drain(process.stderr))]
    try:
        stopped = await _watch(process, command.limits, stop, out)
    except asyncio.CancelledError:
        await asyncio.shield(_interrupt(process, command.limits.grace))
        raise
    finally:
        # Whatever the child left running in its group ends with it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.wait(pipes, timeout=_DRAIN_SECONDS)
        for pipe in pipes:
            pipe.cancel()
        await asyncio.gather(*pipes, return_exceptions=True)
        # asyncio has no public way to close the pipes of a child that has ended while a grandchild holds them.
        process._transport.close()  # type: ignore[attr-defined]
    code = await process.wait()
    return Ended(code, bytes(out.data), err.data.decode("utf-8", "replace"), stopped)


async def _start(command: Command) -> asyncio.subprocess.Process:
    parent = os.getpid()
    rules = command.rules

    def confine() -> None:
        # Only system calls here: other threads of the parent may have held any lock at the fork.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        _libc.prctl(_PARENT_DEATH_SIGNAL, int(signal.SIGINT), 0, 0, 0)
        if os.getppid() != parent:
            # The parent died before the kernel knew that it should tell.
            os._exit(1)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.umask(0o077)
        if rules is not None:
            rules.restrict()

    try:
        # Not in a worker thread: the kernel sends the death signal when the thread that forked ends.
        return await asyncio.create_subprocess_exec(
            *command.arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=command.directory,
            env=dict(command.environment),
            start_new_session=True,
            pass_fds=command.inherited,
            preexec_fn=confine,
        )
    except OSError as error:
        raise TerminalError(
            f"{command.arguments[0]} cannot be run: {error.strerror or error}; check that it is there and executable."
        ) from error


async def _watch(process: asyncio.subprocess.Process, limits: Limits, stop: Stop, out: _Sink) -> str:
    """Wait for the end; if the command is stopped before, why."""
    ended = asyncio.create_task(process.wait())
    asked = asyncio.create_task(stop.wait())
    full = asyncio.create_task(out.full.wait())
    try:
        await asyncio.wait(
            [ended, asked, full], timeout=max(limits.seconds, 0.0), return_when=asyncio.FIRST_COMPLETED
        )
        if ended.done():
            return ""
        if asked.done():
            reason = stop.reason
        elif full.done():
            reason = f"it wrote more than {limits.output} bytes"
        else:
            reason = "the time limit was reached"
        await _interrupt(process, limits.grace)
        return reason
    finally:
        for task in (ended, asked, full):
            task.cancel()
        await asyncio.gather(ended, asked, full, return_exceptions=True)


async def _interrupt(process: asyncio.subprocess.Process, grace: float) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    try:
        await asyncio.wait_for(process.wait(), grace)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
