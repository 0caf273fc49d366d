"""Step kinds that are understood in a pipeline but not done here: they say so instead of being passed over."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.step_kinds import StepKind
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed

ADVICE = "remove it, or use the step http to call what it calls"
"""What to do instead of such a step."""


@dataclass(frozen=True, slots=True)
class NotCarriedOut:
    """Fails with what to do instead."""

    step: StepKind

    @property
    def kind(self) -> StepKind:
        """The kind that it stands for."""
        return self.step

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Fail before anything is reviewed."""
        return self._refuse(config, context)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Fail."""
        return self._refuse(config, context)

    def _refuse(self, config: Given, context: StepContext) -> StepResult:
        del config
        return failed(
            context.alias,
            f"{self.step.name}: this kind of step is known but not carried out here; {ADVICE}",
        )
