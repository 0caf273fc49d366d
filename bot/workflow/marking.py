"""Signing what a lost database is rebuilt from, for each place where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bot.domain.marker import (
    AppliedInputs,
    Marker,
    PlaceKind,
    Standing,
    place_of,
    render_block,
    render_marker,
)
from bot.domain.promotion import Promotion, State
from bot.domain.review import ApplyRecord, Preview, StepReport
from bot.ports import GitHub, StageRecord, Store, Vault

_LONGEST_REASON = 500
_MOST_IN_QUARANTINE = 50


@dataclass(frozen=True, slots=True)
class Marking:
    """Makes the signed blocks of Promotions."""

    store: Store
    github: GitHub
    vault: Vault

    async def body(self, promotion: Promotion, preview: Preview | None, record: StageRecord) -> str:
        """The block for the body of the pull request, an HTML comment; empty before it has a number."""
        repository = self._repository(promotion)
        if not repository or promotion.pull is None:
            return ""
        named = preview.applies if preview is not None else ()
        known = await self.store.get_freight(promotion.project, promotion.freight.name)
        verified = known[1].verified_in.get(promotion.stage) if known is not None else None
        marker = replace(
            _marker(promotion),
            state=promotion.state.value,
            finished_at=promotion.finished_at,
            reason=promotion.reason[:_LONGEST_REASON] if promotion.state.ended else "",
            pushers=promotion.pushers,
            verified_at=verified.verified_at if verified is not None else None,
            applied=await self._applied(named) if _may_have_applied(promotion) else (),
            standing=_standing(record),
            audit=await self.store.find_audit_of(promotion.id),
        )
        where = place_of(marker, PlaceKind.PULL, repository, str(promotion.pull))
        return render_marker(where, self.vault.digest)

    async def trailer(self, promotion: Promotion, done: Sequence[StepReport] = ()) -> str:
        """The block for the last trailer of our commits; `done` are the steps whose applies it tells.

        The same for the same progress, since commits are made again after a crash and must be the same.
        """
        repository = self._repository(promotion)
        if not repository or promotion.target is None:
            # Where no App is installed nothing is rebuilt, but our commits must be known as ours all the same.
            return render_block(_marker(promotion), self.vault.digest)
        applied = await self._applied(r.record for r in done if isinstance(r.record, ApplyRecord))
        marker = replace(_marker(promotion), applied=applied)
        where = place_of(marker, PlaceKind.BRANCH, repository, promotion.target.branch)
        return render_block(where, self.vault.digest)

    def payload(self, promotion: Promotion, environment: str) -> str:
        """The block for a deployment's payload; the same as long as the Promotion lasts, so that it is found again."""
        where = place_of(_marker(promotion), PlaceKind.ENVIRONMENT, self._repository(promotion), environment)
        return render_block(where, self.vault.digest)

    def _repository(self, promotion: Promotion) -> str:
        found = self.github.repository_of(promotion.target.url) if promotion.target is not None else None
        return str(found) if found is not None else ""

    async def _applied(self, named: Iterable[ApplyRecord]) -> tuple[AppliedInputs, ...]:
        """What was applied last of the states that were named."""
        found = []
        for state in dict.fromkeys(record.state for record in named):
            known = await self.store.find_applied(state)
            if known is not None:
                found.append(
                    AppliedInputs(state, known.inputs, known.commit, known.at, succeeded=known.succeeded)
                )
        return tuple(found)


def _marker(promotion: Promotion) -> Marker:
    """What does not change while the Promotion is carried out."""
    fulfils = promotion.merge_commit is not None or promotion.state is State.FULFILLING
    begun = State.FULFILLING if fulfils else State.REVIEW
    return Marker(
        promotion=promotion.id,
        project=promotion.project,
        stage=promotion.stage,
        freight=promotion.freight,
        digest=promotion.digest,
        state=begun.value,
        created_at=promotion.created_at,
        target=promotion.target,
        source=promotion.source,
        actor=promotion.actor,
        actor_id=promotion.actor_id,
        rollback=promotion.rollback,
        corrects=promotion.corrects,
    )


def _may_have_applied(promotion: Promotion) -> bool:
    """Whether anything of it may be applied: after its merge, or before it by `apply: BeforeMerge`, in any preview."""
    again = promotion.first_attempt > 1
    return promotion.merge_commit is not None or promotion.effects_begun or again


def _standing(record: StageRecord) -> Standing:
    return Standing(
        holds=tuple(record.holds.values()),
        frozen=record.frozen,
        quarantine=record.quarantine[-_MOST_IN_QUARANTINE:],
        differs=record.differs,
    )
