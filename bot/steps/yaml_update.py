"""`yaml-update`: writes scalars into a YAML file, every other byte as it was.

Kargo rewrites the rest of the line; `update_yaml` says which data that ruins and what is done instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.step_kinds import StepClass, StepKind
from bot.editors.yaml import update_yaml
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult
from bot.steps.updates import run_updates

KIND = StepKind("yaml-update", StepClass.EDIT)


@dataclass(frozen=True, slots=True)
class YamlUpdate:
    """Edits the work tree only, so a preview does the same work."""

    @property
    def kind(self) -> StepKind:
        """An edit."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Edit the file; unknown values are written as sentinels."""
        return await run_updates(KIND.name, config, context, update_yaml)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Edit the file."""
        return await run_updates(KIND.name, config, context, update_yaml)
