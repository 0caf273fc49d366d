"""What the page of one promotion shows: a plain function of the promotion, its preview, its journal and its gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.domain.actions import Gate
from bot.domain.analysis import AnalysisRun
from bot.domain.before_merge import merge_point
from bot.domain.freight import Freight
from bot.domain.promotion import Promotion, State, StepRun, StepStatus
from bot.domain.review import Presence, Preview, StepReport
from bot.domain.view import Link, PromotionView
from bot.ports import Event
from bot.reports.committed import is_shown
from bot.reports.gates import gate_name, gate_state
from bot.reports.patches import counted, patch_text
from bot.reports.plans import apply_notes, apply_words, losses
from bot.reports.states import state_words
from bot.reports.steps import inside
from bot.reports.wording import compare_versions, plural, run_message, run_time, step_name
from bot.web.verification_part import VerificationPart, show_verification

_LOG = 200_000
_TEXT = 2_000_000
"""Characters of one text; the page says when it leaves out the rest."""
_STEP_TONES = {
    StepStatus.SUCCEEDED: ("good", "done"),
    StepStatus.SKIPPED: ("", "skipped"),
    StepStatus.RUNNING: ("busy", "running"),
    StepStatus.FAILED: ("bad", "failed"),
    StepStatus.ERRORED: ("bad", "error"),
    StepStatus.ABORTED: ("warn", "aborted"),
}
_TONES = {
    State.QUEUED: "busy",
    State.REVIEW: "wait",
    State.FULFILLING: "busy",
    State.HELD: "warn",
    State.STOPPED: "warn",
    State.SUCCEEDED: "good",
    State.FAILED: "bad",
    State.ERRORED: "bad",
    State.ABORTED: "",
}


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses on GitHub; empty where there is nothing to lead to."""

    pull: str = ""
    merge: str = ""
    release: str = ""


@dataclass(frozen=True, slots=True)
class PromotionFacts:
    """Everything that is known of one promotion, read at one time.

    `current` is the Freight that the Stage has, or had before; `gates` were looked at just now or moments ago;
    `gates_problem` tells why they are not known. `events` come newest first.
    """

    promotion: Promotion
    preview: Preview | None
    now: datetime
    runs: Mapping[str, StepRun]
    current: Freight | None
    view: PromotionView | None
    gates_problem: str
    events: tuple[Event, ...]
    links: Links
    author_links: tuple[Link, ...] = ()
    show_others: bool = False
    verifications: tuple[AnalysisRun, ...] = ()
    """What was measured after it, newest first."""


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One artifact: its name, what the Stage has, what it will have; empty where there is none."""

    name: str
    key: str
    before: str
    after: str
    changed: bool


@dataclass(frozen=True, slots=True)
class GateRow:
    """One gate with its state."""

    name: str
    open: bool
    words: str
    opens_at: datetime | None


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """One reviewer: whether the review counts, and why (not)."""

    login: str
    counted: bool
    reason: str


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step: colour, state, how long it took, what it said; the masked log if it went wrong."""

    name: str
    kind: str
    tone: str
    state: str
    took: str
    message: str
    log: str


@dataclass(frozen=True, slots=True)
class PlanPart:
    """One Terraform apply: where, what it will do, and Terraform's own text with secrets masked."""

    directory: str
    words: str
    notes: tuple[str, ...]
    text: str
    cut: int


@dataclass(frozen=True, slots=True)
class PromotionPage:
    """One promotion as somebody may see it. `busy` tells that work is under way, `ended` that nothing comes."""

    promotion: Promotion
    title: str
    tone: str
    reason: str
    busy: bool
    versions: tuple[VersionRow, ...]
    current_alias: str
    gates: tuple[GateRow, ...]
    reviews: tuple[ReviewRow, ...]
    gates_problem: str
    steps: tuple[StepRow, ...]
    problems: tuple[tuple[str, str, str], ...]
    difference: tuple[str, ...]
    warning: str
    plans: tuple[PlanPart, ...]
    prepared: str
    deferred: str
    deferred_when: str
    deferred_count: str
    others: tuple[str, ...]
    other_patches: tuple[tuple[str, str], ...]
    """Repository and branch of what is pushed elsewhere, and the patch, where it may be shown."""
    events: tuple[Event, ...]
    links: Links
    base: str
    author_links: tuple[Link, ...] = ()
    """The links of the pipeline's author for the Freight and the Stage."""
    verifications: tuple[VerificationPart, ...] = ()


def show_promotion(facts: PromotionFacts) -> PromotionPage:
    """The page of a promotion."""
    promotion, preview = facts.promotion, facts.preview
    split = preview.split if preview is not None else None
    origins = preview.origins if preview is not None else {}
    prepared = [change for commit in split.prepared for change in commit.changes] if split is not None else []
    deferred = split.deferred.changes if split is not None else ()
    lost = losses(preview) if preview is not None else []
    return PromotionPage(
        promotion=promotion,
        title=state_words(promotion),
        tone=_TONES[promotion.state],
        reason=promotion.reason,
        busy=bool(promotion.running)
        or promotion.state in (State.QUEUED, State.FULFILLING)
        or any(not run.settled for run in facts.verifications),
        versions=_versions(facts.current, promotion.freight),
        current_alias=facts.current.alias if facts.current is not None else "",
        gates=_gates(facts.view),
        reviews=_reviews(facts.view),
        gates_problem=facts.gates_problem,
        steps=tuple(_step_rows(facts)),
        problems=_problems(preview) if not promotion.state.ended or not facts.runs else (),
        difference=promotion.stop.details[:500] if promotion.stop is not None else (),
        warning=f"{plural(len(lost), 'resource')} will be deleted or replaced" if lost else "",
        plans=_plans(preview) if preview is not None else (),
        prepared=_text(patch_text(prepared, origins)),
        deferred=_text(patch_text(deferred, origins)),
        deferred_when="before the merge, by /apply" if _is_early(facts) else "after the merge",
        deferred_count=counted(deferred) if deferred else "",
        others=_others(preview),
        other_patches=_other_patches(preview, show_others=facts.show_others),
        events=facts.events,
        links=facts.links,
        author_links=facts.author_links,
        base=preview.base if preview is not None else "",
        verifications=tuple(show_verification(run) for run in facts.verifications),
    )


def _versions(current: Freight | None, freight: Freight) -> tuple[VersionRow, ...]:
    rows = []
    for change in compare_versions(current, freight):
        before, after = change.before, change.after
        rows.append(
            VersionRow(
                name=change.name,
                key=change.key,
                before=_version(before.tag, before.exact) if before is not None else "",
                after=_version(after.tag, after.exact) if after is not None else "",
                changed=change.is_change,
            )
        )
    return tuple(rows)


def _version(tag: str, exact: str) -> str:
    return f"{tag} ({exact})" if tag and exact and exact != tag else tag or exact


def _gates(view: PromotionView | None) -> tuple[GateRow, ...]:
    if view is None:
        return ()
    return tuple(_gate(gate, view) for gate in view.gates)


def _gate(gate: Gate, view: PromotionView) -> GateRow:
    opens = gate.opens_at if not gate.open else None
    return GateRow(gate_name(gate), gate.open, gate_state(gate, view), opens)


def _reviews(view: PromotionView | None) -> tuple[ReviewRow, ...]:
    verdicts = view.tally.verdicts if view is not None and view.tally is not None else ()
    return tuple(ReviewRow(v.login, v.counted, v.reason) for v in verdicts)


# -- steps -----------------------------------------------------------------------------------------------------


def _step_rows(facts: PromotionFacts) -> Sequence[StepRow]:
    preview = facts.preview
    reports = {report.alias: report for report in preview.steps} if preview is not None else {}
    rows = []
    for step in facts.promotion.steps:
        run = facts.runs.get(step.alias)
        name = step_name(step.alias, step.uses)
        if run is not None:
            rows.append(_run_row(name, step.uses, run, facts.now))
        else:
            tone, state, message = _expected(reports.get(step.alias), facts)
            rows.append(StepRow(name, step.uses, tone, state, "", message, ""))
    return rows


def _run_row(name: str, kind: str, run: StepRun, now: datetime) -> StepRow:
    tone, state = _STEP_TONES[run.status]
    bad = run.status in (StepStatus.FAILED, StepStatus.ERRORED)
    log = run.detail.get("log")
    shown = log[-_LOG:] if bad and isinstance(log, str) else ""
    return StepRow(name, kind, tone, state, run_time(run, now), run_message(run), shown)


def _expected(report: StepReport | None, facts: PromotionFacts) -> tuple[str, str, str]:
    """Colour, state and words of a step that has not run: what the preview knows of it."""
    ended, preview = facts.promotion.state.ended, facts.preview
    if report is None or preview is None:
        return "", "not run" if ended else "not looked at yet", ""
    match report.presence:
        case Presence.SKIPPED:
            return "", "skipped", report.message or "its condition does not hold"
        case Presence.ON_FAILURE:
            return "", "only after a failure", ""
        case Presence.NOT_REACHED:
            return "", "not reached", "the preview ended before it"
    if report.status in (StepStatus.FAILED, StepStatus.ERRORED):
        return "bad", "failed in the preview", report.message
    if report.index < preview.split.cut:
        return "good", "prepared", report.message
    early = _is_early(facts) and report.index < merge_point(preview)
    later = "not run" if ended else "before the merge, by /apply" if early else "after the merge"
    if report.may_stop:
        return "", later, f"may stop here if its condition holds: {report.message}"
    return "", later, "if its condition holds" if report.presence is Presence.CONDITIONAL else ""


def _is_early(facts: PromotionFacts) -> bool:
    """Whether what waits is done before the merge."""
    return facts.view is not None and facts.view.early


# -- what will be done -------------------------------------------------------------------------------------------


def _problems(preview: Preview | None) -> tuple[tuple[str, str, str], ...]:
    """What makes the preview red: step, message and masked log."""
    if preview is None:
        return ()
    found = [(p.alias, p.message, p.log[-_LOG:]) for p in preview.problems]
    return (*found, ("", preview.held, "")) if preview.held else tuple(found)


def _plans(preview: Preview) -> tuple[PlanPart, ...]:
    return tuple(
        PlanPart(
            directory=inside(preview, apply.directory),
            words=apply_words(apply),
            notes=tuple(apply_notes(apply)),
            text=_text(apply.text),
            cut=max(len(apply.text) - _TEXT, 0),
        )
        for apply in preview.applies
    )


def _text(text: str) -> str:
    return text[:_TEXT]


def _other_patches(preview: Preview | None, *, show_others: bool) -> tuple[tuple[str, str], ...]:
    if preview is None:
        return ()
    return tuple(
        (f"{patch.target.url} {patch.target.branch}", _text(patch_text(patch.changes, preview.origins)))
        for patch in preview.split.others
        if patch.changes and is_shown(patch, preview, others=show_others)
    )


def _others(preview: Preview | None) -> tuple[str, ...]:
    """What is pushed elsewhere, in counts: another repository may be less readable than this one."""
    if preview is None:
        return ()
    return tuple(
        f"pushed to `{patch.target.url}` `{patch.target.branch}`: {plural(len(patch.changes), 'file')} "
        f"({counted(patch.changes)})"
        for patch in preview.split.others
    )
