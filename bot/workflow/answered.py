"""Questions that were answered after the merge: their gates open although the preview is made no more."""

from __future__ import annotations

from dataclasses import replace

from bot.domain.promotion import Promotion
from bot.domain.review import GateRecord, Preview, StepReport
from bot.domain.step_kinds import short_alias
from bot.ports.answers import AnswerStore


async def with_answers(store: AnswerStore, promotion: Promotion, preview: Preview) -> Preview:
    """The preview as its gates stand now. Before the merge an answer opens its gate by a new preview alone."""
    if promotion.merge_commit is None or all(wait.open or not wait.asks for wait in preview.waits):
        return preview
    kept = [answer for answer in await store.list_answers(promotion.id) if not answer.person]
    given = {answer.alias: f"{answer.by} answered {short_alias(answer.alias)}" for answer in kept}
    return replace(preview, steps=tuple(_opened(step, given.get(step.alias, "")) for step in preview.steps))


def _opened(step: StepReport, said: str) -> StepReport:
    record = step.record
    if not said or not isinstance(record, GateRecord) or not record.asks:
        return step
    return replace(step, record=replace(record, open=True, reason=said))
