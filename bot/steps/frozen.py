"""Answers of the world that a preview fixes: the same must come again, or somebody must have accepted the new one."""

from __future__ import annotations

from bot.domain.digest import DIGEST_LENGTH
from bot.domain.promotion import Stop
from bot.domain.review import FrozenRecord
from bot.steps.contract import StepContext


def stop_for_another(record: FrozenRecord, context: StepContext, said: str) -> Stop | None:
    """The stop before an answer that is not the approved one, None if it is, or was accepted, or none was approved.

    `said` follows the question in the reason.
    """
    approved = context.approved.record if context.approved is not None else None
    digest = record.fingerprint[:DIGEST_LENGTH]
    if not isinstance(approved, FrozenRecord) or approved.fingerprint == record.fingerprint:
        return None
    if digest in context.promotion.accepted:
        return None
    return Stop(f"{record.question} {said}", digest)
