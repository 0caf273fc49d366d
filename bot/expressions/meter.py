"""The budget of one evaluation: work, size of results, depth of values."""

from __future__ import annotations

from bot.expressions.errors import BudgetExceededError

WORK = 1_000_000
"""Units of work one evaluation may spend: an element visited, a predicate node run, 64 characters made."""

MAX_TEXT = 4_194_304
"""Characters in one text that an expression makes."""

MAX_DEPTH = 100
"""How deep lists and maps may nest; deeper ones cannot be walked, compared or written."""


class Meter:
    """Counts down the work of one evaluation; `spend` raises BudgetExceededError when nothing is left."""

    __slots__ = ("left",)

    def __init__(self, left: int = WORK) -> None:
        self.left = left

    def spend(self, units: int) -> None:
        """Takes `units` of work."""
        self.left -= units
        if self.left < 0:
            raise BudgetExceededError(
                f"the expression needs more work than one evaluation may do ({WORK} units)"
            )

    def text(self, length: int) -> None:
        """Takes the work for a text of `length` characters, before it is made."""
        if length > MAX_TEXT:
            raise BudgetExceededError(
                f"the expression makes a text of {length} characters; {MAX_TEXT} are allowed"
            )
        self.spend(1 + (length >> 6))

    def elements(self, count: int) -> None:
        """Takes the work for a list of `count` elements, before it is made."""
        self.spend(1 + count)

    def depth(self, depth: int) -> None:
        """Refuses a value that nests deeper than `MAX_DEPTH`."""
        if depth > MAX_DEPTH:
            raise BudgetExceededError(f"a value nests deeper than {MAX_DEPTH} levels")
