"""What the steps that wait show in a preview: whether what they wait for holds already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bot.domain.promotion import StepStatus
from bot.domain.review import GateRecord
from bot.domain.values import Value
from bot.steps.contract import StepContext, StepResult

_LATER = "asked after the merge"


def ask_later(subject: str, later: Mapping[str, Value] | None = None) -> StepResult:
    """It stands behind an apply, or is not known yet: it is asked after the merge; `later` are its outputs then."""
    record = GateRecord(subject, open=False, reason=_LATER)
    return StepResult(None, dict(later or {}), record=record)


def is_asked_later(context: StepContext) -> bool:
    """Whether what was approved says that it is asked after the merge (fulfil only)."""
    record = context.approved.record if context.approved is not None else None
    return isinstance(record, GateRecord) and record.reason == _LATER


def show_look(subject: str, answer: StepResult, later: Mapping[str, Value] | None = None) -> StepResult:
    """One look as a preview shows it: open, still closed with the reason, or failed."""
    if answer.status is StepStatus.RUNNING:
        gate = GateRecord(subject, open=False, reason=answer.message)
        return StepResult(None, dict(later or {}), message=answer.message, record=gate)
    is_open = answer.status is StepStatus.SUCCEEDED
    return replace(answer, record=GateRecord(subject, is_open, answer.message))
