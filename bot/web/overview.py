"""What the first page shows of one project: a plain function of what is remembered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from bot.domain.actions import Snapshot, StartPromotion, Wait
from bot.domain.analysis import AnalysisRun, Phase, describe_run
from bot.domain.availability import FreightIndex, KnownFreight
from bot.domain.discovery import Discovery, Find
from bot.domain.drift import DriftRecord, Finding
from bot.domain.drift import describe as describe_drift
from bot.domain.freight import Freight, FreightName
from bot.domain.model import DeepLink, ProjectConfig, Stage
from bot.domain.planning import plan
from bot.domain.promotion import State
from bot.domain.resources import freight_resource, stage_resource
from bot.domain.review_policy import ReviewPolicy
from bot.domain.values import Json
from bot.domain.view import Link
from bot.expressions.links import resolve_links
from bot.ports import Event, PromotionLine, StageRecord
from bot.reports.wording import versions_of
from bot.workflow.candidates import choose_candidate, describe_difference, progress_of
from bot.workflow.proofs import explain_verifications, verifying

MOST_FREIGHT = 12
MOST_EVENTS = 40
MOST_FINDS = 5
"""How many versions of a subscription are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """Everything that is remembered of a project, read at one time.

    `stages` are in the order in which Freight passes them; `index` is over `freight`; `promotions` are the newest of
    each Stage, newest first; `problem_of` tells why a Stage cannot be carried out.
    """

    name: str
    now: datetime
    stages: tuple[Stage, ...]
    config: ProjectConfig | None
    freight: tuple[KnownFreight, ...]
    index: FreightIndex
    records: Mapping[str, StageRecord]
    promotions: Mapping[str, tuple[PromotionLine, ...]]
    events: tuple[Event, ...]
    problem_of: Callable[[str], str]
    discoveries: Mapping[str, tuple[Discovery, datetime]] = field(default_factory=dict)
    """The last look at each Warehouse, and when that was."""
    freight_links: tuple[DeepLink, ...] = ()
    stage_links: tuple[DeepLink, ...] = ()
    runs: Mapping[str, AnalysisRun] = field(default_factory=dict)
    """By Stage the verification of what it has now."""
    drifts: Mapping[str, DriftRecord] = field(default_factory=dict)
    """By Stage what was seen of drift."""


@dataclass(frozen=True, slots=True)
class Carried:
    """One piece of Freight that a Stage has: its alias and what is in it, tag and exact revision by name."""

    alias: str
    versions: tuple[tuple[str, str, str], ...]
    verified: bool = False


@dataclass(frozen=True, slots=True)
class StageCard:
    """One Stage of the graph. `column` is its distance from the Warehouses, `tone` its colour.

    `waits` says why nothing goes on, with a time or a name in it; `until` when time alone will change that.
    """

    name: str
    column: int
    sources: tuple[str, ...]
    carried: tuple[Carried, ...]
    since: datetime | None
    tone: str
    state: str
    waits: str
    until: datetime | None
    notes: tuple[str, ...]
    promotion: PromotionLine | None
    last: PromotionLine | None
    drift: str = ""
    """When it was last looked at for drift, and what came of that; empty if it never was."""
    drifted: bool = False
    links: tuple[Link, ...] = ()
    verification: str = ""
    """What the newest verification says of what the Stage has, empty if it was successful or there is none."""


@dataclass(frozen=True, slots=True)
class FreightRow:
    """One piece of Freight and how far it is."""

    alias: str
    origin: str
    versions: tuple[tuple[str, str, str], ...]
    discovered_at: datetime
    now_in: tuple[str, ...]
    verified_in: tuple[str, ...]
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class FindsRow:
    """What one subscription offers: versions and exact revisions, newest first, and how many more there are."""

    kind: str
    address: str
    name: str
    finds: tuple[Find, ...]
    more: int
    note: str


@dataclass(frozen=True, slots=True)
class WarehouseRow:
    """One Warehouse: what it found at its last look, and what came of that."""

    name: str
    looked_at: datetime
    outcome: str
    subscriptions: tuple[FindsRow, ...]


@dataclass(frozen=True, slots=True)
class ProjectPage:
    """One project as somebody may see it. `open` tells that a promotion is, `busy` that work is under way right now."""

    name: str
    columns: tuple[tuple[StageCard, ...], ...]
    freight: tuple[FreightRow, ...]
    warehouses: tuple[WarehouseRow, ...]
    events: tuple[Event, ...]
    hidden: int
    open: bool
    busy: bool
    problems: tuple[str, ...] = ()
    """Why links of the pipeline's author are left out."""


def show_project(facts: ProjectFacts, visible: frozenset[str]) -> ProjectPage:
    """The project with the Stages of these names; the others are only counted."""
    shown = [stage for stage in facts.stages if stage.metadata.name in visible]
    columns = _columns(facts.stages)
    by_name = {known.freight.name: known for known in facts.freight}
    problems: dict[str, None] = {}
    cards = [
        replace(
            _card(stage, columns[stage.metadata.name], facts, by_name, visible),
            links=_links(facts.stage_links, "stage", stage_resource(stage), problems),
        )
        for stage in shown
    ]
    newest = sorted(facts.freight, key=lambda known: known.freight.discovered_at, reverse=True)
    # What happened to the project as a whole names no Stage.
    events = [event for event in facts.events if not event.stage or event.stage in visible]
    used = sorted({card.column for card in cards})
    return ProjectPage(
        name=facts.name,
        columns=tuple(tuple(c for c in cards if c.column == number) for number in used),
        freight=tuple(
            replace(
                _freight_row(known, visible),
                links=_links(facts.freight_links, "freight", freight_resource(known.freight), problems),
            )
            for known in newest[:MOST_FREIGHT]
        ),
        warehouses=tuple(
            _warehouse_row(name, *facts.discoveries[name])
            for name in sorted({r.origin.name for stage in shown for r in stage.requested_freight})
            if name in facts.discoveries
        ),
        events=tuple(events[:MOST_EVENTS]),
        hidden=len(facts.stages) - len(shown),
        open=any(c.promotion is not None for c in cards),
        busy=any(c.promotion is not None and _is_busy(c.promotion) for c in cards)
        or any(not run.settled and name in visible for name, run in facts.runs.items()),
        problems=tuple(problems),
    )


def _links(
    links: Sequence[DeepLink], name: str, resource: dict[str, Json], problems: dict[str, None]
) -> tuple[Link, ...]:
    """The links that hold for a resource; each reason why one does not is noted once."""
    found, wrong = resolve_links(links, {name: resource})
    problems.update(dict.fromkeys(wrong))
    return found


def _is_busy(promotion: PromotionLine) -> bool:
    return bool(promotion.running) or promotion.state in (State.QUEUED, State.FULFILLING)


def _columns(stages: Sequence[Stage]) -> dict[str, int]:
    """How many Stages Freight passes before each; the Stages come in an order in which sources stand first."""
    found: dict[str, int] = {}
    for stage in stages:
        before = [found[name] + 1 for name in _upstream(stage) if name in found]
        found[stage.metadata.name] = max(before, default=0)
    return found


def _upstream(stage: Stage) -> tuple[str, ...]:
    names = [name for request in stage.requested_freight for name in request.sources.stages]
    return tuple(dict.fromkeys(names))


def _card(
    stage: Stage,
    column: int,
    facts: ProjectFacts,
    by_name: Mapping[FreightName, KnownFreight],
    visible: frozenset[str],
) -> StageCard:
    name = stage.metadata.name
    record = facts.records.get(name, StageRecord(facts.name, name))
    lines = facts.promotions.get(name, ())
    current = next((line for line in lines if not line.state.ended), None)
    waits, until = _waits(stage, facts, record, lines)
    items = record.items.values()
    carried = [_carried(by_name[item], name) for item in items if item in by_name]
    direct = [str(r.origin.name) for r in stage.requested_freight if r.sources.direct]
    run, drift = facts.runs.get(name), facts.drifts.get(name)
    tone, state = _state(current, lines, record, run)
    return StageCard(
        name=name,
        column=column,
        sources=(*(n for n in _upstream(stage) if n in visible), *direct),
        carried=tuple(carried),
        since=record.since,
        tone=tone,
        state=state,
        waits=waits,
        until=until,
        notes=tuple(note for note in _notes(record) if note != waits),
        promotion=current,
        last=next((line for line in lines if line.state.ended), None),
        drift=describe_drift(drift),
        drifted=drift is not None and drift.last is not None and drift.last.finding is Finding.DRIFT,
        verification=describe_run(run) if run is not None and run.phase is not Phase.SUCCESSFUL else "",
    )


def _carried(known: KnownFreight, stage: str) -> Carried:
    return Carried(known.freight.alias, _versions(known.freight), stage in known.status.verified_in)


def _versions(freight: Freight) -> tuple[tuple[str, str, str], ...]:
    return tuple((v.name, v.tag, v.exact) for v in versions_of(freight))


def _notes(record: StageRecord) -> tuple[str, ...]:
    notes = [f"frozen: {record.frozen}"] if record.frozen else []
    notes += [
        f"on hold: {hold.reason or 'somebody promoted other Freight'}" for hold in record.holds.values()
    ]
    notes += [record.differs] if record.differs else []
    return tuple(notes)


def _waits(
    stage: Stage, facts: ProjectFacts, record: StageRecord, lines: Sequence[PromotionLine]
) -> tuple[str, datetime | None]:
    """Why nothing goes on in a Stage: the same decision as the engine's, on what is remembered."""
    name = stage.metadata.name
    if stage.is_control_flow:
        return "passes available Freight on", None
    current = next((line for line in lines if not line.state.ended), None)
    if current is not None:
        return current.reason, None
    last = next(iter(lines), None)
    if last is not None and last.blocked and not record.frozen:
        said = f"the last promotion failed after its merge: {last.reason}"
        return f"{said}. `/retry` or `/rollback {name}` on its pull request.", None
    ended = [(line.freight.name, line.state) for line in lines]
    progress = progress_of(record, None, ended)
    found = choose_candidate(stage, facts.config, progress, facts.index, facts.now)
    if record.differs and found[0] is not None:
        found = None, describe_difference(name, record.differs), None
    candidate, why, at = explain_verifications(stage, facts.runs, found)
    seen = Snapshot(
        now=facts.now,
        project=facts.name,
        stage=stage,
        policy=ReviewPolicy(),
        candidate=candidate,
        candidate_reason=why,
        candidate_at=at,
        frozen=record.frozen,
        problem=facts.problem_of(name),
        verifying=verifying(facts.runs.get(name)),
    )
    match plan(seen):
        case Wait(reason=reason, until=until):
            return reason, until
        case StartPromotion(freight=freight):
            return f"{freight.alias} is next", None
        case _:
            return "", None


_WORDS = {
    State.QUEUED: ("busy", "being previewed"),
    State.REVIEW: ("wait", "in review"),
    State.FULFILLING: ("busy", "being carried out"),
    State.HELD: ("warn", "held"),
    State.STOPPED: ("warn", "stopped"),
    State.SUCCEEDED: ("good", "done"),
    State.FAILED: ("bad", "failed"),
    State.ERRORED: ("bad", "failed"),
    State.ABORTED: ("", "ended"),
}


def state_words(state: State) -> tuple[str, str]:
    """A state's colour and words."""
    return _WORDS[state]


_VERIFICATIONS = {
    Phase.PENDING: ("busy", "being verified"),
    Phase.RUNNING: ("busy", "being verified"),
    Phase.SUCCESSFUL: ("good", "verified"),
    Phase.INCONCLUSIVE: ("warn", "inconclusive"),
    Phase.ERROR: ("warn", "verification error"),
    Phase.FAILED: ("bad", "verification failed"),
    Phase.ABORTED: ("warn", "verification aborted"),
}


def phase_words(phase: Phase) -> tuple[str, str]:
    """A verification's colour and words."""
    return _VERIFICATIONS[phase]


def _state(
    current: PromotionLine | None,
    lines: Sequence[PromotionLine],
    record: StageRecord,
    run: AnalysisRun | None,
) -> tuple[str, str]:
    if current is not None:
        return _WORDS[current.state]
    last = next(iter(lines), None)
    if last is not None and (last.blocked or last.state in (State.FAILED, State.ERRORED)):
        return _WORDS[last.state]
    if record.frozen:
        return "warn", "frozen"
    if run is not None and run.phase is not Phase.SUCCESSFUL:
        return _VERIFICATIONS[run.phase]
    return ("good", "idle") if record.history else ("", "empty")


def _freight_row(known: KnownFreight, visible: frozenset[str]) -> FreightRow:
    status = known.status
    return FreightRow(
        alias=known.freight.alias,
        origin=known.freight.origin.name,
        versions=_versions(known.freight),
        discovered_at=known.freight.discovered_at,
        now_in=tuple(name for name in status.currently_in if name in visible),
        verified_in=tuple(name for name in status.verified_in if name in visible),
    )


def _warehouse_row(name: str, discovery: Discovery, looked_at: datetime) -> WarehouseRow:
    rows = (
        FindsRow(
            kind=item.kind,
            address=item.address,
            name=item.name,
            finds=item.finds[:MOST_FINDS],
            more=max(len(item.finds) - MOST_FINDS, 0),
            note=item.note,
        )
        for item in discovery.finds
    )
    return WarehouseRow(name, looked_at, discovery.outcome, tuple(rows))
