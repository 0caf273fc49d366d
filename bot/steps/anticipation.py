"""Whether a step of a preview may ask the world already, or stands behind something that has not happened yet."""

from __future__ import annotations

from bot.domain.review import ApplyRecord, Presence, PublishRecord, StepReport
from bot.domain.step_kinds import AWAITS_MERGE, StepClass
from bot.steps.contract import StepContext

_ADDRESSED = (StepClass.EDIT, StepClass.READ, StepClass.WAIT)


def is_behind_cut(context: StepContext) -> bool:
    """Whether an earlier step of the walk may not be anticipated, so that what is asked now may get a wrong answer."""
    steps = context.promotion.steps
    opening = next((index for index, step in enumerate(steps) if step.uses == "git-open-pr"), -1)
    # What is pushed before the task opens its pull request becomes public only by the merge.
    return any(_cuts(report) for report in context.earlier if not _is_pushed_before(report, opening))


def _is_pushed_before(report: StepReport, opening: int) -> bool:
    return isinstance(report.record, PublishRecord) and report.index < opening


def _cuts(report: StepReport) -> bool:
    if report.presence in (Presence.SKIPPED, Presence.ON_FAILURE):
        return False
    if report.kind in AWAITS_MERGE:
        return True
    if isinstance(report.record, ApplyRecord):
        return report.record.kind.is_barrier
    if isinstance(report.record, PublishRecord):
        return report.record.commits > 0 or bool(report.record.tag)
    if report.step_class is StepClass.ACT:
        return True
    if report.presence is Presence.CONDITIONAL:
        return report.step_class is not StepClass.NOTE
    return report.tainted and report.step_class in _ADDRESSED
