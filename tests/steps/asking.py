"""What people said to steps, kept in memory: the first answer of a step and person stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.domain.promotion import PromotionId
from bot.domain.questions import GivenAnswer


@dataclass
class FakeAnswers:
    """The answers to every Promotion."""

    kept: dict[tuple[PromotionId, str, str], GivenAnswer] = field(default_factory=dict)

    async def add_answer(
        self, promotion: PromotionId, answer: GivenAnswer, *, replacing: GivenAnswer | None = None
    ) -> bool:
        key = (promotion, answer.alias, answer.person)
        if self.kept.get(key) != replacing:
            return False
        self.kept[key] = answer
        return True

    async def list_answers(self, promotion: PromotionId) -> Sequence[GivenAnswer]:
        found = [answer for key, answer in self.kept.items() if key[0] == promotion]
        return sorted(found, key=lambda answer: answer.at)
