"""Check runs: `lockstep` decides the merge, `lockstep / plan` shows Terraform, one on the merge the outcome."""

from __future__ import annotations

import re

from bot.domain.files import CommitId
from bot.domain.github import Annotation, Button, CheckRun, Conclusion
from bot.domain.promotion import Promotion, State
from bot.domain.review import Preview
from bot.domain.view import PromotionView
from bot.reports.answers import render_explain
from bot.reports.comments import plan_title, render_outcome_comment, render_plan_comment
from bot.reports.fitting import CHECK_LIMIT, head_of
from bot.reports.gates import gates_title, is_ready
from bot.reports.markdown import clean, fence, plain, size, title
from bot.reports.plans import holds_data, losses
from bot.reports.states import reason_words, state_words
from bot.reports.steps import inside
from bot.reports.wording import step_name

GATE = "lockstep"
PLAN = "lockstep / plan"
PLAN_AGAIN = Button("Preview again", "Make a new preview and plan", "plan")
RETRY = Button("Retry", "Try the failed step again", "retry")
_MOST_ANNOTATIONS = 50
_MESSAGE = 60_000
_BOUNDARY = re.compile(r"(.+) \((.+):(\d+)\)", re.DOTALL)


def render_gate_check(view: PromotionView) -> CheckRun:
    """The one required check: in progress until every gate is open, never neutral while it waits."""
    preview = view.preview
    red = preview is not None and preview.is_red
    conclusion = Conclusion.FAILURE if red else Conclusion.SUCCESS if is_ready(view) else None
    match view.promotion.state:
        case State.ABORTED:
            conclusion = Conclusion.CANCELLED
        case State.FAILED | State.ERRORED:
            # It has ended before its merge: a check that stays in progress would promise that something comes.
            conclusion = Conclusion.FAILURE
        case State.STOPPED:
            # What was applied before the merge cannot be merged: people see it in red, and why.
            conclusion = Conclusion.FAILURE
    return CheckRun(
        name=GATE,
        head=_head(view),
        title=title(_gate_title(view)),
        summary=render_explain(view, limit=CHECK_LIMIT),
        conclusion=conclusion,
        external_id=f"{view.promotion.id}/{view.promotion.preview}",
        details_url=view.page,
        # GitHub shows buttons on completed runs only.
        buttons=_gate_buttons(view) if conclusion is not None else (),
    )


def _gate_title(view: PromotionView) -> str:
    preview, state = view.preview, view.promotion.state
    if state is State.STOPPED or (state.ended and state is not State.SUCCEEDED):
        return reason_words(view.promotion) or "ended"
    if preview is not None and preview.is_red:
        return preview.held or preview.problems[0].message
    return gates_title(view)


def render_plan_check(view: PromotionView) -> CheckRun:
    """What Terraform will do, with all of its text that fits; failed if the preview failed."""
    preview = view.preview
    red = preview is not None and bool(preview.problems)
    return CheckRun(
        name=PLAN,
        head=_head(view),
        title=title(plan_title(view)),
        summary=render_plan_comment(view, limit=CHECK_LIMIT, text=0) or "The preview is being made.",
        text=_plan_text(preview) if preview is not None else "",
        conclusion=Conclusion.FAILURE if red else Conclusion.SUCCESS,
        external_id=f"{view.promotion.id}/{view.promotion.preview}/plan",
        details_url=view.page,
        annotations=_annotations(preview) if preview is not None else (),
        buttons=_plan_buttons(view),
    )


def _plan_text(preview: Preview) -> str:
    """Terraform's own texts one after the other, each with an equal share of what a check takes."""
    texts = [apply for apply in preview.applies if apply.text]
    if not texts:
        return ""
    room = CHECK_LIMIT // len(texts) - 400
    if room < 500:
        return "There are too many plans to show their texts; see the promotion's page."
    parts = []
    for apply in texts:
        heading = f"Directory: {inside(preview, apply.directory)[:200]}"
        # The heading is inside the block, so that nothing in it is Markdown.
        parts.append(fence(f"{clean(heading)}\n\n{head_of(clean(apply.text), room)}"))
    whole = "\n\n".join(parts)
    return whole if size(whole) <= CHECK_LIMIT else "The plans are too long to show their texts."


def _annotations(preview: Preview) -> tuple[Annotation, ...]:
    """Problems, data that is lost and resources that deploy into the cluster, at their lines."""
    found = [
        _annotation(inside(preview, p.path), p.line, "failure", p.message, _step(preview, p.alias))
        for p in preview.problems
        if p.path and p.line
    ]
    lost = {change.address for change in losses(preview) if holds_data(change)}
    for apply in preview.applies:
        directory = inside(preview, apply.directory)
        for address, (path, line) in apply.plan.resource_lines.items() if apply.plan is not None else ():
            if address in lost:
                place = f"{directory}/{path}" if directory not in ("", ".") else path
                said = f"{address} is deleted or replaced, and is of a kind that holds data, keys or rights"
                found.append(_annotation(place, line, "warning", said, "Data may be lost"))
        for where in apply.boundary:
            match = _BOUNDARY.fullmatch(where)
            if match is not None:
                said = f"{match[1]} is deployed into the cluster by Terraform, where Argo CD deploys, too"
                found.append(
                    _annotation(inside(preview, match[2]), int(match[3]), "warning", said, "Boundary")
                )
    return tuple(found[:_MOST_ANNOTATIONS])


def _step(preview: Preview, alias: str) -> str:
    return step_name(alias, next((step.kind for step in preview.steps if step.alias == alias), ""))


def _annotation(path: str, line: int, level: str, message: str, heading: str) -> Annotation:
    return Annotation(path, line, level, head_of(clean(message), _MESSAGE), title=title(heading))


def render_outcome_check(view: PromotionView) -> CheckRun:
    """How the merge is carried out, on the merge commit."""
    promotion = view.promotion
    conclusions = {
        State.SUCCEEDED: Conclusion.SUCCESS,
        State.FAILED: Conclusion.FAILURE,
        State.ERRORED: Conclusion.FAILURE,
        State.ABORTED: Conclusion.CANCELLED,
        State.STOPPED: Conclusion.FAILURE,
        State.HELD: Conclusion.ACTION_REQUIRED,
    }
    done = promotion.state is State.SUCCEEDED
    said = state_words(promotion) if done else reason_words(promotion, view.waiting) or state_words(promotion)
    retry = promotion.state in (State.FAILED, State.ERRORED) and promotion.blocked
    return CheckRun(
        name=f"{GATE} / {promotion.stage}",
        head=promotion.merge_commit or _head(view),
        title=title(said),
        summary=render_outcome_comment(view, limit=CHECK_LIMIT),
        conclusion=conclusions.get(promotion.state),
        external_id=f"{promotion.id}/outcome",
        details_url=view.page,
        buttons=(RETRY,) if retry else (),
    )


def render_refused_check(promotion: Promotion, preview: Preview, page: str) -> CheckRun:
    """Why there is nothing to review: half a change is never shown, so this stands on the target branch's tip."""
    problem = preview.problems[0]
    freight = f"{plain(promotion.freight.alias)} cannot be brought to {plain(promotion.stage)}"
    again = "It is tried again when the configuration or one of the files that it touches changes."
    said = f"{freight}, and no pull request is opened: {plain(problem.message)}\n\n{again}"
    return CheckRun(
        name=f"{GATE} / {promotion.stage}",
        head=preview.base,
        title=title(problem.message),
        summary=said,
        conclusion=Conclusion.FAILURE,
        external_id=f"{promotion.id}/{promotion.preview}/refused",
        details_url=page,
        annotations=_annotations(preview),
    )


def _plan_buttons(view: PromotionView) -> tuple[Button, ...]:
    """A new preview may be asked for while the pull request is open."""
    return (PLAN_AGAIN,) if view.promotion.state is State.REVIEW else ()


def _gate_buttons(view: PromotionView) -> tuple[Button, ...]:
    """A step that failed before the merge may be tried again there."""
    stop = view.promotion.stop
    if view.promotion.state is State.STOPPED and stop is not None and stop.failed:
        return (RETRY,)
    return _plan_buttons(view)


def _head(view: PromotionView) -> CommitId:
    return view.promotion.head or CommitId("")
