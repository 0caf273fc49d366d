"""What the walks over one project's tasks work with.

A walk gets its repositories and steps from here alone, by the name of its project, so that no walk can reach what the
Secrets of another project open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.ports import Git
from bot.steps.contract import Step


@dataclass(frozen=True, slots=True)
class Bench:
    """The repositories as one project sees them, and every step kind by name, working in them."""

    git: Git
    steps: Mapping[str, Step]


Benches = Callable[[str], Bench]
"""Gives the bench of a project for one walk."""
