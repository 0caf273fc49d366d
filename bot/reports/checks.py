"""Check runs: `lockstep` decides the merge, `lockstep / plan` shows Terraform, one on the merge the outcome."""

from __future__ import annotations

from bot.domain.files import CommitId
from bot.domain.github import Annotation, CheckRun, Conclusion
from bot.domain.promotion import State
from bot.domain.view import PromotionView
from bot.reports.comments import render_explain, render_outcome_comment, render_plan_comment
from bot.reports.markdown import CHECK_LIMIT, shorten
from bot.reports.plans import apply_line

GATE = "lockstep"
PLAN = "lockstep / plan"
_TITLE = 250


def render_gate_check(view: PromotionView) -> CheckRun:
    """The one required check: in progress until every gate is open, never neutral while it waits."""
    preview = view.preview
    red = preview is not None and preview.is_red
    ready = preview is not None and not red and bool(view.gates) and all(gate.open for gate in view.gates)
    conclusion = Conclusion.FAILURE if red else Conclusion.SUCCESS if ready else None
    if view.promotion.state is State.ABORTED:
        conclusion = Conclusion.CANCELLED
    title = "Every gate is open" if ready else view.waiting or "Looking"
    return CheckRun(
        name=GATE,
        head=_head(view),
        title=title[:_TITLE],
        summary=shorten(render_explain(view), CHECK_LIMIT),
        conclusion=conclusion,
        external_id=f"{view.promotion.id}/{view.promotion.preview}",
        details_url=view.page,
    )


def render_plan_check(view: PromotionView) -> CheckRun:
    """What Terraform will do; failed if the plan failed."""
    preview = view.preview
    problems = preview.problems if preview is not None else ()
    applies = preview.applies if preview is not None else ()
    if problems:
        title, conclusion = problems[0].message, Conclusion.FAILURE
    elif not applies:
        title, conclusion = "No Terraform in this promotion", Conclusion.SUCCESS
    else:
        title, conclusion = (
            "; ".join(apply_line(apply).replace("`", "") for apply in applies),
            Conclusion.SUCCESS,
        )
    annotations = tuple(
        Annotation(p.path, p.line, "failure", p.message[:600], title=p.alias[:250])
        for p in problems
        if p.path and p.line
    )
    return CheckRun(
        name=PLAN,
        head=_head(view),
        title=title[:_TITLE] or "Plan",
        summary=shorten(render_plan_comment(view), CHECK_LIMIT),
        conclusion=conclusion,
        external_id=f"{view.promotion.id}/{view.promotion.preview}/plan",
        details_url=view.page,
        annotations=annotations[:50],
    )


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
    return CheckRun(
        name=f"{GATE} / {promotion.stage}",
        head=promotion.merge_commit or _head(view),
        title=(promotion.reason or view.waiting or "under way")[:_TITLE],
        summary=shorten(render_outcome_comment(view), CHECK_LIMIT),
        conclusion=conclusions.get(promotion.state),
        external_id=f"{promotion.id}/outcome",
        details_url=view.page,
    )


def _head(view: PromotionView) -> CommitId:
    return view.promotion.head or CommitId("")
