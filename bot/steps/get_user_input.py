"""`get-user-input`: asks a person on the pull request; before the cut the answer gates the merge."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.promotion import StepStatus
from bot.domain.review import GateRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Unknown, Value
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult
from bot.steps.options import Options

KIND = StepKind("get-user-input", StepClass.WAIT)

_OUTPUTS = ("values", "respondedBy", "respondedAt")


@dataclass(frozen=True, slots=True)
class GetUserInput:
    """Takes `context.answer`, which whoever received it has held to the config's `schema`."""

    @property
    def kind(self) -> StepKind:
        """A wait."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """A gate until somebody answers; then the answer is frozen."""
        subject = f"an answer to {_fields(config)}"
        if context.answer is not None:
            return StepResult(output=_output(context), record=GateRecord(subject, open=True))
        later: dict[str, Value] = {
            name: Unknown(f"known after step: {context.alias}.{name}") for name in _OUTPUTS
        }
        record = GateRecord(subject, open=False, reason="nobody has answered yet")
        return StepResult(None, later, record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Running until somebody answers."""
        if context.answer is not None:
            return StepResult(output=_output(context))
        pause = Options(KIND.name, config).duration("pollInterval", 30.0)
        return StepResult(
            StepStatus.RUNNING, message=f"waits for an answer to {_fields(config)}", retry_after=pause
        )


def _fields(config: Given) -> str:
    """What is asked for: the titles of the schema's fields."""
    properties = Options(KIND.name, config).part("schema").part("properties")
    names = [
        str(value["title"]) if isinstance(value, dict) and value.get("title") else name
        for name, value in properties.values.items()
    ]
    return ", ".join(names) or "a question"


def _output(context: StepContext) -> dict[str, Value]:
    answer = context.answer or {}
    return {name: answer.get(name) for name in _OUTPUTS}
