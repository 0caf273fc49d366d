"""Rules about Promotions that are Kargo's: the queue's order, how steps make up the end, and retry limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from bot.domain.model import Retry
from bot.domain.promotion import State, StepStatus


class Queued(Protocol):
    """What the order of Promotions depends on; ids hold a ULID, so those of one Stage sort by time."""

    @property
    def id(self) -> str: ...

    @property
    def state(self) -> State: ...


QueuedPromotion = TypeVar("QueuedPromotion", bound=Queued)


def order_promotions(promotions: Iterable[QueuedPromotion]) -> list[QueuedPromotion]:
    """A Stage's Promotions as its queue shows them: under way, then waiting oldest first, then ended newest first."""
    waiting: list[QueuedPromotion] = []
    running: list[QueuedPromotion] = []
    ended: list[QueuedPromotion] = []
    for promotion in sorted(promotions, key=lambda item: item.id):
        if promotion.state.ended:
            ended.append(promotion)
        elif promotion.state is State.QUEUED:
            waiting.append(promotion)
        else:
            running.append(promotion)
    return [*running, *waiting, *reversed(ended)]


_SEVERITY = (
    StepStatus.SUCCEEDED,
    StepStatus.SKIPPED,
    StepStatus.RUNNING,
    StepStatus.ABORTED,
    StepStatus.FAILED,
    StepStatus.ERRORED,
)
_ENDS = {
    StepStatus.SUCCEEDED: State.SUCCEEDED,
    StepStatus.SKIPPED: State.SUCCEEDED,
    StepStatus.ABORTED: State.ABORTED,
    StepStatus.FAILED: State.FAILED,
}


def final_phase(steps: Sequence[tuple[str, bool]], statuses: Mapping[str, StepStatus]) -> State:
    """How a Promotion ends whose steps are over: the worst status of those that may not fail.

    `steps` are pairs of alias and `continueOnError`. A step that still runs at the end counts as an error of ours;
    steps without a status were not reached and do not count.
    """
    counted = [statuses[alias] for alias, may_fail in steps if not may_fail and alias in statuses]
    worst = max(counted, key=_SEVERITY.index, default=StepStatus.SUCCEEDED)
    return _ENDS.get(worst, State.ERRORED)


def retry_timeout(retry: Retry, default: float) -> float:
    """Seconds after which a step that keeps running ends; zero means never, also where it is written out."""
    return default if retry.timeout is None else retry.timeout


def error_threshold(retry: Retry, default: int) -> int:
    """How many errors in a row end a step; zero, like nothing, means the step kind's default."""
    return retry.error_threshold or default
