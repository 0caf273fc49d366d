"""Looking at one Stage: see, decide, act, until there is nothing to do but wait."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import assert_never

from bot.domain.actions import (
    Act,
    BeginApply,
    BeginFulfil,
    ContinueFulfil,
    End,
    EnsureSegment,
    Halt,
    Hold,
    MakePreview,
    Merge,
    Snapshot,
    StartPromotion,
    StartRollback,
    Wait,
)
from bot.domain.auto_promotion import Hold as OriginHold
from bot.domain.auto_promotion import holds_after_promotion
from bot.domain.availability import KnownFreight, available_freight, index_freight, verify_in_stage
from bot.domain.freight import Freight, FreightName, FreightOrigin
from bot.domain.model import Stage
from bot.domain.planning import plan
from bot.domain.promotion import Promotion, State
from bot.domain.tasks import TaskError
from bot.ports import Event, GitHub, Look, MergeDone, StageRecord, Store, TerminalError
from bot.workflow import early, engine
from bot.workflow.auditing import describe_release
from bot.workflow.follow_ups import OpenFollowUps
from bot.workflow.publish import Publisher
from bot.workflow.reporting import Reporter
from bot.workflow.snapshots import Gatherer

log = logging.getLogger(__name__)

_MOST_ACTIONS = 12
"""Actions of one look; more mean that something flips to and fro, and a pause is due."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks for a promotion, and what kind of one; `actor` is a login, or `lockstep`, which says `why`."""

    actor: str
    actor_id: int = 0
    rollback: bool = False
    corrects: bool = False
    why: str = ""


@dataclass(slots=True)
class StageLooker:
    """Carries out what the plan of a Stage says."""

    gatherer: Gatherer
    reporter: Reporter
    publisher: Publisher
    store: Store
    github: GitHub
    follow_ups: OpenFollowUps
    engine: engine.Engine | None = None

    async def look(self, stage: Stage) -> str:
        """Act until only waiting is left; returns the reason why it waits.

        Raises TransientError and TerminalError of the world.
        """
        if stage.is_control_flow:
            return await self._pass_on(stage)
        for _ in range(_MOST_ACTIONS):
            seen = await self.gatherer.gather(stage)
            action = plan(seen)
            if isinstance(action, Wait):
                await self._wait(seen, action)
                return action.reason
            await self._act(seen, action)
            if isinstance(action, EnsureSegment):
                return "work is under way"
        await self._look_again(seen, timedelta(seconds=5))
        return "looked at again soon"

    async def turn(self, stage: Stage) -> None:
        """Show a Stage's gates as they are now, before anything that is shown from here on."""
        seen = await self.gatherer.gather(stage)
        action = plan(seen)
        if isinstance(action, Wait):
            await self.reporter.report(seen, action.reason)
        await self._look_again(seen, timedelta(0))

    async def start(
        self, stage: Stage, freight: Freight, *, actor: str, actor_id: int = 0, rollback: bool = False
    ) -> Promotion | str:
        """Create a Promotion; the answer is a reason if the Stage has an unfinished one or its task is wrong."""
        return await self.begin(stage, freight, Asking(actor, actor_id, rollback=rollback))

    async def begin(self, stage: Stage, freight: Freight, asking: Asking) -> Promotion | str:
        """Create a Promotion of any kind, as `start` does."""
        project, name = stage.metadata.namespace, stage.metadata.name
        try:
            draft = self.gatherer.draft(stage, freight)
        except TaskError as error:
            return str(error)
        now = draft.created_at
        record = await self.store.get_stage(project, name)
        promotion = replace(
            draft,
            collection=await self._collection(project, freight, record.items),
            actor=asking.actor,
            actor_id=asking.actor_id,
            rollback=asking.rollback,
            corrects=asking.corrects,
            why=asking.why,
        )
        if not await self.store.create_promotion(promotion):
            return f"{name} has an unfinished promotion"
        if await self.store.get_freight(project, freight.name) is None:
            gone = f"{freight.alias} was forgotten just now, since nobody needed it; choose other Freight"
            ended = replace(promotion, state=State.ABORTED, reason=gone, finished_at=now)
            await self.store.save_promotion(ended, expected=promotion)
            return gone
        why = f": {asking.why}" if asking.why else ""
        told = f"{freight.alias} to {name}, asked for by {asking.actor}{why}"
        await self._event(promotion, "promotion", told)
        return promotion

    async def go_back(self, stage: Stage, freight: Freight, asking: Asking) -> Promotion | str:
        """Create a rollback: what the Stage leaves is quarantined, and auto-promotion of the origin held.

        A promotion that failed there holds the Stage no longer. The answer may be a reason, as that of `begin`.
        """
        project, name = stage.metadata.namespace, stage.metadata.name
        started = await self.begin(stage, freight, replace(asking, rollback=True))
        if isinstance(started, str):
            return started
        await self.unblock(project, name)
        why = asking.why or f"{asking.actor} rolled back"
        hold = OriginHold(freight.origin, freight.name, started.id, started.created_at, why)
        await self.store.change_stage(project, name, partial(rolled_back, hold=hold))
        return started

    async def unblock(self, project: str, name: str) -> None:
        """A new promotion takes the Stage over from one that failed."""
        for old in await self.store.list_promotions(project, name):
            if old.blocked:
                left = Look("follow-ups", old.id, "another promotion takes over")
                await self.store.save_promotion(replace(old, blocked=False), expected=old, looks=[left])

    async def hold_after(self, promotion: Promotion, candidate: Freight | None) -> None:
        """Note that a person chose: other Freight than the candidate holds auto-promotion of its origin."""
        hold = OriginHold(
            origin=promotion.freight.origin,
            freight=promotion.freight.name,
            promotion=promotion.id,
            created_at=promotion.created_at,
            reason=f"{promotion.actor} promoted {promotion.freight.alias}",
        )
        name = candidate.name if candidate is not None else None
        await self.store.change_stage(
            promotion.project,
            promotion.stage,
            lambda record: replace(record, holds=holds_after_promotion(record.holds, hold, name)),
        )

    # -- actions -------------------------------------------------------------------------------------------------

    async def _act(self, seen: Snapshot, action: Act) -> None:
        promotion = seen.promotion
        match action:
            case StartPromotion(freight=freight):
                # From here on every report is of the new promotion: how the last one ended is said before.
                await self.reporter.report(seen, "")
                await self.start(seen.stage, freight, actor="lockstep")
                return
            case StartRollback(freight=freight, reason=reason):
                await self.reporter.report(seen, "")
                await self.go_back(seen.stage, freight, Asking("lockstep", why=reason))
                return
            case _ if promotion is None:
                raise TerminalError(f"{action} needs a promotion")
            case MakePreview(reason=reason):
                again = replace(early.afresh(promotion), preview_wanted="", reason=reason, wake_at=None)
                await self._begin(promotion, "preview", again)
            case Merge():
                await self._merge(seen, promotion, action)
            case BeginFulfil(merge=merge, reason=reason):
                begun = early.merged(promotion, merge, reason)
                await self._begin(promotion, "fulfil", begun, detail=describe_release(seen))
            case BeginApply():
                begun = early.begun(promotion, action)
                await self._begin(promotion, "fulfil", begun, detail=describe_release(seen))
            case ContinueFulfil():
                await self._begin(promotion, "fulfil", early.continued(promotion, action))
            case EnsureSegment():
                await self._ensure(promotion)
                if promotion.merge_commit is not None or promotion.is_ahead:
                    await self.reporter.report(seen, promotion.reason)
            case Hold(merge=merge, reason=reason):
                held = replace(promotion, state=State.HELD, merge_commit=merge, reason=reason)
                told = replace(self._told(held, "held", reason), detail=describe_release(seen))
                await self.store.save_promotion(held, expected=promotion, event=told)
            case Halt(stop=stop):
                halted = replace(promotion, state=State.STOPPED, stop=stop, reason=stop.reason)
                told = self._told(halted, "stopped", stop.reason)
                await self.store.save_promotion(halted, expected=promotion, event=told)
            case End():
                await self._end(seen, promotion, action)
            case _:
                assert_never(action)

    async def _begin(self, promotion: Promotion, work: str, changed: Promotion, *, detail: str = "") -> None:
        """Mark a segment as in flight, then queue it; the next look repairs a crash between the two."""
        begun = replace(changed, running=work, segment=promotion.segment + 1)
        told = replace(self._told(begun, work, begun.reason), detail=detail)
        if await self.store.save_promotion(begun, expected=promotion, event=told):
            await self._submit(begun)

    async def _ensure(self, promotion: Promotion) -> None:
        if self.engine is not None and await self.engine.is_finished(_segment_id(promotion)):
            # The segment ended without a word: an error of ours, which the log tells. It is tried again with a pause.
            idle = replace(
                promotion, running="", reason=f"{promotion.running} ended unexpectedly; see the log"
            )
            wake = self.gatherer.clock.now() + timedelta(seconds=30)
            await self.store.save_promotion(replace(idle, wake_at=wake), expected=promotion)
            return
        await self._submit(promotion)

    async def _submit(self, promotion: Promotion) -> None:
        if self.engine is not None:
            await self.engine.submit(
                engine.SEGMENTS,
                "segment",
                f"{promotion.id} {promotion.segment}",
                work_id=_segment_id(promotion),
                key=f"{promotion.project}/{promotion.stage}",
            )

    async def _merge(self, seen: Snapshot, promotion: Promotion, action: Merge) -> None:
        if seen.pull is None:
            return
        if promotion.is_ahead:
            outcome = await early.merge(self.github, self.gatherer.git, promotion, seen.pull, action.head)
        else:
            outcome = await self.github.merge_pull_request(
                seen.pull.repository,
                seen.pull.number,
                head=action.head,
                method=action.method,
                title=f"{seen.pull.title} (#{seen.pull.number})",
                message=action.reason,
            )
        if isinstance(outcome, MergeDone):
            await self._event(promotion, "merged", action.reason)
            return
        # A rule may keep it waiting for days, so it is told once.
        refused = f"GitHub does not merge it yet: {outcome.message}"
        await self._wait(seen, Wait(refused, until=seen.now + timedelta(seconds=10)))

    async def _end(self, seen: Snapshot, promotion: Promotion, action: End) -> None:
        ended = replace(
            promotion,
            state=action.state,
            reason=action.reason,
            finished_at=seen.now,
            superseded_by=action.superseded_by.name if action.superseded_by is not None else "",
        )
        await self.reporter.report(replace(seen, promotion=ended), action.reason)
        if action.superseded_by is None:
            await self.publisher.close(promotion)
            await self.follow_ups.close(promotion)
        await self.store.drop_bundles(promotion.id)
        told = self._told(ended, action.state.value.lower(), action.reason)
        await self.store.save_promotion(ended, expected=promotion, event=told)

    async def _wait(self, seen: Snapshot, action: Wait) -> None:
        await self.reporter.report(seen, action.reason)
        promotion = seen.promotion
        if promotion is not None and promotion.reason != action.reason:
            waiting = replace(promotion, reason=action.reason)
            told = self._told(promotion, "waits", action.reason)
            await self.store.save_promotion(waiting, expected=promotion, event=told)
        if action.until is not None:
            look = Look("stage", f"{seen.project}/{seen.stage.metadata.name}", "its time has come")
            await self.store.request_looks([look], at=action.until)

    async def _look_again(self, seen: Snapshot, pause: timedelta) -> None:
        look = Look("stage", f"{seen.project}/{seen.stage.metadata.name}", "once more")
        await self.store.request_looks([look], at=seen.now + pause)

    async def _pass_on(self, stage: Stage) -> str:
        """A control-flow Stage verifies whatever is available to it at once."""
        project, name = stage.metadata.namespace, stage.metadata.name
        now = self.gatherer.clock.now()
        known = [KnownFreight(freight, status) for freight, status in await self.store.list_freight(project)]
        passed = 0
        for item in available_freight(stage, index_freight(known), now):
            if name not in item.status.verified_in:
                verify = partial(verify_in_stage, stage=name, at=now)
                await self.store.change_freight_status(project, item.freight.name, verify)
                passed += 1
        if passed:
            await self.store.request_looks(self.downstream(project))
        return f"passed on {passed} Freight"

    def downstream(self, project: str) -> list[Look]:
        """Looks at every Stage of a project: what one Stage proves, others may take."""
        stages = self.gatherer.configuration.stages_in_order(project)
        return [Look("stage", f"{project}/{stage.metadata.name}", "Freight moved on") for stage in stages]

    async def _collection(
        self, project: str, freight: Freight, present: Mapping[FreightOrigin, FreightName]
    ) -> tuple[Freight, ...]:
        """The promoted Freight with that of the other origins, which the Stage keeps."""
        others = []
        for origin, name in present.items():
            found = await self.store.get_freight(project, name) if origin != freight.origin else None
            if found is not None:
                others.append(found[0])
        return (freight, *others)

    def _told(self, promotion: Promotion, kind: str, message: str) -> Event:
        now = self.gatherer.clock.now()
        return Event(now, promotion.project, promotion.stage, promotion.id, kind, message)

    async def _event(self, promotion: Promotion, kind: str, message: str) -> None:
        await self.store.add_event(self._told(promotion, kind, message))


def _segment_id(promotion: Promotion) -> str:
    return f"{promotion.id}/{promotion.segment}/{promotion.attempt}"


def rolled_back(record: StageRecord, hold: OriginHold) -> StageRecord:
    """A Stage that goes back: what it leaves is quarantined, and newer Freight is held."""
    left = record.items.get(hold.origin)
    quarantine = (*record.quarantine, left) if left not in (None, hold.freight) else record.quarantine
    return replace(record, quarantine=quarantine, holds={**record.holds, hold.origin: hold})


def held(record: StageRecord, origin: FreightOrigin, hold: OriginHold | None) -> StageRecord:
    """A Stage with this hold of an origin's Freight, or without one."""
    rest = {key: value for key, value in record.holds.items() if key != origin}
    return replace(record, holds={**rest, origin: hold} if hold is not None else rest)
