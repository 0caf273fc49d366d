"""How far a walk has come, as the expressions of its next step see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bot.domain.model import Step, Variable
from bot.domain.promotion import StepStatus
from bot.domain.values import Unknown, Value


@dataclass(slots=True)
class Progress:
    """Outputs and statuses of the steps so far. A status of None is not known before the merge.

    `failed` tells that a step without `continueOnError` failed. Keys are aliases as inflation made them
    (`<task>::<step>` for steps of a task).
    """

    outputs: dict[str, Value] = field(default_factory=dict)
    statuses: dict[str, StepStatus | None] = field(default_factory=dict)
    tolerated: set[str] = field(default_factory=set)
    """Aliases whose failure does not count."""
    uncertain: set[str] = field(default_factory=set)
    """Aliases that may run or not."""
    failed: bool = False

    def record(
        self, step: Step, status: StepStatus | None, output: Value, *, uncertain: bool = False
    ) -> None:
        """Remember one step; outputs of `compose-output` also appear under the task's alias."""
        self.statuses[step.alias] = status
        if uncertain:
            self.uncertain.add(step.alias)
        self.outputs[step.alias] = output
        if step.continue_on_error:
            self.tolerated.add(step.alias)
        elif status in (StepStatus.FAILED, StepStatus.ERRORED, StepStatus.ABORTED):
            self.failed = True
        task, separator, _ = step.alias.rpartition("::")
        if step.uses == "compose-output" and separator and isinstance(output, dict):
            known = self.outputs.get(task)
            self.outputs[task] = (known if isinstance(known, dict) else {}) | output


class Evaluator(Protocol):
    """The expressions of one Promotion. Raises TerminalError with the expression and what is wrong with it."""

    def condition(self, step: Step, progress: Progress) -> bool | Unknown:
        """Whether a step runs: its `if`, or else that nothing has failed."""

    def config(self, step: Step, progress: Progress) -> Value:
        """A step's config, evaluated; marks stand for what is not known or not to be shown."""

    def environment(self, variables: Sequence[Variable]) -> Mapping[str, Value]:
        """Variables of a policy, evaluated: they see `ctx` and the functions, no outputs."""
