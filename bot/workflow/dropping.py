"""Building a promotion branch anew: people's commits are dropped only where somebody asked for it, and are named."""

from __future__ import annotations

from dataclasses import replace

from bot.domain.promotion import Promotion, State
from bot.ports import Store
from bot.workflow.buttons import Refusal
from bot.workflow.snapshots import Gatherer

_TRIES = 5
_MOST_NAMED = 10


async def promote_again(store: Store, gatherer: Gatherer, promotion: Promotion) -> str:
    """Have the branch of a Promotion that is not merged built anew, without what people pushed up to now.

    The answer says what is dropped. What is pushed from now on is kept. Raises Refusal if the row changes too fast.
    """
    pull = await gatherer.find_pull(promotion)
    people = await gatherer.people_commits(promotion, pull) if pull is not None else ()
    for _ in range(_TRIES):
        wanted = replace(
            promotion,
            preview_wanted="asked for by `/promote`",
            drop=pull.head if pull is not None and people else promotion.drop,
        )
        if await store.save_promotion(wanted, expected=promotion):
            break
        promotion = await store.get_promotion(promotion.id) or promotion
    else:
        raise Refusal("the promotion changes too fast; try again")
    said = f"{promotion.freight.alias} is on its way to {promotion.stage} already; it is previewed again"
    if not people:
        return said
    names = ", ".join(commit[:7] for commit in people[:_MOST_NAMED])
    more = f" and {len(people) - _MOST_NAMED} more" if len(people) > _MOST_NAMED else ""
    return f"{said}, and its branch is built anew without {names}{more}"


def can_begin_anew(promotion: Promotion) -> bool:
    """Whether nothing stands in the way of a new preview, or of other Freight.

    What was applied before a merge that never came does not: what is planned is planned on what is there.
    """
    stopped = promotion.is_ahead and promotion.state is State.STOPPED
    return promotion.merge_commit is None and (stopped or not promotion.effects_begun)
