"""The Terraform steps as they are walked to look for drift: nothing is changed, locked or told from secrets of applies.

Each state is planned only where its inputs are those of its last successful apply, so that whatever the plan finds was
changed by somebody else. Credentials are those of the policy's `planEnv` alone; what `tf-apply` itself gives in plain
text stays, since a workspace or a `TF_VAR_` is an input and no credential.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bot.domain.drift import Finding, StateLook, look_at_plan
from bot.domain.plan_digest import storable
from bot.domain.promotion import StepStatus
from bot.domain.review import ApplyKind, ApplyRecord
from bot.domain.step_kinds import StepKind
from bot.domain.terraform import Failed, Interrupted, Planned, StateLocked
from bot.domain.values import Value, find_sensitive
from bot.ports import AppliedState, Git, TerminalError, Terraform, TransientError, Vault
from bot.ports.store import PlanStore
from bot.steps.contract import Config as Given
from bot.steps.contract import Step, StepContext, StepResult
from bot.steps.options import Options
from bot.steps.terraform_config import find_site
from bot.steps.terraform_inputs import InputGatherer, Inputs
from bot.steps.terraform_outcomes import describe_lock
from bot.steps.tf_apply import KIND, parse

_LONGEST = 900.0
"""Seconds; a promotion of the same state waits for as long at most."""
_VARIABLE = "TF_VAR_"
_INPUTS = (_VARIABLE, "TF_WORKSPACE")


def read_only(given: Mapping[str, Value], plan_environment: Mapping[str, Value]) -> dict[str, Value]:
    """What a step gives in plain text, and the policy's `planEnv`, which overrules all of it but inputs."""
    plain = {name: value for name, value in given.items() if not find_sensitive(value)}
    inputs = {name: value for name, value in plain.items() if name.startswith(_INPUTS)}
    return {**plain, **plan_environment, **inputs}


def find_withheld(given: Mapping[str, Value], plan_environment: Mapping[str, Value]) -> tuple[str, ...]:
    """Variables that the step takes from secrets and that `planEnv` does not give: without them the inputs differ."""
    return tuple(
        name
        for name, value in given.items()
        if name.startswith(_VARIABLE) and find_sensitive(value) and name not in plan_environment
    )


@dataclass(frozen=True, slots=True)
class DriftProbe:
    """Stands for `tf-apply`; what it finds is in `found`, one entry a state."""

    git: Git
    terraform: Terraform
    vault: Vault
    store: PlanStore
    found: list[StateLook] = field(default_factory=list)

    @property
    def kind(self) -> StepKind:
        """That of the step it stands for."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Look at one state; to the steps behind it the apply is one that had nothing to do."""
        wanted = parse(config, context).terraform
        gatherer = InputGatherer(self.git, self.terraform, self.vault)
        inputs = await gatherer.gather(wanted, find_site(KIND.name, wanted, context), context)
        applied = await self.store.find_applied(inputs.state)
        self.found.append(await self._look(inputs, applied, context))
        record = ApplyRecord(
            state=inputs.state,
            directory=wanted.directory,
            kind=ApplyKind.UNCHANGED,
            inputs=inputs.digest,
            input_paths=inputs.paths,
        )
        text = "looked at for drift"
        return StepResult(StepStatus.SKIPPED, {"result": text}, message=text, record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Never reached: a look ends before any step is carried out."""
        del config
        raise TerminalError(f"{context.alias}: a look for drift applies nothing")

    async def _look(self, inputs: Inputs, applied: AppliedState | None, context: StepContext) -> StateLook:
        blank = StateLook(inputs.state, inputs.config.directory, Finding.PENDING)
        pending = _why_pending(inputs, applied)
        if pending:
            return replace(blank, reason=pending)
        given, allowed = dict(inputs.config.environment), context.plan_environment or {}
        withheld = find_withheld(given, allowed)
        if withheld:
            why = (
                f"tf-apply takes {', '.join(withheld)} from a secret; give it in planEnv of the ReviewPolicy"
            )
            return replace(blank, finding=Finding.UNSEEN, reason=why)
        try:
            run = await inputs.to_run(context, lock=False, environment=read_only(given, allowed))
            outcome = await self.terraform.plan(replace(run, timeout=_LONGEST))
        except (TransientError, TerminalError) as error:
            return replace(blank, finding=Finding.UNSEEN, reason=str(error))
        if isinstance(outcome, Planned):
            # The names of secrets stay, so that a reader sees that something of them changed.
            return look_at_plan(inputs.state, inputs.config.directory, storable(outcome.plan))
        return replace(blank, finding=Finding.UNSEEN, reason=_why_unseen(outcome, inputs, given, allowed))


def _why_pending(inputs: Inputs, applied: AppliedState | None) -> str:
    where = inputs.config.directory
    if inputs.unknown:
        return f"the inputs of {where} are not known: {', '.join(inputs.unknown)}"
    if applied is None:
        return f"Lockstep has not applied {where} yet"
    if not applied.succeeded:
        return f"the last apply of {where} did not succeed"
    if applied.inputs != inputs.digest:
        return (
            f"the inputs of {where} are no longer those that were applied at {applied.commit[:12]}, so its plan holds "
            "changes of our own that wait to be applied"
        )
    return ""


def _why_unseen(
    outcome: Failed | StateLocked | Interrupted,
    inputs: Inputs,
    given: Mapping[str, Value],
    allowed: Mapping[str, Value],
) -> str:
    where = inputs.config.directory
    if isinstance(outcome, StateLocked):
        return f"{where}: {describe_lock(outcome.lock)}"
    if isinstance(outcome, Interrupted):
        return f"the plan of {where} was interrupted: {outcome.reason}"
    left = sorted(name for name, value in given.items() if find_sensitive(value) and name not in allowed)
    hint = f" (planEnv of the ReviewPolicy does not give {', '.join(left)})" if left else ""
    return f"the plan of {where} failed: {outcome.summary}{hint}"


@dataclass(frozen=True, slots=True)
class ReadOnly:
    """Stands for `tf-plan` or `tf-output`: the step itself, with read-only credentials."""

    step: Step

    @property
    def kind(self) -> StepKind:
        """That of the step."""
        return self.step.kind

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """What the step previews."""
        given = {}
        for item in Options(self.kind.name, config).each("env"):
            given[item.address("name")] = item.value("value")
        allowed = read_only(given, context.plan_environment or {})
        return await self.step.preview(config, replace(context, plan_environment=allowed))

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Never reached: a look ends before any step is carried out."""
        del config
        raise TerminalError(f"{context.alias}: a look for drift carries nothing out")
