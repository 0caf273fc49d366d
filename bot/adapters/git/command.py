"""One git command: argument list in, exit code and bytes out, and nothing left running after the time limit."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from git.cmd import Git
from git.exc import GitCommandNotFound

from bot.adapters.git.environment import foreign_names
from bot.ports import TerminalError, TransientError


@dataclass(frozen=True, slots=True)
class Completed:
    """How a command ended; `error` is its standard error as text."""

    code: int
    output: bytes
    error: str


def run(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdin: bytes | None = None,
    timeout: float = 120.0,
) -> Completed:
    """Run `git` with exactly these arguments; blocks, so call it in a thread. `timeout` is in seconds.

    Raises TransientError after the time limit, TerminalError if there is no git on this machine.
    """
    unset = [part for name in foreign_names() if name not in environment for part in ("-u", name)]
    command = [*(["env", *unset] if unset else []), "git", *arguments]
    try:
        handle = Git().execute(
            command,
            # GitPython hands this on to Popen as it is; without input the child reads from the null device.
            istream=subprocess.PIPE if stdin is not None else None,
            env=dict(environment),
            as_process=True,
            shell=False,
            # The group is what gets killed: git leaves its network helper behind when it is killed alone.
            start_new_session=True,
        )
    except GitCommandNotFound as error:
        raise TerminalError("git was not found on PATH; install git 2.38 or newer.") from error
    # GitPython declares the process as optional; it is there until its handle is disposed of.
    process = cast("subprocess.Popen[bytes]", handle.proc)
    try:
        output, error_text = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        _kill_group(process)
        raise TransientError(
            f"git {arguments[0]} did not end within {timeout:g} s and was stopped; it is tried again later."
        ) from error
    except BaseException:
        _kill_group(process)
        raise
    return Completed(process.returncode, output, error_text.decode("utf-8", "replace"))


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    # The group may have ended by itself in the meantime, which is what was wanted.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
