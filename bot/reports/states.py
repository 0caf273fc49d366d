"""Where a promotion and the Stages stand."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.promotion import Promotion, State
from bot.domain.view import StageLine
from bot.reports.markdown import plain, table
from bot.reports.wording import moment, step_name, versions_line

_ICONS = {
    State.QUEUED: "⏳",
    State.REVIEW: "⏳",
    State.FULFILLING: "⏳",
    State.HELD: "✋",
    State.STOPPED: "✋",
    State.SUCCEEDED: "✅",
    State.FAILED: "❌",
    State.ERRORED: "❌",
    State.ABORTED: "⛔",
}


def headline(promotion: Promotion) -> str:
    """Icon, Freight, Stage and state, as Markdown."""
    return f"{_ICONS[promotion.state]} {plain(state_words(promotion))}"


def state_words(promotion: Promotion) -> str:
    """Freight, Stage and state; prose for a title."""
    freight, stage = promotion.freight.label, promotion.stage
    if promotion.follows is not None:
        return f"re-promotion of {freight} after #{promotion.follows.pull}: {_again_words(promotion)}"
    match promotion.state:
        case State.SUCCEEDED:
            return f"{freight} is in {stage}: every step is done"
        case State.FAILED | State.ERRORED if promotion.merge_commit is not None or promotion.effects_begun:
            return f"{freight} did not reach {stage}: a step failed"
        case State.FAILED | State.ERRORED:
            return f"{freight} cannot go to {stage}"
        case State.STOPPED if promotion.stop is not None and promotion.stop.failed:
            return f"{freight} did not reach {stage}: a step failed before the merge"
        case State.STOPPED if promotion.is_ahead and promotion.stop is not None and not promotion.stop.digest:
            return f"{freight} on its way to {stage} is stopped: it was applied, and cannot be merged"
        case State.STOPPED:
            return f"{freight} on its way to {stage} is stopped: it is not what was approved"
        case State.HELD:
            return f"{freight} is merged but held: nothing was applied to {stage}"
        case State.ABORTED:
            return f"{freight} does not go to {stage}"
        case State.FULFILLING:
            return f"{freight} is on its way to {stage}"
        case _:
            return f"{freight} waits to go to {stage}"


def _again_words(promotion: Promotion) -> str:
    """How a re-promotion stands: the Stage has its Freight all the while."""
    match promotion.state:
        case State.SUCCEEDED:
            return f"every step is done in {promotion.stage}"
        case State.FAILED | State.ERRORED:
            return f"a step failed in {promotion.stage}"
        case State.STOPPED:
            return f"stopped, in {promotion.stage} it is not what was approved"
        case State.HELD:
            return f"merged but held, nothing was applied to {promotion.stage}"
        case State.ABORTED:
            return f"ended, nothing more is done in {promotion.stage}"
        case _:
            return f"under way in {promotion.stage}"


def reason_words(promotion: Promotion, waiting: str = "") -> str:
    """Why it stands there, else what it waits for; a step at the front has the name that people know. Prose."""
    said = promotion.reason or waiting
    for step in promotion.steps:
        if said.startswith((f"{step.alias}:", f"{step.alias} ")):
            return step_name(step.alias, step.uses) + said[len(step.alias) :]
    return said


def stages_table(stages: Sequence[StageLine], most: int) -> str:
    """What runs in which Stage, since when, and whether it is verified there."""
    shown = table(["Stage", "Freight", "Versions", "Since", ""], [_stage(line) for line in stages[:most]])
    return f"{shown}\n\nand {len(stages) - most:,} more" if len(stages) > most else shown


def _stage(line: StageLine) -> list[str]:
    name = f"**{plain(line.name)}** ← this one" if line.here else plain(line.name)
    if line.freight is None:
        return [name, "none yet", "", "", plain(line.state)]
    since = moment(line.since) if line.since is not None else ""
    state = line.state or ("verified" if line.verified else "not verified")
    return [name, plain(line.freight.alias), versions_line(line.freight), since, plain(state)]
