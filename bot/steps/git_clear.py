"""`git-clear`: empties a checkout, all but its history."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.step_kinds import StepClass, StepKind
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult
from bot.steps.options import Options
from bot.steps.worktree import clean_path, join

KIND = StepKind("git-clear", StepClass.EDIT)


@dataclass(frozen=True, slots=True)
class GitClear:
    """Edits the work tree only."""

    @property
    def kind(self) -> StepKind:
        """An edit."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Empty the checkout."""
        return await self._clear(config, context)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Empty the checkout."""
        return await self._clear(config, context)

    async def _clear(self, config: Given, context: StepContext) -> StepResult:
        place = clean_path(Options(KIND.name, config).address("path"))
        checkout = context.tree.checkout_at(place)
        # What a later step writes again unchanged counts as touched all the same.
        context.tree.touch(place)
        await context.tree.put({join(place, path): None for path in sorted(checkout.paths())})
        return StepResult()
