"""Values that the store's tests keep."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bot.domain.freight import Freight, FreightName, FreightOrigin
from bot.domain.promotion import Promotion, PromotionId
from bot.ports import Delivery

AT = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
SOON = datetime(2100, 1, 1, tzinfo=UTC)


def freight(name: str = "a" * 40) -> Freight:
    return Freight(FreightName(name), "shop", "", FreightOrigin("apps"), AT)


def promotion(number: int = 1, **changes: object) -> Promotion:
    made = Promotion(
        id=PromotionId(f"dev.{number}.aaaaaaa"),
        project="shop",
        stage="dev",
        freight=freight(),
        collection=(freight(),),
        steps=(),
        variables=(),
        actor="olivia",
        actor_id=7,
        created_at=AT + timedelta(seconds=number),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def delivery(name: str) -> Delivery:
    return Delivery(name, "github", "push", b"{}", AT)
