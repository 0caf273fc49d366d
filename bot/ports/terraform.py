"""The real terraform or tofu binary, isolated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from bot.domain.files import File
from bot.domain.terraform import ApplyOutcome, OutputOutcome, PlanOutcome


@dataclass(frozen=True, slots=True)
class TerraformRun:
    """One directory of Terraform to be run, hermetically.

    `key` names the run's absolute work path and its lock among our own runs: the same for plan and apply of one
    state. `files` are paths relative to the checkout; `directory` and variable files lie inside it.
    `environment` and `secrets` reach the process; of `secrets` (name to value) every value is masked in all texts.
    """

    key: str
    files: Mapping[str, File]
    directory: str
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[tuple[str, str], ...] = ()
    variable_files: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    lock: bool = True
    lock_timeout: float = 0.0
    timeout: float = 3600.0


class Terraform(Protocol):
    """The real terraform or tofu binary, isolated.

    Raises TerminalError if it is missing, too old, or the tree is refused.
    """

    async def plan(self, run: TerraformRun) -> PlanOutcome:
        """Init and plan; writes nothing but, with `lock`, the state lock for the time of the run."""

    async def apply(self, run: TerraformRun, bundle: bytes) -> ApplyOutcome:
        """Apply a saved plan. Not repeatable: the caller records that it begins, and never begins twice."""

    async def output(self, run: TerraformRun) -> OutputOutcome:
        """Init and read the outputs from the state."""

    async def version(self) -> str:
        """Tool and version, such as `terraform 1.11.4`."""
