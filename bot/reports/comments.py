"""The two sticky comments: the plan before the merge, the outcome after it."""

from __future__ import annotations

import re

from bot.domain.follow_up import follow_up_of
from bot.domain.promotion import Promotion, State, StepRun, StepStatus
from bot.domain.review import Presence, Preview, Problem, StepReport
from bot.domain.step_kinds import StepClass
from bot.domain.view import PromotionView
from bot.reports.body import render_problem
from bot.reports.fitting import COMMENT_LIMIT, Section, fit, head_of, tail_of
from bot.reports.gates import all_missing
from bot.reports.markdown import bullets, caution, clean, code, details, fence, html_code, plain, table
from bot.reports.plans import apply_sections, apply_title, counts_line
from bot.reports.states import headline, reason_words
from bot.reports.steps import inside
from bot.reports.wording import moment, plural, run_message, run_time, step_name

_ICONS = {
    StepStatus.SUCCEEDED: "✅",
    StepStatus.SKIPPED: "➖",
    StepStatus.RUNNING: "⏳",
    StepStatus.FAILED: "❌",
    StepStatus.ERRORED: "❌",
    StepStatus.ABORTED: "⛔",
}
_BAD = (StepStatus.FAILED, StepStatus.ERRORED, StepStatus.ABORTED)
_PLAN_TEXT = 40_000
"""Bytes of Terraform's own text in one comment, shared by all applies."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


# -- the plan ------------------------------------------------------------------------------------------------------


def render_plan_comment(view: PromotionView, *, limit: int = COMMENT_LIMIT, text: int = _PLAN_TEXT) -> str:
    """Counts, what is lost, a row a resource, then Terraform's own words (`text` bytes of them); empty without preview.

    What does not fit the limit is given up in this order: Terraform's words, values, resources, names; counts stay.
    """
    preview = view.preview
    if preview is None:
        return ""
    promotion = view.promotion
    sections = [Section((f"### Plan for {plain(promotion.project)}/{plain(promotion.stage)}",))]
    for problem in preview.problems[:10]:
        sections += problem_sections(problem, preview)
    applies = preview.applies
    texts = sum(bool(apply.text) for apply in applies)
    for apply in applies:
        directory = inside(preview, apply.directory)
        sections += apply_sections(apply, directory, text // max(texts, 1))
    if not applies and not preview.problems:
        sections.append(Section(("Nothing in this promotion is Terraform's.",)))
    sections.append(Section((_plan_foot(preview),)))
    return fit(sections, limit)


def plan_title(view: PromotionView) -> str:
    """`4 to create, 3 outputs in env/staging/terraform`, or the first problem; prose for a title."""
    preview = view.preview
    if preview is None:
        return "the preview is being made"
    if preview.problems:
        return preview.problems[0].message
    if not preview.applies:
        return "no Terraform in this promotion"
    return "; ".join(apply_title(apply, inside(preview, apply.directory)) for apply in preview.applies[:20])


def render_counts(view: PromotionView) -> str:
    """Numbers alone, without any text from outside: what can be shown where nothing else may be or can be rendered."""
    applies = view.preview.applies if view.preview is not None else ()
    lines = [
        f"Apply {number}: {counts_line(apply.plan) if apply.plan is not None else 'no plan'}."
        for number, apply in enumerate(applies[:100], start=1)
    ]
    return bullets(lines, 100) or "Nothing in this promotion is Terraform's."


def problem_sections(problem: Problem, preview: Preview) -> list[Section]:
    """What went wrong outside of the fold, Terraform's log inside of it."""
    sections = [Section((render_problem(problem, preview),))]
    if problem.log:
        log = clean(problem.log)
        fold = "Terraform's own text"
        sections.append(
            Section(
                (
                    details(fold, fence(tail_of(log, 20_000)), opened=True),
                    details(fold, fence(tail_of(log, 4_000)), opened=True),
                    "",
                )
            )
        )
    return sections


def _plan_foot(preview: Preview) -> str:
    return (
        f"Preview {code(preview.digest)}, made {moment(preview.made_at)} on {code(preview.base[:12])}. "
        "An approval counts for exactly this; `/plan` makes a new one."
    )


# -- the outcome ---------------------------------------------------------------------------------------------------


def render_outcome_comment(view: PromotionView, *, limit: int = COMMENT_LIMIT) -> str:
    """How far the promotion is, after its merge or ahead of it, step by step, and what a person can do next."""
    promotion = view.promotion
    sections = [Section((f"### {headline(promotion)}",)), Section((_lead(view),))]
    if promotion.state is State.STOPPED:
        sections.append(_difference(promotion))
    sections.append(Section((_next(view),)))
    if view.outcome.runs:
        rows = table(["", "Step", "Took", "What"], step_rows(view))
        sections.append(Section((rows, rows, _steps_count(view))))
    sections += [_log(run) for run in view.outcome.runs.values() if run.status in _BAD]
    sections.append(Section((_closing(view),)))
    return fit(sections, limit)


def _lead(view: PromotionView) -> str:
    promotion = view.promotion
    if promotion.state is State.SUCCEEDED:
        ended = promotion.finished_at
        return f"Done {moment(ended)}." if ended is not None else ""
    said = reason_words(promotion, view.waiting)
    failed = promotion.state in (State.FAILED, State.ERRORED, State.STOPPED, State.HELD)
    return (caution([plain(said)]) if failed else plain(said)) if said else ""


def _difference(promotion: Promotion) -> Section:
    stop = promotion.stop
    if stop is None or not stop.details:
        return Section(("",))
    lines = [clean(line).replace("\n", "\\n")[:500] for line in stop.details]
    lead = "What differs from what was approved:"
    full, short = "\n".join(lines[:200]), "\n".join(lines[:20])
    count = f"{plural(len(lines), 'difference')} from what was approved."
    return Section((f"{lead}\n\n{fence(full)}", f"{lead}\n\n{fence(short)}", count))


def _next(view: PromotionView) -> str:
    """What a person can do now, with the exact commands; empty where nobody needs to do anything."""
    promotion = view.promotion
    stage = promotion.stage
    back = f"{code(f'/rollback {stage}')} brings back the Freight that was verified in {plain(stage)} before."
    match promotion.state:
        case State.FAILED | State.ERRORED if promotion.blocked:
            items = [
                "`/retry` tries the failed step again; steps that are done are not repeated.",
                back,
                f"{code(f'/promote {stage}')} takes the newest Freight instead.",
            ]
            return (
                f"{plain(stage)} takes nothing new by itself until somebody decides:\n\n{bullets(items, 9)}"
            )
        case State.STOPPED if promotion.is_ahead and promotion.stop is not None and not promotion.stop.digest:
            again = "`/retry` tries the failed step again; steps that are done are not repeated."
            items = [again] if promotion.stop.failed else []
            freight = promotion.freight.alias or promotion.freight.name
            items += [
                "`/plan` makes a new preview on what is there now; it is approved, and applied, anew.",
                f"{code(f'/promote {stage} {freight}')} does that, too, without commits of people on the branch.",
                "`/cancel`, or closing the pull request, ends it; what was applied stays applied.",
                back,
            ]
            return f"Nothing is merged until somebody decides:\n\n{bullets(items, 9)}"
        case State.STOPPED:
            digest = promotion.stop.digest if promotion.stop is not None else ""
            accept = f"{code(f'/apply {digest}')} by an approver accepts exactly this."
            items = [*([accept] if digest else []), back, _undo(promotion)]
            return f"Nothing later runs until somebody decides:\n\n{bullets(items, 9)}"
        case State.HELD:
            accept = f"{code(f'/apply {promotion.digest}')} by an approver lets it run as it was previewed."
            waits = (
                f": it waits for {plain(all_missing(view))}" if any(not g.open for g in view.gates) else ""
            )
            items = [f"It goes on by itself when every gate is open{waits}."]
            items += [accept] if promotion.digest else []
            return f"Somebody merged although a gate was closed:\n\n{bullets([*items, back], 9)}"
        case _:
            return ""


def _undo(promotion: Promotion) -> str:
    if promotion.is_ahead:
        return "`/cancel`, or closing the pull request, ends it; what was applied stays applied."
    return "Reverting the merge ends it, too."


def step_rows(view: PromotionView) -> list[list[str]]:
    """The steps that run after the merge as icon, name, time and words: those that began, and those that wait."""
    promotion, preview = view.promotion, view.preview
    known = {report.alias: report for report in preview.steps} if preview is not None else {}
    cut = preview.split.cut if preview is not None else 0
    rows = []
    for step in promotion.steps:
        run, report = view.outcome.runs.get(step.alias), known.get(step.alias)
        name = code(step_name(step.alias, step.uses), 80)
        if run is not None and _is_quiet(run, report):
            continue
        if run is not None:
            # A commit is dated by its first beginning and made anew in every pass: between them lies no work.
            commits = report is not None and report.step_class is StepClass.COMMIT
            took = "" if commits else run_time(run, view.now)
            rows.append([_ICONS[run.status], name, took, plain(run_message(run), 400)])
        elif report is not None and report.index >= cut and report.presence is not Presence.SKIPPED:
            on_failure = report.presence is Presence.ON_FAILURE
            if not (on_failure or promotion.state is State.SUCCEEDED):
                rows.append(["▫️", name, "", "not run" if promotion.state.ended else "waits for its turn"])
    return rows


def _is_quiet(run: StepRun, report: StepReport | None) -> bool:
    """Whether it only read something and that went well, such as a clone."""
    reads = report is not None and report.step_class in (StepClass.READ, StepClass.PURE)
    return reads and run.status is StepStatus.SUCCEEDED


def _steps_count(view: PromotionView) -> str:
    runs = view.outcome.runs.values()
    done = sum(run.status in (StepStatus.SUCCEEDED, StepStatus.SKIPPED) for run in runs)
    return f"{done:,} of {plural(len(view.promotion.steps), 'step')} done."


def _log(run: StepRun) -> Section:
    log = run.detail.get("log")
    if not isinstance(log, str) or not log.strip():
        return Section(("",))
    summary = f"Log of {html_code(step_name(run.alias, run.kind))}"
    shown = clean(log)
    return Section(
        (
            details(summary, fence(tail_of(shown, 20_000)), opened=True),
            details(summary, fence(tail_of(shown, 6_000)), opened=True),
            details(summary, fence(head_of(tail_of(shown, 1_500), 1_500)), opened=True),
            "",
        )
    )


def _closing(view: PromotionView) -> str:
    """The commits and the follow-up of this release, which GitHub links by itself, and the page with everything."""
    promotion = view.promotion
    parts = []
    for name, commit in (("Merge", promotion.merge_commit), ("release commit", promotion.release_commit)):
        if commit:
            parts.append(f"{name} {commit if _COMMIT.fullmatch(commit) else code(commit)}")
    # The number alone, written so that GitHub links it.
    numbers = [number for run in view.outcome.runs.values() if (number := follow_up_of(run.detail))]
    parts += [f"follow-up pull request #{number}" for number in dict.fromkeys(numbers)]
    if view.page:
        parts.append(f"[details]({view.page})")
    return " · ".join(parts)
