"""The Terraform or OpenTofu binary of this machine: where it is, which version, and the rules every run starts with."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bot.adapters.terraform import landlock
from bot.adapters.terraform.environment import READABLE
from bot.adapters.terraform.process import Command, Limits, Stop, execute
from bot.ports import TerminalError

_OLDEST = (1, 6)

Isolation = Literal["landlock", "none"]


@dataclass(frozen=True, slots=True)
class Version:
    """Tool and version, as `terraform 1.11.4`."""

    tool: str
    number: tuple[int, int, int]

    def __str__(self) -> str:
        return f"{self.tool} {'.'.join(map(str, self.number))}"

    @property
    def has_json_init(self) -> bool:
        """Whether `init -json` exists."""
        return self.tool == "terraform" and self.number >= (1, 9, 0)

    @property
    def takes_variables_at_apply(self) -> bool:
        """Whether a saved plan may be given its variables again, which ephemeral ones need."""
        return self.tool == "terraform" and self.number >= (1, 11, 0)


@dataclass(frozen=True, slots=True)
class Tool:
    """Which binary to run and what every run may use.

    `binary` is a path or a name on PATH. `mirror` is a directory with providers, `cache` one in which downloaded
    providers are kept. `environment` reaches every run (proxies, certificate files), `readable` and `writable` are
    further paths under Landlock. `grace` is the time between SIGINT and SIGKILL in seconds.
    """

    binary: str = "terraform"
    isolation: Isolation = "landlock"
    mirror: Path | None = None
    cache: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    readable: Sequence[Path] = ()
    writable: Sequence[Path] = ()
    grace: float = 60.0

    def find(self) -> Path:
        """The binary's real path. Raises TerminalError if there is none."""
        found = shutil.which(self.binary)
        if found is None:
            raise TerminalError(
                f"{self.binary!r} was not found on PATH; install terraform or tofu, 1.6 or newer."
            )
        return Path(found).resolve()

    def rules(self, writable: Sequence[Path], *, fetching: bool) -> landlock.Ruleset | None:
        """The rules for a command; `fetching` commands may write to the provider cache, others only read it.

        A run that could write there could hand another run a provider of its own making. None without isolation.
        Raises TerminalError if the kernel has no Landlock.
        """
        if self.isolation == "none":
            return None
        shared = [path for path in (self.cache,) if path is not None]
        readable = [
            self.find(),
            *map(Path, READABLE),
            *self.readable,
            *([self.mirror] if self.mirror else []),
        ]
        try:
            return landlock.Ruleset(
                [path.resolve() for path in (*readable, *shared)],
                [*writable, Path("/dev/null"), *self.writable, *(shared if fetching else [])],
            )
        except OSError as error:
            raise TerminalError(
                f"Terraform cannot be isolated: this kernel offers no Landlock ({error.strerror}). Use Linux 5.13 or "
                "newer with Landlock on, or accept runs that can read the bot's secrets: LOCKSTEP_ISOLATION=none."
            ) from error


async def read_version(tool: Tool, scratch: Path) -> Version:
    """Ask the binary for its version. Raises TerminalError if it is not one that we can use."""
    binary = tool.find()
    rules = tool.rules([scratch], fetching=False)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(scratch), "CHECKPOINT_DISABLE": "1"}
    command = Command([str(binary), "version"], scratch, environment, rules, Limits(60.0), spool=scratch)
    try:
        ended = await execute(command, Stop())
    finally:
        if rules is not None:
            rules.close()
    found = re.search(rb"^(Terraform|OpenTofu) v(\d+)\.(\d+)\.(\d+)", ended.output, re.MULTILINE)
    if found is None:
        said = (ended.output.decode("utf-8", "replace") + ended.error).strip()[:300]
        raise TerminalError(
            f"`{binary} version` did not answer like terraform or tofu (exit {ended.code}): {said}"
        )
    name = "terraform" if found[1] == b"Terraform" else "tofu"
    version = Version(name, (int(found[2]), int(found[3]), int(found[4])))
    if version.number[:2] < _OLDEST:
        raise TerminalError(f"{binary} is {version}; install 1.6 or newer.")
    return version
