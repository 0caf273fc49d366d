"""`tf-plan`: shows what Terraform would do; Succeeded means changes, Skipped none (Kargo's statuses).

`out` is a name for `tf-apply`'s `plan`, not a file: a plan holds secrets and never lies in a tree. As with `tf-apply`,
inputs that equal those of the last successful apply are not planned.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.keeping import KEPT, keeps_infra, why_unclear
from bot.domain.promotion import StepStatus
from bot.domain.review import FrozenRecord, KeptRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.terraform import Planned
from bot.domain.values import Unknown
from bot.ports import Git, TerminalError, Terraform, Vault
from bot.ports.store import PlanStore
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.options import Options
from bot.steps.terraform_config import find_site, parse_terraform
from bot.steps.terraform_inputs import InputGatherer, Inputs
from bot.steps.terraform_outcomes import refuse, refuse_or_wait
from bot.steps.tf_apply import changing_applies, is_unchanged

KIND = StepKind("tf-plan", StepClass.INFRA)


@dataclass(frozen=True, slots=True)
class TfPlan:
    """Plans, before and after the merge alike."""

    git: Git
    terraform: Terraform
    vault: Vault
    store: PlanStore

    @property
    def kind(self) -> StepKind:
        """Infrastructure, never a barrier."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """The plan as it is now, or unknown behind an apply that changes something."""
        inputs = await self._gather(config, context)
        if keeps_infra(context.promotion, context.policy):
            unclear = why_unclear(inputs.config.directory, inputs.whole)
            return failed(context.alias, unclear) if unclear else _kept(inputs)
        if inputs.unknown or changing_applies(context.earlier):
            message = "planned after the merge, since an earlier step changes what it depends on"
            return StepResult(None, {"plan": Unknown("known after apply: plan")}, message=message)
        return await self._plan(inputs, context, merged=False)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """The plan as it is when the step is reached."""
        inputs = await self._gather(config, context)
        if context.approved is not None and isinstance(context.approved.record, KeptRecord):
            return _kept(inputs)
        if inputs.unknown:
            raise TerminalError(f"tf-plan: {', '.join(inputs.unknown)} holds a value that is not known")
        return await self._plan(inputs, context, merged=True)

    async def _gather(self, config: Given, context: StepContext) -> Inputs:
        Options(KIND.name, config).address("out")
        wanted = parse_terraform(KIND.name, config)
        site = find_site(KIND.name, wanted, context)
        return await InputGatherer(self.git, self.terraform, self.vault).gather(wanted, site, context)

    async def _plan(self, inputs: Inputs, context: StepContext, *, merged: bool) -> StepResult:
        applied = await self.store.find_applied(inputs.state)
        if applied is not None and is_unchanged(applied, inputs, context):
            text = f"No changes. Inputs equal those applied at {applied.commit}"
            return StepResult(StepStatus.SKIPPED, {"plan": text}, message=text)
        environment = None if merged else context.plan_environment
        outcome = await self.terraform.plan(await inputs.to_run(context, lock=False, environment=environment))
        if not isinstance(outcome, Planned):
            answer = refuse_or_wait if merged else refuse
            return answer(outcome, "terraform plan", inputs, context)
        plan = outcome.plan
        record = FrozenRecord(f"plan of {inputs.config.directory}", plan.digest)
        status = StepStatus.SKIPPED if plan.is_empty else StepStatus.SUCCEEDED
        return StepResult(status, {"plan": outcome.text}, message=plan.result, record=record)


def _kept(inputs: Inputs) -> StepResult:
    record = KeptRecord(inputs.config.directory, inputs.paths)
    return StepResult(StepStatus.SKIPPED, {"plan": KEPT}, message=KEPT, record=record)
