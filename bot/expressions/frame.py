"""What one evaluation works on: the environment, its variables, its budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from bot.domain.values import Unknown
from bot.expressions.meter import Meter
from bot.expressions.operands import Function, Operand


class Frame:
    """One evaluation: names and functions of the environment, the clock's answer, variables by number."""

    __slots__ = ("functions", "meter", "names", "now", "slots")

    def __init__(
        self,
        names: Mapping[str, Operand],
        functions: Mapping[str, Function],
        now: datetime | Unknown | None,
        slots: int,
    ) -> None:
        self.names = names
        self.functions = functions
        self.now = now
        self.slots: list[Operand] = [None] * slots
        self.meter = Meter()


Run: TypeAlias = Callable[[Frame], Operand]
"""A compiled node: gives its value for one frame."""


@dataclass(frozen=True, slots=True)
class Code:
    """A compiled node and what is known of its result's type before it runs; an empty kind is unknown."""

    run: Run
    kind: str = ""
