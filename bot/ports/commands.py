"""Programs of the operator's choosing, which a pipeline's author may call as steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from bot.domain.custom_steps import OutputSource
from bot.domain.files import File


@dataclass(frozen=True, slots=True)
class CommandRun:
    """One run of a program in a work tree. `program` is a bare name or an absolute path, as the author wrote it.

    `files` is the whole tree by path. `secrets` reach the environment too, and are masked in all texts, as is what the
    patterns `masks` find. `path` is the output's file for `OutputSource.FILE`. `timeout` is in seconds.
    """

    program: str
    arguments: tuple[str, ...]
    files: Mapping[str, File]
    timeout: float
    source: OutputSource = OutputSource.PIPE
    path: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    masks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandEnded:
    """How it ended: exit code, output as it was left (at most a byte more than 256 KiB), and what it said, masked.

    `changed` are the files that are other than they were, None for those that are gone; the output's file is not among
    them. `stopped` says why it was ended from outside, empty if it was not.
    """

    code: int
    output: bytes
    log: str
    changed: Mapping[str, File | None] = field(default_factory=dict)
    stopped: str = ""


class Commands(Protocol):
    """The programs that the operator allows, isolated as Terraform is."""

    def why_refused(self, program: str) -> str:
        """Why a program may not be run, with what to do about it; empty if it may."""

    async def run(self, run: CommandRun) -> CommandEnded:
        """Run it. Not repeatable: the caller records that it begins, and repeats nothing that acts.

        Raises TerminalError if it may not or cannot be started, or leaves what cannot be kept.
        """

    def find_secret(self, run: CommandRun, text: str) -> str:
        """The name of a secret of the run that stands in a text, in whichever encoding; empty if there is none."""
