"""`compose-output`: publishes its config as outputs; the walk also shows them under the task's alias."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.step_kinds import StepClass, StepKind
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult

KIND = StepKind("compose-output", StepClass.PURE)


@dataclass(frozen=True, slots=True)
class ComposeOutput:
    """Passes values on, marks included."""

    @property
    def kind(self) -> StepKind:
        """Pure."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """The outputs as far as they are known."""
        del context
        return StepResult(output=dict(config))

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """The outputs."""
        del context
        return StepResult(output=dict(config))
