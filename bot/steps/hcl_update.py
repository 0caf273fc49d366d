"""`hcl-update`: writes literals into a Terraform or tfvars file, every other byte as it was."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.step_kinds import StepClass, StepKind
from bot.editors.hcl import update_hcl
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult
from bot.steps.updates import run_updates

KIND = StepKind("hcl-update", StepClass.EDIT)


@dataclass(frozen=True, slots=True)
class HclUpdate:
    """Edits the work tree only, so a preview does the same work."""

    @property
    def kind(self) -> StepKind:
        """An edit."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Edit the file; unknown values are written as sentinels."""
        return await run_updates(KIND.name, config, context, update_hcl)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Edit the file."""
        return await run_updates(KIND.name, config, context, update_hcl)
