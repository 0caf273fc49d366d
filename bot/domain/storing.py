"""What may be kept of previews and of steps: everything but the secrets, of which the names are left."""

from __future__ import annotations

from dataclasses import replace

from bot.domain.plan_digest import storable
from bot.domain.promotion import StepRun
from bot.domain.review import (
    ApplyRecord,
    CommitRecord,
    EffectRecord,
    Preview,
    Record,
    RequestRecord,
    StepReport,
)
from bot.domain.values import empty_secrets


def storable_preview(preview: Preview) -> Preview:
    """The preview as it may be stored. Its digest was made of the whole one and stays."""
    return replace(preview, steps=tuple(_report(step) for step in preview.steps))


def storable_run(run: StepRun) -> StepRun:
    """A journal entry as it may be stored; a step whose answer held a secret is asked again when it is needed."""
    return replace(
        run,
        output={name: empty_secrets(value) for name, value in run.output.items()},
        detail={name: empty_secrets(value) for name, value in run.detail.items()},
    )


def _report(step: StepReport) -> StepReport:
    return replace(
        step,
        config=empty_secrets(step.config),
        output={name: empty_secrets(value) for name, value in step.output.items()},
        record=_record(step.record) if step.record is not None else None,
    )


def _record(record: Record) -> Record:
    match record:
        case ApplyRecord(plan=plan) if plan is not None:
            return replace(record, plan=storable(plan))
        case CommitRecord():
            return replace(record, message=empty_secrets(record.message))
        case EffectRecord():
            return replace(record, details=tuple((name, empty_secrets(v)) for name, v in record.details))
        case RequestRecord():
            title, description = empty_secrets(record.title), empty_secrets(record.description)
            return replace(record, title=title, description=description)
        case _:
            return record
