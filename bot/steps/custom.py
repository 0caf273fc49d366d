"""Custom steps: a command of the pipeline's author, by a program that the operator allows.

Without a declaration such a step acts: a preview shows what would be run, fulfil runs it once, and one whose outcome is
unknown is a person's to repeat. Annotated `lockstep.dev/preview: edit` it changes files and nothing else, so that it is
run in the preview; annotated `read` it only reads. Neither gets secrets, since both run before anybody has approved.

Differs from Kargo, which runs the image's container: the command runs on the bot's machine in the isolation of
Terraform; files that an act or a read leaves are not kept, and those in a checkout make it fail, since nobody could
have reviewed them; expressions of the definition see `config` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256

from bot.domain.custom_steps import DEFAULT_TIMEOUT, LONGEST, CustomStep
from bot.domain.digest import canonical
from bot.domain.promotion import StepStatus
from bot.domain.review import EffectRecord, FrozenRecord, StepReport
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Value, find_sensitive, is_tainted, show
from bot.expressions.errors import ExpressionError
from bot.expressions.functions import TEMPLATE_FUNCTIONS
from bot.expressions.templates import Scope, render_text
from bot.ports import TerminalError, Vault
from bot.ports.commands import CommandEnded, CommandRun, Commands
from bot.steps.anticipation import is_behind_cut
from bot.steps.contract import Config as Given
from bot.steps.contract import Step, StepContext, StepResult, failed
from bot.steps.custom_output import OutputError, read_output, unknown_output
from bot.steps.marks import file_value
from bot.steps.options import plain_text

_FINGERPRINT = "definition"
"""The name under which a preview shows which definition it has seen."""


def find_unusable_customs(
    steps: Mapping[str, CustomStep], why_refused: Callable[[str], str]
) -> Mapping[str, str]:
    """The custom steps that cannot be carried out, each with what to do; `why_refused` judges programs."""
    found = {name: _why_unusable(step, why_refused) for name, step in steps.items()}
    return {name: reason for name, reason in found.items() if reason}


def _why_unusable(step: CustomStep, why_refused: Callable[[str], str]) -> str:
    if step.capabilities:
        return (
            f"it asks for {', '.join(step.capabilities)}, access to Kargo's control plane or to Argo CD, which no "
            "command gets here; remove `capabilities`, and use argocd-update and argocd-wait"
        )
    if not step.program:
        return "the image alone says what it runs, and images are not run here; give `command`"
    return why_refused(step.program)


@dataclass(frozen=True, slots=True)
class StepBook(Mapping[str, Step]):
    """Every step kind by name: those of this program, and those that the newest pipeline defines.

    A kind that is defined no longer is one that fails and says so.
    """

    known: Mapping[str, Step]
    find: Callable[[], Mapping[str, CustomStep]]
    commands: Commands
    vault: Vault

    def __getitem__(self, name: str) -> Step:
        known = self.known.get(name)
        if known is not None:
            return known
        definition = self.find().get(name)
        return Undefined(name) if definition is None else Custom(definition, self.commands, self.vault)

    def __iter__(self) -> Iterator[str]:
        yield from self.known
        yield from (name for name in self.find() if name not in self.known)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True, slots=True)
class Undefined:
    """Stands for a kind that a Promotion names and that the pipeline defines no longer."""

    name: str

    @property
    def kind(self) -> StepKind:
        """An act: nothing is known of it."""
        return StepKind(self.name, StepClass.ACT)

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Fail."""
        del config
        message = (
            f"{self.name}: the pipeline has no CustomPromotionStep of this name any more; define it again, or "
            "promote again with the steps as they are now"
        )
        return failed(context.alias, message)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Fail."""
        return await self.preview(config, context)


@dataclass(frozen=True, slots=True)
class _Call:
    """The command line and the environment after evaluation; both may hold marks."""

    arguments: tuple[Value, ...]
    env: tuple[tuple[str, Value], ...]

    @property
    def is_known(self) -> bool:
        """Whether nothing of it is still to come."""
        return not is_tainted([*self.arguments, *(value for _, value in self.env)])

    @property
    def secrets(self) -> frozenset[str]:
        """The names of the secrets that it holds."""
        return find_sensitive([value for _, value in self.env])

    def describe(self, definition: CustomStep) -> tuple[tuple[str, Value], ...]:
        """The parts that a reviewer sees, and the fingerprint of the definition."""
        fingerprint = sha256(canonical(definition.definition)).hexdigest()[:16]
        env = tuple((f"env {name}", value) for name, value in self.env)
        return (("arguments", list(self.arguments)), *env, (_FINGERPRINT, fingerprint))


@dataclass(frozen=True, slots=True)
class Custom:
    """Runs the command of one definition."""

    definition: CustomStep
    commands: Commands
    vault: Vault

    @property
    def kind(self) -> StepKind:
        """What the annotation declares, else an act."""
        step = self.definition
        return StepKind(step.name, step.step_class, step.timeout, step.error_threshold)

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Show an act; run what only edits, and what only reads if it may be asked already."""
        step, call = self.definition, self._call(config)
        # What the command reads is not known, so that the step depends on the whole tree.
        context.tree.list(".")
        later = unknown_output(step, context.alias)
        if step.step_class is StepClass.ACT:
            record = EffectRecord(f"run {step.program}", step.name, call.describe(step))
            return StepResult(None, later, record=record)
        if step.step_class is StepClass.READ:
            if is_behind_cut(context) or not call.is_known:
                return StepResult(None, later)
            answer = await self._run(call, context)
            if answer.status is not StepStatus.SUCCEEDED:
                return answer
            shown: Value = dict(answer.output)
            return replace(
                answer, record=FrozenRecord(f"run {step.name}", self.vault.digest(canonical(show(shown))))
            )
        return await self._run(call, context)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Run it; an act whose outcome is unknown is a person's to repeat."""
        name, approved = self.definition.name, context.approved
        classes = (self.definition.step_class, approved.step_class if approved is not None else None)
        if StepClass.ACT in classes and context.outcome_unknown:
            return _unknown(f"{name} was begun and its end was not seen")
        if approved is not None and self._has_changed(approved):
            return failed(
                context.alias,
                f"{name}: the CustomPromotionStep is another one than was approved; put it back and say /retry, or "
                "promote again",
            )
        return await self._run(self._call(config), context)

    def _has_changed(self, approved: StepReport) -> bool:
        """Whether what was approved was made of another definition; what edits is compared by what it wrote."""
        if approved.step_class is not self.definition.step_class:
            return True
        if not isinstance(approved.record, EffectRecord):
            return False
        seen = dict(approved.record.details).get(_FINGERPRINT)
        return seen != dict(_Call((), ()).describe(self.definition))[_FINGERPRINT]

    def _call(self, config: Given) -> _Call:
        step = self.definition
        scope = Scope({"config": dict(config)}, TEMPLATE_FUNCTIONS)
        arguments = tuple(
            self._evaluate(text, scope, f"command[{index}]") for index, text in enumerate(step.command[1:], 1)
        )
        secrets = sorted(find_sensitive(list(arguments)))
        if secrets:
            raise TerminalError(
                f"{step.name}: the command line would hold the secret {', '.join(secrets)}, and other processes can "
                "read command lines; pass it by `env`"
            )
        env = tuple((name, self._evaluate(text, scope, f"env {name}")) for name, text in step.env)
        return _Call(arguments, env)

    def _evaluate(self, text: str, scope: Scope, where: str) -> Value:
        try:
            value = render_text(text, scope)
        except ExpressionError as error:
            raise TerminalError(f"{self.definition.name}: {where}: {error}") from error
        if "\0" in str(value):
            raise TerminalError(f"{self.definition.name}: {where} holds a NUL character")
        return value

    # -- running -----------------------------------------------------------------------------------------------

    async def _run(self, call: _Call, context: StepContext) -> StepResult:
        step = self.definition
        run = await self._make_run(call, context)
        ended = await self.commands.run(run)
        if ended.stopped:
            return self._stopped(ended)
        if ended.code != 0:
            how = f"ended with code {ended.code}" if ended.code > 0 else f"was killed by signal {-ended.code}"
            said = next(
                (line for line in reversed(ended.log.splitlines()) if line.strip()), "it said nothing"
            )
            result = failed(context.alias, f"{step.name}: {step.program} {how}: {said}", log=ended.log)
            return replace(result, status=StepStatus.ERRORED)
        refused = self._refuse_changes(ended, context)
        if refused is not None:
            return refused
        message = ""
        if step.step_class is StepClass.EDIT:
            await context.tree.put(ended.changed)
        elif ended.changed:
            # A later pass finds the work tree made anew, without what a step wrote that is not run again.
            message = f"{len(ended.changed)} file(s) that it left beside the checkouts are not kept"
        try:
            output = read_output(step, ended.output, partial(self.commands.find_secret, run))
        except OutputError as error:
            reason = f"{step.name}: {step.program} ended well, but its output cannot be read: {error}"
            return failed(context.alias, reason, log=ended.log)
        return StepResult(output=output, message=message)

    async def _make_run(self, call: _Call, context: StepContext) -> CommandRun:
        step = self.definition
        if step.step_class is not StepClass.ACT and call.secrets:
            raise TerminalError(
                f"{step.name} is declared as {step.step_class.value}, so it runs before anybody has approved, and gets "
                f"no secrets; take {', '.join(sorted(call.secrets))} out of `env`, or remove the annotation"
            )
        secret = {name: plain_text(value) for name, value in call.env if find_sensitive(value)}
        plain = {name: self._text(value, context) for name, value in call.env if name not in secret}
        return CommandRun(
            program=step.program,
            arguments=tuple(self._text(argument, context) for argument in call.arguments),
            files=await context.tree.files("."),
            timeout=self._timeout(context),
            source=step.source,
            path=step.path,
            environment=plain,
            secrets=secret,
            masks=context.policy.masks,
        )

    def _text(self, value: Value, context: StepContext) -> str:
        """A text for the command; only an edit may meet what is not known yet, by what stands for it in files."""
        if self.definition.step_class is StepClass.EDIT:
            return str(file_value(value, context, self.definition.name))
        return plain_text(value)

    def _timeout(self, context: StepContext) -> float:
        """Seconds: the step's own `retry.timeout`, else the definition's."""
        own = next((s.retry.timeout for s in context.promotion.steps if s.alias == context.alias), None)
        return min(own or self.definition.timeout or DEFAULT_TIMEOUT, LONGEST)

    def _stopped(self, ended: CommandEnded) -> StepResult:
        what = f"{self.definition.name}: {self.definition.program} was stopped, because {ended.stopped}"
        if self.definition.step_class is StepClass.ACT:
            return _unknown(what)
        return StepResult(StepStatus.ERRORED, message=what)

    def _refuse_changes(self, ended: CommandEnded, context: StepContext) -> StepResult | None:
        """The failure of a step that changed in a checkout what it may not change."""
        name, is_edit = self.definition.name, self.definition.step_class is StepClass.EDIT
        inside = sorted(
            path
            for path in ended.changed
            if (".git" in path.split("/") if is_edit else context.tree.find_checkout(path) is not None)
        )
        if not inside:
            return None
        more = f" and {len(inside) - 3} more" if len(inside) > 3 else ""
        changed = f"{name} ended, but changed {', '.join(inside[:3])}{more}"
        why = (
            ", which git would take for its own"
            if is_edit
            else " in a checkout, which nobody could review; the change is not kept. If changing files is all it does, "
            "declare it: lockstep.dev/preview: edit"
        )
        return failed(context.alias, changed + why, log=ended.log)


def _unknown(what: str) -> StepResult:
    message = f"outcome unknown: {what}. Find out what it has done, then say /retry to run it again"
    return StepResult(StepStatus.ERRORED, message=message)
