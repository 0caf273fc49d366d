"""One child process under rules: what it may touch, how long it may take, how much it may write, and how it ends.

It starts in a session of its own with nothing on standard input. It is interrupted by SIGINT, which Terraform takes
as "finish what you are doing and save the state", and killed with its whole group if that takes too long; the kernel
sends the same SIGINT if the bot itself dies. It writes to files without a name, not to pipes: a Go program ends at
once when it writes to a pipe that nobody reads, so with pipes the death of the bot would be that of Terraform too,
in the middle of an apply.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import resource
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.adapters.terraform.landlock import Ruleset
from bot.ports import TerminalError

_PARENT_DEATH_SIGNAL = 1
_libc = ctypes.CDLL(None, use_errno=True)

_LOOK_EVERY = 0.1
"""Seconds between two looks at what a child has written."""

_STDERR_LIMIT = 256 * 1024

_LARGEST_FILE = 4 * 1024**3
"""No file that a run writes may be longer; the largest provider programs have about a fifth of this."""


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
    on_start: Callable[[int], None] | None = None
    """Gets the process id, which is also that of its group."""
    spool: Path | None = None
    """Where its output is kept meanwhile, without a name; else where temporary files go."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. `stopped` says why it was ended from outside, and is empty if it was not."""

    code: int
    output: bytes
    error: str
    stopped: str = ""


class _Written:
    """What a child writes to one of its outputs, read while it goes on writing."""

    def __init__(
        self, limit: int, spool: Path | None, on_line: Callable[[bytes], None] | None = None
    ) -> None:
        self._descriptor, name = tempfile.mkstemp(dir=spool)
        os.unlink(name)
        self._limit = limit
        self._on_line = on_line
        self._shown = 0
        self._begun = b""

    def fileno(self) -> int:
        return self._descriptor

    @property
    def is_too_long(self) -> bool:
        return os.fstat(self.fileno()).st_size > self._limit

    def show(self) -> None:
        """Hand on the lines that are complete by now."""
        while self._on_line is not None and self._shown < self._limit:
            # Child and parent share one position in the file, so it is read without moving that.
            chunk = os.pread(self.fileno(), min(1 << 20, self._limit - self._shown), self._shown)
            if not chunk:
                return
            self._shown += len(chunk)
            *lines, self._begun = (self._begun + chunk).split(b"\n")
            for line in lines:
                self._on_line(line)

    def end(self) -> bytes:
        """All of it, up to the limit, with its last line handed on."""
        self.show()
        if self._begun and self._on_line is not None:
            self._on_line(self._begun)
        data = bytearray()
        while len(data) < self._limit and (
            chunk := os.pread(self.fileno(), self._limit - len(data), len(data))
        ):
            data += chunk
        return bytes(data)

    def close(self) -> None:
        os.close(self._descriptor)


async def execute(command: Command, stop: Stop) -> Ended:
    """Run a command to its end.

    A cancelled task interrupts it like `stop` does, and is cancelled once it has ended. Raises TerminalError if it
    cannot be started.
    """
    if stop.asked:
        return Ended(-1, b"", "", stop.reason)
    out = _Written(command.limits.output, command.spool, command.on_line)
    err = _Written(_STDERR_LIMIT, command.spool)
    try:
        process = await _start(command, out.fileno(), err.fileno())
        try:
            if command.on_start is not None:
                command.on_start(process.pid)
            stopped = await _watch(process, command.limits, stop, out)
        except asyncio.CancelledError:
            await asyncio.shield(_interrupt(process, command.limits.grace))
            raise
        finally:
            # Whatever the child left running in its group ends with it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        code = await process.wait()
        return Ended(code, out.end(), err.end().decode("utf-8", "replace"), stopped)
    finally:
        out.close()
        err.close()


async def _start(command: Command, out: int, err: int) -> asyncio.subprocess.Process:
    parent = os.getpid()
    rules = command.rules
    largest = _largest_file()

    def confine() -> None:
        # Only system calls here: other threads of the parent may have held any lock at the fork.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        _libc.prctl(_PARENT_DEATH_SIGNAL, int(signal.SIGINT), 0, 0, 0)
        if os.getppid() != parent:
            # The parent died before the kernel knew that it should tell.
            os._exit(1)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
        os.umask(0o077)
        if rules is not None:
            rules.restrict()

    try:
        # Not in a worker thread: the kernel sends the death signal when the thread that forked ends.
        return await asyncio.create_subprocess_exec(
            *command.arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=err,
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


def _largest_file() -> int:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    return _LARGEST_FILE if hard == resource.RLIM_INFINITY else min(hard, _LARGEST_FILE)


async def _watch(process: asyncio.subprocess.Process, limits: Limits, stop: Stop, out: _Written) -> str:
    """Wait for the end; if the command is stopped before, why."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limits.seconds
    ended, asked = asyncio.create_task(process.wait()), asyncio.create_task(stop.wait())
    try:
        while True:
            left = max(deadline - loop.time(), 0.0)
            await asyncio.wait(
                [ended, asked], timeout=min(left, _LOOK_EVERY), return_when=asyncio.FIRST_COMPLETED
            )
            if ended.done():
                return ""
            out.show()
            reason = _reason_to_stop(stop, out, limits, late=loop.time() >= deadline)
            if reason:
                await _interrupt(process, limits.grace)
                return reason
    finally:
        for task in (ended, asked):
            task.cancel()
        await asyncio.gather(ended, asked, return_exceptions=True)


def _reason_to_stop(stop: Stop, out: _Written, limits: Limits, *, late: bool) -> str:
    if stop.asked:
        return stop.reason
    if out.is_too_long:
        return f"it wrote more than {limits.output} bytes"
    return "the time limit was reached" if late else ""


async def _interrupt(process: asyncio.subprocess.Process, grace: float) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    try:
        await asyncio.wait_for(process.wait(), grace)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
