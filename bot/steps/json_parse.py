"""`json-parse`: outputs whose values are expressions over a JSON file."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.step_kinds import StepClass, StepKind
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult
from bot.steps.parsing import parse_json, run_parse

KIND = StepKind("json-parse", StepClass.PURE)


@dataclass(frozen=True, slots=True)
class JsonParse:
    """Reads the work tree only."""

    @property
    def kind(self) -> StepKind:
        """Pure."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """The outputs; what stands for an unknown value is unknown again."""
        return await run_parse(KIND.name, config, context, parse_json)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """The outputs."""
        return await run_parse(KIND.name, config, context, parse_json)
