"""Whether a pull request gives its target the whole tree of a checkout of another branch."""

from __future__ import annotations

from bot.domain.review import Pin, Presence, PublishRecord, StepReport
from bot.domain.splitting import choose_place
from bot.domain.step_kinds import StepClass
from bot.ports import Git
from bot.steps.contract import StepContext


async def is_replaced(git: Git, pin: Pin, record: PublishRecord, context: StepContext) -> bool:
    """Whether a push goes to the target of the pull request, with which its checkout has no history in common.

    The reviewer is then shown how the whole tree differs; anywhere else such a push conflicts.
    """
    if record.tag or record.branch == pin.branch or context.policy.review == "None":
        return False
    pins = [checkout.pin for checkout in context.tree.checkouts.values()]
    push = StepReport(
        index=len(context.earlier),
        alias=context.alias,
        kind="git-push",
        step_class=StepClass.PUBLISH,
        presence=Presence.CERTAIN,
        status=None,
        record=record,
    )
    place = choose_place((*context.earlier, push), pins, context.policy.review_in)
    if place is None or (place.target.url, place.target.branch) != (record.url, record.branch):
        return False
    tip = await git.resolve(record.url, f"refs/heads/{record.branch}")
    return tip is not None and (pin.commit is None or not await git.is_related(record.url, tip, pin.commit))
