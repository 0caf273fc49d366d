"""The apply after the merge: what was approved is applied once, and nothing else is (review gate, section 8).

A saved plan is used at most once. Whenever it cannot be told that nothing has happened yet, a new plan is made and
compared with the approved one; what nobody approved stops the Promotion and is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bot.domain.digest import DIGEST_LENGTH
from bot.domain.keeping import KEPT
from bot.domain.plan_compare import is_rest, plan_differences
from bot.domain.promotion import StepStatus, Stop
from bot.domain.review import ApplyKind, ApplyRecord
from bot.domain.terraform import Applied, Failed, Interrupted, Plan, Planned, StalePlan, StateLocked
from bot.domain.values import Value
from bot.ports import AppliedState, Terraform, TransientError
from bot.ports.store import PlanStore
from bot.steps.contract import StepContext, StepResult
from bot.steps.terraform_inputs import Inputs
from bot.steps.terraform_outcomes import describe_lock, refuse, refuse_or_wait
from bot.steps.terraform_state import StateKeeper

_PAUSE = 30.0
_BEGUN = b"begun"
_PHASE = "phase"
_WAITING: Mapping[str, Value] = {_PHASE: "waiting"}
_UNKNOWN: Mapping[str, Value] = {_PHASE: "unknown"}
_ASKED: Mapping[str, Value] = {_PHASE: "asked"}
_RETRYING: Mapping[str, Value] = {_PHASE: "retrying"}
_LATE = (ApplyKind.PROVISIONAL, ApplyKind.UNKNOWABLE)


def skip_unchanged(record: ApplyRecord, applied: AppliedState) -> StepResult:
    """The answer for a state whose inputs equal those of its last successful apply."""
    text = f"No changes. Inputs equal those applied at {applied.commit}"
    record = replace(record, kind=ApplyKind.UNCHANGED, applied_at=applied.commit)
    return StepResult(StepStatus.SKIPPED, {"result": text}, message=text, record=record)


def skip_kept(record: ApplyRecord) -> StepResult:
    """The answer for a state that a rollback leaves as it is."""
    return _skip(KEPT, replace(record, kind=ApplyKind.KEPT))


@dataclass(frozen=True, slots=True)
class Applier:
    """Applies one state for one pass of one attempt."""

    terraform: Terraform
    store: PlanStore
    keeper: StateKeeper

    async def fulfil(self, inputs: Inputs, context: StepContext) -> StepResult:
        """Do what was approved, or say why not."""
        approved = _approved(context)
        if context.detail.get(_PHASE) == "unknown":
            return await self._recover(inputs, approved, context)
        if context.outcome_unknown:
            if await self.store.get_bundle(context.promotion.id, _mark(context)) == _BEGUN:
                return await self._recover(inputs, approved, context)
            # The process died on its way to Terraform, which was never asked to apply.
            context = _as_if_not_begun(context)
        if approved is not None and approved.inputs == inputs.digest:
            if approved.kind is ApplyKind.UNCHANGED:
                applied = await self.store.find_applied(inputs.state)
                if applied is not None and applied.succeeded and applied.inputs == inputs.digest:
                    return skip_unchanged(approved, applied)
            if approved.kind is ApplyKind.EMPTY and approved.plan is not None:
                await self._record(inputs, context, succeeded=True)
                return _skip(approved.plan.result, approved)
            if approved.bundle and _is_fresh(context):
                bundle = await self.store.get_bundle(context.promotion.id, approved.bundle)
                if bundle is not None:
                    return await self._apply(bundle, inputs, context, saved=True)
        return await self._plan_anew(inputs, approved, context)

    # -- planning anew -------------------------------------------------------------------------------------------

    async def _plan_anew(
        self, inputs: Inputs, approved: ApplyRecord | None, context: StepContext
    ) -> StepResult:
        outcome = await self.terraform.plan(await inputs.to_run(context, lock=True))
        if not isinstance(outcome, Planned):
            waiting = refuse_or_wait(outcome, "terraform plan", inputs, context)
            return replace(waiting, detail=_keep(context))
        plan = outcome.plan
        if plan.is_empty:
            return await self._nothing_left(plan, inputs, approved, context)
        corrects = context.promotion.corrects
        if approved is not None and not corrects and await self._is_drift(plan, inputs, approved):
            text = (
                "No changes of this release. What the plan finds is drift, its inputs are those applied last"
            )
            return _skip(text, approved)
        if _is_allowed(plan, approved, context):
            return await self._apply(outcome.bundle, inputs, context, saved=False)
        return _stop(plan, inputs, approved)

    async def _nothing_left(
        self, plan: Plan, inputs: Inputs, approved: ApplyRecord | None, context: StepContext
    ) -> StepResult:
        await self._record(inputs, context, succeeded=True)
        if not _follows_a_try(context):
            return _skip(plan.result, approved)
        text = f"{plan.result} Nothing is left of what was approved"
        return StepResult(StepStatus.SUCCEEDED, {"result": text}, message=text)

    async def _is_drift(self, plan: Plan, inputs: Inputs, approved: ApplyRecord) -> bool:
        """Whether a provisional plan is the same after the earlier apply, and not from this release at all."""
        if approved.kind is not ApplyKind.PROVISIONAL or approved.plan is None:
            return False
        applied = await self.store.find_applied(inputs.state)
        unchanged = applied is not None and applied.succeeded and applied.inputs == inputs.digest
        return unchanged and plan.digest == approved.plan.digest

    async def _recover(
        self, inputs: Inputs, approved: ApplyRecord | None, context: StepContext
    ) -> StepResult:
        """After an apply whose end nobody saw: an empty plan proves that it was done, anything else is a person's."""
        try:
            outcome = await self.terraform.plan(await inputs.to_run(context, lock=True))
        except TransientError as error:
            # The walk would forget that the outcome is unknown, so this wait is the step's own.
            return StepResult(
                StepStatus.RUNNING,
                message=str(error),
                retry_after=error.retry_after or _PAUSE,
                detail=_UNKNOWN,
            )
        if isinstance(outcome, StateLocked):
            message = (
                f"an apply in {inputs.config.directory} was interrupted and {describe_lock(outcome.lock)}; if that is "
                "the dead run's lock, unlock it by hand, it is never broken by itself"
            )
            return StepResult(StepStatus.RUNNING, message=message, retry_after=_PAUSE, detail=_UNKNOWN)
        if not isinstance(outcome, Planned):
            return replace(
                refuse(outcome, "terraform plan", inputs, context), status=StepStatus.ERRORED, detail=_UNKNOWN
            )
        if outcome.plan.is_empty:
            await self._record(inputs, context, succeeded=True)
            text = (
                f"{outcome.plan.result} The end of the apply was not seen, but a new plan finds nothing left"
            )
            return StepResult(StepStatus.SUCCEEDED, {"result": text}, message=text)
        await self._record(inputs, context, succeeded=False)
        differences = plan_differences(approved.plan if approved is not None else None, outcome.plan)
        message = (
            f"outcome unknown: an apply in {inputs.config.directory} was begun and its end was not seen; a new plan "
            f"still has changes ({outcome.plan.result}). Look at the state, then say /retry"
        )
        if differences:
            message += "\n" + "\n".join(differences)
        return StepResult(StepStatus.ERRORED, message=message, detail=_UNKNOWN)

    # -- applying ------------------------------------------------------------------------------------------------

    async def _apply(self, bundle: bytes, inputs: Inputs, context: StepContext, *, saved: bool) -> StepResult:
        run = await inputs.to_run(context, lock=True)
        await self.store.keep_bundle(context.promotion.id, _mark(context), _BEGUN)
        outcome = await self.terraform.apply(run, bundle)
        if isinstance(outcome, StalePlan | StateLocked):
            await self.store.keep_bundle(context.promotion.id, _mark(context), b"")
        else:
            await self.keeper.keep(outcome.state_files, inputs, context)
        match outcome:
            case Applied(result=result, text=text):
                await self._record(inputs, context, succeeded=True)
                return StepResult(
                    StepStatus.SUCCEEDED, {"result": result}, message=result, detail={"log": text}
                )
            case StalePlan() if saved:
                return await self._plan_anew(inputs, _approved(context), context)
            case StalePlan(message=message):
                waiting = f"the state moved while it was planned: {message}"
                return StepResult(StepStatus.RUNNING, message=waiting, retry_after=_PAUSE, detail=_WAITING)
            case StateLocked(lock=lock):
                message = f"terraform apply in {inputs.config.directory}: {describe_lock(lock)}"
                return StepResult(
                    StepStatus.RUNNING, message=message, retry_after=_PAUSE, detail=_keep(context)
                )
            case Failed() | Interrupted():
                await self._record(inputs, context, succeeded=False)
                return _failed(outcome, inputs, context)

    async def _record(self, inputs: Inputs, context: StepContext, *, succeeded: bool) -> None:
        await self.store.record_applied(
            AppliedState(
                state=inputs.state,
                inputs=inputs.digest,
                commit=context.merge or inputs.site.checkout.pin.commit or "",
                promotion=context.promotion.id,
                succeeded=succeeded,
                at=context.now,
            )
        )


def _mark(context: StepContext) -> str:
    """The name under which it is noted that Terraform was asked to apply; durable before it is asked."""
    return f"{context.alias}/attempt {context.attempt} begun"


def _as_if_not_begun(context: StepContext) -> StepContext:
    """The context as it was before the pass that died, as far as it matters here."""
    run = context.run
    if run is None or (context.attempt == 1 and _PHASE not in run.detail):
        return replace(context, run=None)
    detail = run.detail if _PHASE in run.detail else _RETRYING
    return replace(context, run=replace(run, finished_at=context.now, detail=detail))


def _approved(context: StepContext) -> ApplyRecord | None:
    record = context.approved.record if context.approved is not None else None
    return record if isinstance(record, ApplyRecord) else None


def _is_fresh(context: StepContext) -> bool:
    """Whether it is certain that nothing has been applied: only then may the saved plan be used."""
    run = context.run
    if run is None:
        return True
    return run.attempt == context.attempt and run.errors == 0 and context.detail.get(_PHASE) == "waiting"


def _follows_a_try(context: StepContext) -> bool:
    """Whether an apply was tried before, so that what is left of it may be applied unasked."""
    run = context.run
    if run is None:
        return False
    return run.attempt < context.attempt or run.errors > 0 or context.detail.get(_PHASE) == "retrying"


def _keep(context: StepContext) -> Mapping[str, Value]:
    """What the next pass must know of this one, which only waited."""
    if _is_fresh(context):
        return _WAITING
    return _RETRYING if _follows_a_try(context) else context.detail


def _is_allowed(plan: Plan, approved: ApplyRecord | None, context: StepContext) -> bool:
    if plan.digest[:DIGEST_LENGTH] in context.promotion.accepted:
        return True
    if approved is None or approved.plan is None:
        return False
    if plan.digest == approved.plan.digest:
        return True
    return _follows_a_try(context) and is_rest(approved.plan, plan)


def _skip(text: str, record: ApplyRecord | None) -> StepResult:
    return StepResult(StepStatus.SKIPPED, {"result": text}, message=text, record=record)


def _stop(plan: Plan, inputs: Inputs, approved: ApplyRecord | None) -> StepResult:
    differences = plan_differences(approved.plan if approved is not None else None, plan)
    if not differences:
        differences = ("the changes are the same, but configuration, variables, lock file or tool are not",)
    where = inputs.config.directory
    if approved is not None and approved.kind in _LATE:
        reason = f"the plan of {where} could be made only now: {plan.result}"
    else:
        reason = f"the plan of {where} is not the one that was approved: {plan.result}"
    return StepResult(
        StepStatus.RUNNING,
        message=reason,
        stop=Stop(reason, plan.digest[:DIGEST_LENGTH], differences),
        detail=_ASKED,
    )


def _failed(outcome: Failed | Interrupted, inputs: Inputs, context: StepContext) -> StepResult:
    result = refuse(outcome, "terraform apply", inputs, context)
    if isinstance(outcome, Interrupted):
        message = (
            f"terraform apply in {inputs.config.directory} was interrupted: {outcome.reason}; it may be half done, "
            "say /retry to plan and apply the rest"
        )
        return StepResult(StepStatus.ERRORED, message=message)
    half = " It may be half done: say /retry to apply the rest." if outcome.partial else ""
    return replace(result, message=f"{result.message}{half}")
