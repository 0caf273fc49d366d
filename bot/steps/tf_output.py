"""`tf-output`: the outputs of a Terraform state, in a preview as the plan promises them.

Before the merge the answer comes from the plan where the directory will be applied (never from the state, which holds
the old values), and from the state, or from what was recorded of it, where it will not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from bot.domain.digest import DIGEST_LENGTH, canonical
from bot.domain.plan_compare import fits
from bot.domain.promotion import StepStatus, Stop
from bot.domain.review import ApplyKind, ApplyRecord, FrozenRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.terraform import Output, Outputs
from bot.domain.values import Sensitive, Unknown, Value, reveal, show
from bot.ports import AppliedState, Git, TerminalError, Terraform, Vault
from bot.ports.store import PlanStore
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.marks import file_value
from bot.steps.options import Options
from bot.steps.terraform_config import TerraformConfig, find_site, parse_terraform
from bot.steps.terraform_inputs import InputGatherer, Inputs, state_key
from bot.steps.terraform_outcomes import refuse, refuse_or_wait
from bot.steps.terraform_values import Shown, from_plan, from_state, unknown_named
from bot.steps.worktree import clean_path

KIND = StepKind("tf-output", StepClass.INFRA)


@dataclass(frozen=True, slots=True)
class Config:
    """Directory and environment; `name` selects one output, `out` is a file of the work tree."""

    terraform: TerraformConfig
    name: str
    out: str
    sensitive: bool


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    if options.address("state"):
        raise TerminalError(
            "tf-output: state names a state file, which is not read here; outputs come from the backend of dir, so "
            "leave state away"
        )
    out = options.address("out")
    return Config(
        terraform=parse_terraform(KIND.name, given),
        name=options.address("name"),
        out=clean_path(out) if out else "",
        sensitive=options.flag("sensitive"),
    )


@dataclass(frozen=True, slots=True)
class TfOutput:
    """Reads outputs; nothing but the work tree is changed."""

    git: Git
    terraform: Terraform
    vault: Vault
    store: PlanStore

    @property
    def kind(self) -> StepKind:
        """Infrastructure, never a barrier."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """The outputs as they will be, unknown ones as marks."""
        wanted = parse(config)
        apply = self._apply_before(wanted, context)
        record: FrozenRecord | None = None
        shown: Mapping[str, Shown]
        match apply:
            case ApplyRecord(kind=ApplyKind.UNKNOWABLE):
                return await self._unknown(wanted, context)
            case ApplyRecord(kind=ApplyKind.PROVISIONAL, plan=plan) if plan is not None:
                shown = unknown_named(from_plan(plan))
            case ApplyRecord(kind=ApplyKind.CHANGES | ApplyKind.OUTPUTS_ONLY, plan=plan) if plan is not None:
                shown = from_plan(plan)
            case _:
                read = await self._read(wanted, apply, context)
                if read is None:
                    return await self._unknown(wanted, context)
                if isinstance(read, StepResult):
                    return read
                shown = read
                record = FrozenRecord(
                    f"outputs of {wanted.terraform.directory}", self._fingerprint(wanted, read)
                )
        return await self._answer(wanted, shown, context, record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """The outputs as they are; another value than the one that was approved stops the walk."""
        wanted = parse(config)
        apply = self._apply_before(wanted, context)
        read = await self._read(wanted, apply, context)
        if read is None:
            raise TerminalError(f"tf-output: an input of {wanted.terraform.directory} is not known")
        if isinstance(read, StepResult):
            return read
        stop = self._compare(wanted, read, context)
        if stop is not None:
            return StepResult(StepStatus.RUNNING, message=stop.reason, stop=stop)
        return await self._answer(wanted, read, context, None)

    # -- where from --------------------------------------------------------------------------------------------

    def _apply_before(self, wanted: Config, context: StepContext) -> ApplyRecord | None:
        """The last apply of the same state in this walk."""
        site = find_site(KIND.name, wanted.terraform, context)
        state = state_key(site, wanted.terraform.workspace)
        for report in reversed(context.earlier):
            if isinstance(report.record, ApplyRecord) and report.record.state == state:
                # After the merge a skipped apply is one whose inputs or plan left nothing to do.
                done = report.status is StepStatus.SUCCEEDED and report.record.kind is ApplyKind.UNCHANGED
                return replace(report.record, kind=ApplyKind.CHANGES) if done else report.record
        return None

    async def _read(
        self, wanted: Config, apply: ApplyRecord | None, context: StepContext
    ) -> Mapping[str, Shown] | StepResult | None:
        """The outputs that the state holds, recorded ones where the state did not move; None if they are unknown."""
        if apply is not None and apply.kind in (ApplyKind.UNCHANGED, ApplyKind.KEPT):
            applied = await self.store.find_applied(apply.state)
            recorded = _recorded(applied, apply, wanted)
            if recorded is not None:
                return from_state(recorded)
        site = find_site(KIND.name, wanted.terraform, context)
        gatherer = InputGatherer(self.git, self.terraform, self.vault)
        inputs = await gatherer.gather(wanted.terraform, site, context)
        if inputs.unknown:
            return None
        return await self._ask(inputs, apply, context)

    async def _ask(
        self, inputs: Inputs, apply: ApplyRecord | None, context: StepContext
    ) -> Mapping[str, Shown] | StepResult:
        merged = context.approved is not None
        environment = None if merged else context.plan_environment
        outcome = await self.terraform.output(
            await inputs.to_run(context, lock=False, environment=environment)
        )
        if not isinstance(outcome, Outputs):
            answer = refuse_or_wait if merged else refuse
            return answer(outcome, "terraform output", inputs, context)
        if merged and apply is not None:
            await self.store.record_outputs(inputs.state, _without_secrets(outcome.values))
        return from_state(outcome.values)

    # -- the answer --------------------------------------------------------------------------------------------

    async def _answer(
        self,
        wanted: Config,
        shown: Mapping[str, Shown],
        context: StepContext,
        record: FrozenRecord | None,
    ) -> StepResult:
        if wanted.name and wanted.name not in shown:
            known = ", ".join(sorted(shown)) or "none"
            return failed(
                context.alias,
                f"tf-output: {wanted.terraform.directory} has no output {wanted.name!r} (outputs: {known}); declare "
                "it, and note that an output whose value is null does not exist",
            )
        output = _output(wanted, shown)
        if wanted.out:
            content: Value = output[wanted.name] if wanted.name else output
            plain = file_value(content, context, f"tf-output: out {wanted.out!r}")
            text = json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
            await context.tree.write(wanted.out, text.encode())
            output = {}
        return StepResult(output=output, record=record)

    async def _unknown(self, wanted: Config, context: StepContext) -> StepResult:
        """Not even the names of the outputs are known."""
        if wanted.out:
            mark = Unknown("known after apply: outputs")
            await context.tree.write(wanted.out, context.tree.sentinels.write(mark).encode())
        output: dict[str, Value] = {}
        if wanted.name and not wanted.out:
            output[wanted.name] = Unknown(f"known after apply: {wanted.name}")
        return StepResult(None, output, message="the outputs are known after the apply")

    def _compare(self, wanted: Config, read: Mapping[str, Shown], context: StepContext) -> Stop | None:
        """Why the walk stops: an output is not what was expected when it was approved."""
        approved = context.approved
        if approved is None or not approved.output:
            return None
        actual = _output(wanted, read)
        differences = []
        for name, expected in approved.output.items():
            if name not in actual:
                differences.append(f"output {name}: approved as {_short(expected)}, now it does not exist")
            elif not fits(_comparable(expected), _comparable(actual[name])):
                differences.append(
                    f"output {name}: approved as {_short(expected)}, now {_short(actual[name])}"
                )
        differences += [f"output {name} is new" for name in actual if name not in approved.output]
        digest = self._fingerprint(wanted, read)[:DIGEST_LENGTH]
        if not differences or digest in context.promotion.accepted:
            return None
        where = wanted.terraform.directory
        return Stop(f"the outputs of {where} are not what was approved", digest, tuple(differences))

    def _fingerprint(self, wanted: Config, shown: Mapping[str, Shown]) -> str:
        """A fingerprint of what is put out: the same whether it was recorded or read from the state."""
        return self.vault.digest(canonical(reveal(_output(wanted, shown))))


def _recorded(
    applied: AppliedState | None, apply: ApplyRecord, wanted: Config
) -> Mapping[str, Output] | None:
    """What was recorded of the outputs, if it answers what is asked: of sensitive ones only the names are there."""
    if applied is None or applied.inputs != apply.inputs or not applied.succeeded or applied.outputs is None:
        return None
    secret = {name for name, output in applied.outputs.items() if output.sensitive}
    if wanted.name in secret or (wanted.sensitive and secret):
        return None
    return applied.outputs


def _without_secrets(outputs: Mapping[str, Output]) -> dict[str, Output]:
    return {
        name: replace(output, value=None) if output.sensitive else output for name, output in outputs.items()
    }


def _output(wanted: Config, shown: Mapping[str, Shown]) -> dict[str, Value]:
    """Kargo's shapes: the bare value of a named output, else value, type and sensitivity of each."""
    if wanted.name:
        return {wanted.name: shown[wanted.name].value} if wanted.name in shown else {}
    return {
        name: {"value": item.value, "type": item.type, "sensitive": item.sensitive}
        for name, item in shown.items()
        if wanted.sensitive or not item.sensitive
    }


def _comparable(value: Value) -> Value:
    """A value without its secrets: nobody approved those by their content."""
    match value:
        case Sensitive():
            return Unknown("")
        case list():
            return [_comparable(item) for item in value]
        case dict():
            return {key: _comparable(item) for key, item in value.items()}
        case _:
            return value


def _short(value: Value) -> str:
    shown = show(value)
    if isinstance(shown, dict) and "value" in shown:
        shown = shown["value"]
    text = " ".join(str(shown).split())
    return text if len(text) <= 120 else text[:120] + "…"
