"""`tf-apply`: applies a Terraform directory, exactly as it was planned for review.

Where Kargo applies every time, a state whose inputs equal those of its last successful apply is not even planned here
(`unchangedInputs: Plan` in the ReviewPolicy restores Kargo's way), and a saved plan carries over the merge.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass, replace

from bot.domain.keeping import keeps_infra, why_unclear
from bot.domain.promotion import StepStatus
from bot.domain.review import ApplyKind, ApplyRecord, StepReport
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.terraform import Plan, Planned
from bot.domain.values import Unknown, is_tainted
from bot.ports import AppliedState, Git, TerminalError, Terraform, Vault
from bot.ports.store import PlanStore
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.options import Options
from bot.steps.terraform_config import TerraformConfig, find_site, parse_terraform
from bot.steps.terraform_fulfil import Applier, skip_kept, skip_unchanged
from bot.steps.terraform_inputs import InputGatherer, Inputs
from bot.steps.terraform_outcomes import refuse
from bot.steps.terraform_state import StateKeeper
from bot.steps.worktree import join

KIND = StepKind("tf-apply", StepClass.INFRA)

CLUSTER_TYPES = ("helm_release", "kubectl_manifest")
"""Types of resources that deploy into a cluster, beside all that begin with `kubernetes_`."""

_DONE = (StepStatus.SUCCEEDED, StepStatus.SKIPPED)
_RESULT = Unknown("known after apply: result")


@dataclass(frozen=True, slots=True)
class Config:
    """Directory, variables, environment; `plan` names what an earlier `tf-plan` put `out`."""

    terraform: TerraformConfig
    plan: str


def parse(given: Given, context: StepContext) -> Config:
    """The config of the step; with a saved plan its variables are those that the plan was made with."""
    plan = Options(KIND.name, given).address("plan")
    terraform = parse_terraform(KIND.name, given)
    if plan:
        made = _planned_with(plan, terraform.directory, context.earlier)
        terraform = replace(terraform, variables=made.variables, variable_files=made.variable_files)
    return Config(terraform, plan)


def _planned_with(plan: str, directory: str, earlier: Iterable[StepReport]) -> TerraformConfig:
    for report in reversed(tuple(earlier)):
        if report.kind != "tf-plan" or not isinstance(report.config, dict):
            continue
        made = parse_terraform("tf-plan", report.config)
        out = report.config.get("out")
        if made.directory == directory and isinstance(out, str) and _same_path(out, plan):
            return made
    raise TerminalError(
        f"tf-apply: no earlier tf-plan of {directory!r} has out: {plan}; plan first, or leave plan away"
    )


def _same_path(one: str, other: str) -> bool:
    return posixpath.normpath(one) == posixpath.normpath(other)


def changing_applies(earlier: Iterable[StepReport]) -> tuple[ApplyRecord, ...]:
    """The applies of the walk so far that change their state, or may."""
    return tuple(
        report.record
        for report in earlier
        if isinstance(report.record, ApplyRecord) and not report.record.kind.does_nothing
    )


def is_unchanged(applied: AppliedState | None, inputs: Inputs, context: StepContext) -> bool:
    """Whether Terraform need not be asked: the inputs equal those of the last successful apply."""
    return (
        applied is not None
        and applied.succeeded
        and applied.inputs == inputs.digest
        and context.policy.unchanged_inputs != "Plan"
        and not context.promotion.corrects
        and not changing_applies(context.earlier)
    )


@dataclass(frozen=True, slots=True)
class TfApply:
    """Plans for review, applies after the merge."""

    git: Git
    terraform: Terraform
    vault: Vault
    store: PlanStore

    @property
    def kind(self) -> StepKind:
        """Infrastructure; a barrier where it has changes."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """What it will do: the table of section 3.3 of the review gate."""
        inputs = await self._gather(config, context)
        applied = await self.store.find_applied(inputs.state)
        blank = ApplyRecord(
            state=inputs.state,
            directory=inputs.config.directory,
            kind=ApplyKind.UNKNOWABLE,
            inputs=inputs.digest,
            input_paths=inputs.paths,
            previous_failed=applied is not None and not applied.succeeded,
            state_files=inputs.state_files,
        )
        if keeps_infra(context.promotion, context.policy):
            unclear = why_unclear(inputs.config.directory, inputs.whole)
            return failed(context.alias, unclear) if unclear else skip_kept(blank)
        for path in inputs.state_files:
            context.tree.touch(path)
        why = self._why_unknowable(inputs, context)
        if why:
            return StepResult(None, {"result": _RESULT}, message=why, record=blank)
        if applied is not None and is_unchanged(applied, inputs, context):
            return skip_unchanged(blank, applied)
        run = await inputs.to_run(context, lock=False, environment=context.plan_environment)
        outcome = await self.terraform.plan(run)
        if not isinstance(outcome, Planned):
            # What would be applied is shown all the same, and stands behind the merge as it would with a plan.
            refused = refuse(outcome, "terraform plan", inputs, context)
            return replace(refused, record=replace(blank, kind=ApplyKind.CHANGES))
        return await self._planned(outcome, blank, inputs, context)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Apply what was approved, once, and nothing else."""
        kept = context.approved.record if context.approved is not None else None
        if isinstance(kept, ApplyRecord) and kept.kind is ApplyKind.KEPT:
            return skip_kept(kept)
        keeper = StateKeeper(self.store, self.vault)
        await keeper.restore(context)
        run = context.run
        if run is not None and run.finished_at is not None and run.status in _DONE:
            # The walk comes here again for the sake of a state that is kept in its tree.
            return StepResult(run.status, run.output, message=run.message)
        inputs = await self._gather(config, context)
        if inputs.unknown:
            raise TerminalError(f"tf-apply: {', '.join(inputs.unknown)} holds a value that is not known")
        return await Applier(self.terraform, self.store, keeper).fulfil(inputs, context)

    async def _gather(self, config: Given, context: StepContext) -> Inputs:
        wanted = parse(config, context).terraform
        site = find_site(KIND.name, wanted, context)
        return await self._gatherer.gather(wanted, site, context)

    @property
    def _gatherer(self) -> InputGatherer:
        return InputGatherer(self.git, self.terraform, self.vault)

    def _why_unknowable(self, inputs: Inputs, context: StepContext) -> str:
        if inputs.unknown:
            return f"its plan is made after the merge: {', '.join(inputs.unknown)} is not known yet"
        if any(apply.state == inputs.state for apply in changing_applies(context.earlier)):
            return "its plan is made after the merge: an earlier step changes the same state"
        return ""

    async def _planned(
        self, outcome: Planned, blank: ApplyRecord, inputs: Inputs, context: StepContext
    ) -> StepResult:
        plan = outcome.plan
        record = replace(
            blank,
            kind=_kind_of(plan, provisional=bool(changing_applies(context.earlier))),
            plan=plan,
            text=outcome.text,
            boundary=find_boundary(plan, inputs.config.directory),
        )
        if record.kind is ApplyKind.EMPTY:
            return StepResult(StepStatus.SKIPPED, {"result": plan.result}, message=plan.result, record=record)
        if record.kind in (ApplyKind.CHANGES, ApplyKind.OUTPUTS_ONLY):
            bundle = f"{context.alias}/{inputs.digest[:16]}/{plan.digest[:16]}"
            await self.store.keep_bundle(context.promotion.id, bundle, outcome.bundle)
            record = replace(record, bundle=bundle)
        corrects = context.promotion.corrects
        if record.kind is ApplyKind.CHANGES and not corrects and await self._is_pending(inputs, context):
            record = replace(record, pending=frozenset(change.address for change in plan.changes))
        # Values of outputs are all known, so nothing hinges on when it is applied; it will succeed or fail as a whole.
        status = StepStatus.SUCCEEDED if record.kind is ApplyKind.OUTPUTS_ONLY else None
        return StepResult(status, {"result": _RESULT}, message=plan.result, record=record)

    async def _is_pending(self, inputs: Inputs, context: StepContext) -> bool:
        """Whether the base has these inputs already: the changes were left unapplied by something else."""
        digest = await self._gatherer.base_digest(inputs.config, inputs.site, context)
        return digest == inputs.digest


def _kind_of(plan: Plan, *, provisional: bool) -> ApplyKind:
    if provisional:
        return ApplyKind.PROVISIONAL
    if plan.is_empty:
        return ApplyKind.EMPTY
    if not plan.changes and not any(is_tainted(output.after) for output in plan.outputs):
        return ApplyKind.OUTPUTS_ONLY
    return ApplyKind.CHANGES


def find_boundary(plan: Plan, directory: str) -> tuple[str, ...]:
    """Resources of a plan that deploy into a cluster, with file and line where they are known."""
    found = []
    for change in plan.resources:
        if change.type in CLUSTER_TYPES or change.type.startswith("kubernetes_"):
            place = plan.resource_lines.get(change.address)
            where = f" ({join(directory, place[0])}:{place[1]})" if place is not None else ""
            found.append(f"{change.address}{where}")
    return tuple(found)
