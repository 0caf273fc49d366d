"""`fail`: ends the promotion with a message."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.step_kinds import StepClass, StepKind
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.marks import show_scalar
from bot.steps.options import Options

KIND = StepKind("fail", StepClass.PURE)


@dataclass(frozen=True, slots=True)
class Fail:
    """Fails whenever it is reached."""

    @property
    def kind(self) -> StepKind:
        """Pure."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Reached for certain, it fails the preview too."""
        return self._fail(config, context)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Fail."""
        return self._fail(config, context)

    def _fail(self, config: Given, context: StepContext) -> StepResult:
        message = show_scalar(Options(KIND.name, config).text("message"))
        return failed(context.alias, message or "the task says so (fail)")
