"""What the Terraform tests share: a runner on fresh directories, runs from texts, and a wait for something to be so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bot.adapters.terraform import TerraformRunner, Tool
from bot.adapters.vault import KeyFileVault
from bot.domain.files import File
from bot.domain.terraform import Planned, PlanOutcome
from bot.ports import TerraformRun

LOCK_FILE = ".terraform.lock.hcl"


def make_runner(root: Path, *, lines: list[tuple[str, str]] | None = None, **tool: Any) -> TerraformRunner:
    """A runner below `root`; `lines` collects its live log."""
    vault = KeyFileVault(root / "key")
    on_line = (lambda key, line: lines.append((key, line))) if lines is not None else None
    return TerraformRunner(root / "data", vault, Tool(**{"grace": 10.0, **tool}), on_line=on_line)


def make_run(files: Mapping[str, str], **fields: Any) -> TerraformRun:
    """A run of the directory `infra` with these files in it, as a key of its own."""
    tree = {f"infra/{name}": File(text.encode()) for name, text in files.items()}
    return TerraformRun(**{"key": "demo/dev", "files": tree, "directory": "infra", **fields})


def planned(outcome: PlanOutcome) -> Planned:
    """The outcome, which must be a plan."""
    assert isinstance(outcome, Planned), outcome
    return outcome


async def until(holds: Callable[[], bool], *, seconds: float = 20.0) -> None:
    """Return as soon as it holds; fails if it does not within the time."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come about in time"
        await asyncio.sleep(0.01)
