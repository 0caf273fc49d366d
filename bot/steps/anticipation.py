"""Whether a step of a preview may ask the world already, or stands behind something that has not happened yet."""

from __future__ import annotations

from bot.domain.review import ApplyRecord, Presence, PublishRecord, StepClass, StepReport
from bot.steps.contract import StepContext

_ADDRESSED = (StepClass.EDIT, StepClass.READ, StepClass.WAIT)


def is_behind_cut(context: StepContext) -> bool:
    """Whether an earlier step of the walk may not be anticipated, so that what is asked now may get a wrong answer."""
    return any(_cuts(report) for report in context.earlier)


def _cuts(report: StepReport) -> bool:
    if report.presence in (Presence.SKIPPED, Presence.ON_FAILURE):
        return False
    if isinstance(report.record, ApplyRecord):
        return report.record.kind.is_barrier
    if isinstance(report.record, PublishRecord):
        return report.record.commits > 0 or bool(report.record.tag)
    if report.step_class is StepClass.ACT:
        return True
    if report.presence is Presence.CONDITIONAL:
        return report.step_class is not StepClass.NOTE
    return report.tainted and report.step_class in _ADDRESSED
