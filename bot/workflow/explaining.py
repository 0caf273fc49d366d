"""`lockstep explain`: the decision about one Stage as it would be made now, without making it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from bot.domain.actions import (
    Action,
    BeginApply,
    BeginFulfil,
    ContinueFulfil,
    End,
    EnsureSegment,
    Halt,
    Hold,
    MakePreview,
    Merge,
    StartPromotion,
    StartRollback,
    Wait,
)
from bot.domain.planning import plan
from bot.ports import TerminalError
from bot.reports.answers import render_explain
from bot.reports.wording import moment
from bot.workflow.configuration import find_stage
from bot.workflow.reporting import Reporter
from bot.workflow.snapshots import Gatherer


@dataclass(frozen=True, slots=True)
class Explaining:
    """Explains by hand."""

    gatherer: Gatherer
    reporter: Reporter

    async def explain(self, name: str) -> str:
        """The next action with its reason, and the tree of gates of the present or the last Promotion, as Markdown.

        Raises TerminalError if there is no such Stage, and what reading the world raises.
        """
        if not self.gatherer.configuration.pipeline.revision:
            raise TerminalError("no configuration is in force: the bot has never run on this database")
        stage = find_stage(self.gatherer.configuration, name)
        where = f"{stage.metadata.namespace}/{stage.metadata.name}"
        if stage.is_control_flow:
            return f"{where}: it has no steps, so it passes on whatever is available to it"
        seen = await self.gatherer.gather(stage)
        said = f"{where}: {describe_action(plan(seen))}"
        promotion = seen.promotion or seen.last
        if promotion is None:
            return said
        waiting = promotion.reason
        view = await self.reporter.view(promotion, seen.preview, waiting, seen)
        return f"{said}\n\n{render_explain(view)}"


def describe_action(action: Action) -> str:
    """What the bot does next, in a sentence."""
    match action:
        case StartPromotion(freight=freight, reason=reason):
            return f"promotes {freight.alias}: {reason}"
        case StartRollback(freight=freight, reason=reason):
            return f"goes back to {freight.alias}: {reason}"
        case MakePreview(reason=reason):
            return f"makes a preview: {reason}"
        case Merge(reason=reason) | BeginFulfil(reason=reason) | ContinueFulfil(reason=reason):
            return f"goes on: {reason}"
        case EnsureSegment():
            return "is at work"
        case BeginApply():
            return "applies before the merge: every gate is open"
        case Halt(stop=stop):
            return f"stops: {stop.reason}"
        case Hold(reason=reason):
            return f"is held: {reason}"
        case End(state=state, reason=reason):
            return f"ends its promotion as {state.value}: {reason}"
        case Wait(reason=reason, until=until):
            return f"waits: {reason}" + (
                f", until {moment(until)} at the latest" if until is not None else ""
            )
        case _:
            assert_never(action)
