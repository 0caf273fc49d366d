"""Drift: what a plan of unchanged inputs finds that somebody else changed, and what follows from it.

A Stage's states are planned with exactly the inputs that were applied last; what such a plan would do undoes drift.
Inputs that differ from those are a change of our own that waits to be applied, which is not drift, and a plan that
could not be made proves nothing either way.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from bot.domain.cron import next_time, parse_cron
from bot.domain.patterns import compile_name_pattern, matches_any
from bot.domain.promotion import PromotionId
from bot.domain.terraform import Action, OutputChange, Plan, ResourceChange

MOST_CHANGES = 300
"""Resources of one state that are kept and shown; the number is that of all."""
_MOST_ATTRIBUTES = 20
_MOST_OUTPUTS = 100

_ABOUT_THE_RUN = re.compile(r"variable |(configuration|invocations|backend|workspace|lock file|version)$")
"""Parts of a plan's digest that tell how it was made, and not what it would do."""

_JITTER = 0.1
_LONGEST_JITTER = 600.0
"""Seconds."""


class Finding(StrEnum):
    """What a look found."""

    NONE = "no drift"
    DRIFT = "drift"
    PENDING = "pending changes"
    """The inputs are not those that were applied last: what a plan finds would be that change as well."""
    UNSEEN = "could not look"


@dataclass(frozen=True, slots=True)
class StateLook:
    """What was found of one Terraform state; `reason` says why it was not planned.

    `changes` and `outputs` are what the plan would do, `outside` what changed outside and is left as it is; `count` is
    the number of all changes, of which the lists keep the first.
    """

    state: str
    directory: str
    finding: Finding
    reason: str = ""
    changes: tuple[ResourceChange, ...] = ()
    outputs: tuple[OutputChange, ...] = ()
    outside: tuple[str, ...] = ()
    count: int = 0
    digest: str = ""


def look_at_plan(state: str, directory: str, plan: Plan) -> StateLook:
    """What a plan of unchanged inputs says; `plan` holds no secrets."""
    changed = {change.address for change in plan.changes}
    outside = tuple(change.address for change in plan.drift if change.address not in changed)
    if plan.is_empty:
        return StateLook(state, directory, Finding.NONE, outside=outside[:MOST_CHANGES])
    moves = [r for r in plan.resources if (r.importing or r.moved_from) and r.address not in changed]
    changes = [*plan.changes, *moves]
    outputs = [output for output in plan.outputs if output.action is not Action.NO_OP]
    return StateLook(
        state,
        directory,
        Finding.DRIFT,
        changes=tuple(
            replace(change, attributes=change.attributes[:_MOST_ATTRIBUTES])
            for change in changes[:MOST_CHANGES]
        ),
        outputs=tuple(outputs[:_MOST_OUTPUTS]),
        outside=outside[:MOST_CHANGES],
        count=len(changes) + len(outputs),
        digest=_digest(plan),
    )


def _digest(plan: Plan) -> str:
    """Of what would change alone: a rotated secret among the variables makes no other drift."""
    parts = sorted(f"{name} {part}" for name, part in plan.parts.items() if not _ABOUT_THE_RUN.match(name))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest() if parts else plan.digest


@dataclass(frozen=True, slots=True)
class StageLook:
    """One look at a Stage: its states, and what kept the walk from coming to all of them."""

    at: datetime
    freight: str
    """The alias of the Freight whose apply is compared with the world."""
    promotion: PromotionId
    """The Promotion whose steps and inputs were planned."""
    states: tuple[StateLook, ...] = ()
    problem: str = ""

    @property
    def finding(self) -> Finding:
        """The gravest finding: drift that is seen counts even where another state could not be looked at."""
        found = {state.finding for state in self.states}
        if Finding.DRIFT in found:
            return Finding.DRIFT
        if self.problem or Finding.UNSEEN in found:
            return Finding.UNSEEN
        return Finding.PENDING if Finding.PENDING in found else Finding.NONE

    @property
    def drifted(self) -> tuple[StateLook, ...]:
        """The states with drift."""
        return tuple(state for state in self.states if state.finding is Finding.DRIFT)

    @property
    def count(self) -> int:
        """How many resources and outputs drifted."""
        return sum(state.count for state in self.drifted)

    @property
    def digest(self) -> str:
        """Equal as long as the drift is; empty without any."""
        parts = sorted(f"{state.state} {state.digest}" for state in self.drifted)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest() if parts else ""


@dataclass(frozen=True, slots=True)
class Question:
    """Somebody who asked for a look: where, and the key of the reply."""

    repository: str
    number: int
    key: str


@dataclass(frozen=True, slots=True)
class DriftRecord:
    """What is remembered of one Stage's drift.

    `last` is the newest look and `shown` the one whose drift the issue shows. `settled` tells that everything that
    follows from `last` was done. `open` says how we left the issue, so that one that is closed all the same was closed
    by a person; `dismissed` and `corrected` are the digests of the drift that a person closed the issue of, and that a
    corrective promotion was opened for unasked.
    """

    project: str
    stage: str
    since: datetime
    scheduled_at: datetime | None = None
    last: StageLook | None = None
    shown: StageLook | None = None
    settled: bool = True
    drifted_since: datetime | None = None
    repository: str = ""
    issue: int = 0
    open: bool = False
    dismissed: str = ""
    corrected: str = ""
    problem: str = ""
    """Why the issue could not be written, empty if it was."""
    told: str = ""
    """What the timeline was told last."""
    asked: tuple[Question, ...] = ()


# -- when ------------------------------------------------------------------------------------------------------


def due_at(schedule: str, record: DriftRecord) -> datetime | None:
    """When the next look of a schedule is due: once after the last one, however many runs were missed since.

    Each Stage is late by its own part of a tenth of the interval, at most ten minutes, so that Stages of one schedule
    do not all begin at once. None without a schedule, or with one that cannot be read.
    """
    if not schedule:
        return None
    try:
        cron = parse_cron(schedule)
    except ValueError:
        return None
    first = next_time(cron, record.scheduled_at or record.since)
    following = next_time(cron, first) if first is not None else None
    if first is None or following is None:
        return first
    longest = min((following - first).total_seconds() * _JITTER, _LONGEST_JITTER)
    name = hashlib.sha256(f"{record.project}/{record.stage}".encode()).digest()
    return first + timedelta(seconds=longest * int.from_bytes(name[:4]) / 2**32)


# -- the issue -------------------------------------------------------------------------------------------------


class IssueAction(StrEnum):
    """What is done to a Stage's issue."""

    OPEN = "open"
    REOPEN = "reopen"
    EDIT = "edit"
    CLOSE = "close"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class IssuePlan:
    """What is done to the issue, whether a comment says so, and the digest that counts as dismissed from now on."""

    action: IssueAction
    comment: bool = False
    dismissed: str = ""


def plan_issue(record: DriftRecord, look: StageLook, *, open_now: bool | None) -> IssuePlan:
    """What follows from a look; `open_now` tells how the issue is on GitHub, None that there is none."""
    by_person = record.open and open_now is False
    before = record.shown.digest if record.shown is not None else ""
    dismissed = before if by_person else record.dismissed
    match look.finding:
        case Finding.DRIFT:
            return _plan_drift(look.digest, before, dismissed, open_now=open_now)
        case Finding.NONE:
            if open_now:
                return IssuePlan(IssueAction.CLOSE, comment=True)
            return IssuePlan(IssueAction.LEAVE)
        case _:
            # Nothing is proven, so what was seen before stands.
            return IssuePlan(IssueAction.EDIT if open_now else IssueAction.LEAVE, dismissed=dismissed)


def _plan_drift(digest: str, before: str, dismissed: str, *, open_now: bool | None) -> IssuePlan:
    if open_now is None:
        return IssuePlan(IssueAction.OPEN)
    if open_now:
        return IssuePlan(IssueAction.EDIT, comment=bool(before) and before != digest)
    if digest == dismissed:
        return IssuePlan(IssueAction.LEAVE, dismissed=dismissed)
    return IssuePlan(IssueAction.REOPEN, comment=True)


# -- correcting ------------------------------------------------------------------------------------------------


def why_not_corrected(look: StageLook, patterns: Sequence[str]) -> str:
    """Why the bot may not open a corrective pull request by itself; empty if it may.

    Every change must be an update in place or a creation of a resource whose address a pattern selects; a plan that
    deletes, replaces, forgets or imports anything is left to people, and so is one that is not known whole.
    """
    if look.finding is not Finding.DRIFT:
        return "there is no drift"
    if not patterns:
        return "the policy corrects nothing by itself"
    if look.problem or any(state.finding is Finding.UNSEEN for state in look.states):
        return "not every state could be looked at"
    for state in look.drifted:
        if state.count > len(state.changes) + len(state.outputs):
            return f"{state.directory} has {state.count} changes, too many to be judged"
        for change in state.changes:
            reason = _why_left(change, patterns)
            if reason:
                return reason
        if not state.changes:
            return f"only outputs of {state.directory} changed"
    return ""


def _why_left(change: ResourceChange, patterns: Iterable[str]) -> str:
    if change.action not in (Action.UPDATE, Action.CREATE) or change.importing or change.moved_from:
        return f"{change.address} would not be updated or created but {change.action.value}"
    if not matches_any(patterns, change.address, compile_name_pattern):
        return f"no pattern selects {change.address}"
    return ""


def describe(record: DriftRecord | None) -> str:
    """In one sentence when the Stage was looked at and what came of it; empty if it never was."""
    look = record.last if record is not None else None
    if record is None or look is None:
        return ""
    at = f"{look.at:%Y-%m-%d %H:%M} UTC"
    issue = f", see issue #{record.issue}" if record.issue and record.open else ""
    match look.finding:
        case Finding.DRIFT:
            return f"drift of {look.count} resources or outputs, seen {at}{issue}"
        case Finding.NONE:
            return f"no drift, looked at {at}"
        case Finding.PENDING:
            pending = next(s for s in look.states if s.finding is Finding.PENDING)
            return f"nothing is known of drift, looked at {at}: {pending.reason}{issue}"
        case Finding.UNSEEN:
            unseen = (s.reason for s in look.states if s.finding is Finding.UNSEEN)
            return f"could not look for drift at {at}: {look.problem or next(unseen)}{issue}"
