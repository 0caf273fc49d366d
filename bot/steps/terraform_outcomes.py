"""What the outcomes of Terraform mean for a step: messages, problems and waits."""

from __future__ import annotations

from dataclasses import replace

from bot.domain.promotion import StepStatus
from bot.domain.review import Problem
from bot.domain.terraform import Failed, Interrupted, Lock, StateLocked
from bot.steps.contract import StepContext, StepResult
from bot.steps.terraform_inputs import Inputs
from bot.steps.worktree import join

_LOCK_PAUSE = 30.0


def describe_lock(lock: Lock) -> str:
    """Who holds a state's lock and since when, as far as the backend tells."""
    who = lock.who or "somebody"
    what = f" for {lock.operation}" if lock.operation else ""
    since = f" since {lock.created}" if lock.created else ""
    named = f" (lock {lock.id})" if lock.id else ""
    return f"the state is locked by {who}{what}{since}{named}"


def refuse(
    outcome: Failed | StateLocked | Interrupted, tried: str, inputs: Inputs, context: StepContext
) -> StepResult:
    """A preview's answer to a run that did not succeed; `tried` is what was run, such as `terraform plan`."""
    where = inputs.config.directory
    if isinstance(outcome, StateLocked):
        message = f"{tried} in {where}: {describe_lock(outcome.lock)}; it is tried again by itself"
        problem = Problem(context.alias, message, transient=True, lock=outcome.lock)
    elif isinstance(outcome, Interrupted):
        message = f"{tried} in {where} was interrupted: {outcome.reason}; it is tried again by itself"
        problem = Problem(context.alias, message, transient=True)
    else:
        message = f"{tried} in {where} failed: {outcome.summary}"
        first = next((d for d in outcome.diagnostics if d.severity == "error"), None)
        path = join(inputs.site.directory, first.path) if first is not None and first.path else ""
        line = first.line if first is not None else 0
        problem = Problem(context.alias, message, log=outcome.text, path=path, line=line)
    return StepResult(status=StepStatus.FAILED, message=message, problem=problem)


def refuse_or_wait(
    outcome: Failed | StateLocked | Interrupted, tried: str, inputs: Inputs, context: StepContext
) -> StepResult:
    """A fulfil's answer to a run that did nothing: a lock is waited for, the rest is a failure."""
    result = refuse(outcome, tried, inputs, context)
    if isinstance(outcome, StateLocked):
        return StepResult(StepStatus.RUNNING, message=result.message, retry_after=_LOCK_PAUSE)
    if isinstance(outcome, Interrupted):
        return replace(result, status=StepStatus.ERRORED)
    return result
