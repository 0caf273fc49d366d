"""What people said to steps that ask: a part of the store, in which every method is one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bot.domain.promotion import PromotionId
from bot.domain.questions import GivenAnswer


class AnswerStore(Protocol):
    """Answers and approvals, one for each step and person of a Promotion; kept as long as the Promotion is."""

    async def add_answer(
        self, promotion: PromotionId, answer: GivenAnswer, *, replacing: GivenAnswer | None = None
    ) -> bool:
        """Keep it if there is none of that alias and person yet, or the one there is `replacing`; False if not."""

    async def list_answers(self, promotion: PromotionId) -> Sequence[GivenAnswer]:
        """All of a Promotion, oldest first."""
