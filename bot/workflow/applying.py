"""What `/apply` and `/retry` do: an approver's word for what waits for it, kept on the row for the next look."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.domain.before_merge import APPLY_GATE, applies_before
from bot.domain.model import Stage
from bot.domain.promotion import EarlyApply, Promotion, State
from bot.workflow.buttons import Asked, Refusal
from bot.workflow.rights import Rights
from bot.workflow.snapshots import Gatherer

_CHANGED = "the promotion changed just now; look at it again"


@dataclass(frozen=True, slots=True)
class Applying:
    """Notes what was asked for; raises Refusal where nothing waits for it, or it may not be done yet."""

    gatherer: Gatherer

    async def ask(self, asked: Asked, promotion: Promotion, stage: Stage, digest: str) -> None:
        """`/apply`: accept what stopped or is held, or have an approved pull request applied before its merge."""
        if promotion.state is State.REVIEW:
            await self._ask_before_merge(asked, promotion, stage, digest)
            return
        await Rights(self.gatherer).check_acceptance(asked, promotion, stage)
        wanted = promotion.stop.digest if promotion.stop is not None else promotion.digest
        if promotion.state not in (State.STOPPED, State.HELD) or not wanted:
            raise Refusal(f"nothing waits for `/apply`: {promotion.reason}")
        if not digest or not wanted.startswith(digest):
            raise Refusal(f"the digest that waits is `{wanted}`; look at it before you accept it")
        accepted = replace(promotion, accepted=(*promotion.accepted, wanted))
        if not await self.gatherer.store.save_promotion(accepted, expected=promotion):
            raise Refusal(_CHANGED)

    async def _ask_before_merge(self, asked: Asked, promotion: Promotion, stage: Stage, digest: str) -> None:
        seen = await self.gatherer.gather(stage)
        known, preview = seen.promotion, seen.preview
        if known is None or known.id != promotion.id or preview is None or known.running:
            raise Refusal("its preview is being made; say `/apply` again when it is there")
        if not applies_before(seen.policy, preview):
            raise Refusal(f"nothing waits for `/apply`, it is merged instead: {promotion.reason}")
        if seen.pull is None or seen.pull.head != known.head:
            raise Refusal(
                "the branch was pushed to and is previewed again; say `/apply` when that is approved"
            )
        if digest and not known.digest.startswith(digest):
            raise Refusal(f"the digest of the preview is `{known.digest}`; look at it before you apply it")
        if preview.is_red:
            raise Refusal(f"it may not be applied as it is: {preview.held or preview.problems[0].message}")
        closed = [gate.reason for gate in seen.gates if not gate.open and gate.name != APPLY_GATE]
        if closed:
            raise Refusal(f"it may not be applied yet: {'; '.join(closed)}; say `/apply` again after that")
        early = EarlyApply(known.digest, asked.author.login)
        if not await self.gatherer.store.save_promotion(replace(known, early=early), expected=known):
            raise Refusal(_CHANGED)

    async def retry(self, asked: Asked, promotion: Promotion) -> None:
        """`/retry`: a new attempt of a walk that failed."""
        ended = promotion.state in (State.FAILED, State.ERRORED) and promotion.blocked
        ahead = promotion.state is State.STOPPED and promotion.stop is not None and promotion.stop.failed
        if not ended and not ahead:
            raise Refusal(f"there is nothing to retry: {promotion.reason}")
        again = replace(
            promotion,
            state=State.FULFILLING,
            attempt=promotion.attempt + 1,
            blocked=False,
            stop=None if ahead else promotion.stop,
            finished_at=None,
            wake_at=None,
            reason=f"tried again by {asked.author.login}",
        )
        if not await self.gatherer.store.save_promotion(again, expected=promotion):
            raise Refusal(
                f"{promotion.stage} has another unfinished promotion; say `/retry` again once that has ended"
            )
