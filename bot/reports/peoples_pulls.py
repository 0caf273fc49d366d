"""What a person's own pull request shows: its required check, the plan of every Stage that it changes, a comment."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.approvals import Tally
from bot.domain.files import CommitId
from bot.domain.github import Button, CheckRun, Conclusion, PullNumber
from bot.domain.promotion import Promotion
from bot.domain.review import Preview
from bot.domain.view import PromotionView
from bot.reports.bystanders import render_touching_check
from bot.reports.checks import PLAN, PLAN_AGAIN
from bot.reports.comments import problem_sections
from bot.reports.committed import deferred_section
from bot.reports.fitting import CHECK_LIMIT, COMMENT_LIMIT, Section, fit
from bot.reports.markdown import caution, code, plain, title
from bot.reports.plans import apply_sections, apply_title
from bot.reports.steps import inside, merge_steps, numbered
from bot.reports.wording import moment, plural

PLAN_HEAD = Button("Plan this commit", "Run Terraform's plan on this commit", "plan")
_TEXT = 40_000
"""Bytes of Terraform's own text in one comment, shared by the plans of all Stages."""


@dataclass(frozen=True, slots=True)
class PlannedLine:
    """One Stage on a person's pull request: its preview for the present head, or why there is none (`waits`)."""

    project: str
    stage: str
    freight: str
    preview: Preview | None = None
    differs: str = ""
    idle: bool = False
    waits: str = ""
    promotion: Promotion | None = None
    """The re-promotion as it would begin."""
    follow_up: bool = False
    """Whether what it commits comes back by a follow-up pull request."""

    @property
    def is_red(self) -> bool:
        """Whether the plan, or what comes after it, is known to fail."""
        return self.preview is not None and bool(self.preview.problems) and not self.differs

    @property
    def is_ready(self) -> bool:
        """Whether there is something to approve."""
        return self.preview is not None and not self.is_red

    @property
    def said(self) -> str:
        """What becomes of the Stage, in one sentence of prose."""
        preview = self.preview
        if preview is None:
            return self.waits or "its plan is being made"
        if self.differs:
            return f"this undoes what {self.freight} wrote; nothing is applied after the merge"
        if self.is_red:
            return preview.problems[0].message
        if self.idle:
            return "Terraform's inputs stay those that are applied"
        return "; ".join(apply_title(a, inside(preview, a.directory)) for a in preview.applies[:5])


@dataclass(frozen=True, slots=True)
class PullView:
    """Everything that is said about a person's pull request, read just now.

    `touched` are Stages, each with a path (or a reason) that says so; `lines` those that are previewed, in pipeline
    order. `waits` says why nothing is previewed (a fork nobody vouches for), `button` that one may be pressed for it.
    """

    number: PullNumber
    head: CommitId
    touched: tuple[tuple[str, str], ...]
    tallies: tuple[Tally, ...]
    lines: tuple[PlannedLine, ...] = ()
    waits: str = ""
    button: bool = False


def render_own_check(view: PullView) -> CheckRun:
    """The required check: green once every plan is there and approved, red with the first that fails."""
    check = render_touching_check(view.number, view.head, view.touched, view.tallies)
    red = next((line for line in view.lines if line.is_red), None)
    late = next((line for line in view.lines if not line.is_ready and not line.is_red), None)
    lines = "\n".join(f"- {plain(line.stage)}: {plain(line.said, 500)}" for line in view.lines)
    summary = f"{check.summary}\n\nWhat the merge sets off:\n\n{lines}" if lines else check.summary
    said, conclusion = check.title, check.conclusion
    if red is not None:
        said, conclusion = f"{red.stage}: {red.said}", Conclusion.FAILURE
    elif late is not None:
        said, conclusion = view.waits or f"{late.stage}: {late.said}", None
    return CheckRun(
        name=check.name,
        head=view.head,
        title=title(said),
        summary=fit([Section((summary, check.summary))], CHECK_LIMIT),
        conclusion=conclusion,
        external_id=f"pull/{view.number}",
    )


def render_own_plan_check(view: PullView) -> CheckRun:
    """`lockstep / plan` of a person's pull request: in progress while plans are made; it asks where somebody must."""
    red = any(line.is_red for line in view.lines)
    ready = all(line.is_ready for line in view.lines)
    conclusion = Conclusion.FAILURE if red else Conclusion.SUCCESS if ready else None
    if view.button and conclusion is None:
        conclusion = Conclusion.ACTION_REQUIRED
    said = view.waits or "; ".join(f"{line.stage}: {line.said}" for line in view.lines)
    buttons = () if conclusion is None else (PLAN_HEAD if view.button else PLAN_AGAIN,)
    return CheckRun(
        name=PLAN,
        head=view.head,
        title=title(said),
        summary=render_own_comment(view, limit=CHECK_LIMIT, text=0),
        conclusion=conclusion,
        external_id=f"pull/{view.number}/plan",
        buttons=buttons,
    )


def render_own_comment(view: PullView, *, limit: int = COMMENT_LIMIT, text: int = _TEXT) -> str:
    """A section a Stage, in the order in which they would be re-promoted; the last ones give up detail first."""
    sections = [Section(("### What the merge of this pull request sets off",))]
    if view.waits:
        sections.append(Section((plain(view.waits),)))
    shares = sum(len(line.preview.applies) for line in view.lines if line.preview is not None)
    for line in view.lines:
        sections += _sections(line, text // max(shares, 1))
    sections.append(Section((_foot(view),)))
    return fit(sections, limit)


def _sections(line: PlannedLine, room: int) -> list[Section]:
    name = f"#### {plain(line.project)}/{plain(line.stage)}"
    freight, preview = plain(line.freight), line.preview
    if preview is None:
        return [Section((f"{name}\n\n{plain(line.said, 500)}",))]
    if line.differs:
        undone = (
            f"This undoes what Freight {freight} wrote: {plain(line.differs, 500)}. Nothing is applied after the "
            f"merge: {plain(line.stage)} then differs from its Freight, and takes nothing by itself until they agree."
        )
        return [Section((f"{name}\n\n{caution([undone])}",))]
    if line.idle:
        return [Section((f"{name}\n\n{plain(line.said)}: nothing is applied after the merge.",))]
    lead = f"After the merge Freight {freight}, which {plain(line.stage)} has, is promoted there once more:"
    sections = [Section((f"{name}\n\n{lead}",))]
    for problem in preview.problems[:5]:
        sections += problem_sections(problem, preview)
    for apply in preview.applies:
        sections += apply_sections(apply, inside(preview, apply.directory), room)
    made = f"Preview {code(preview.digest)}, made {moment(preview.made_at)} on {code(preview.base[:12])}."
    return [*sections, *_follows(line, preview), Section((made,))]


def _follows(line: PlannedLine, preview: Preview) -> list[Section]:
    """What is committed then, and every step that runs, in order: effects are repeated like everything else."""
    if line.promotion is None:
        return []
    view = PromotionView(line.promotion, preview, preview.made_at, follow_up=line.follow_up)
    steps = merge_steps(view)
    count = f"{plural(len(steps), 'step')} then."
    order = Section((f"What is done then, in this order:\n\n{numbered(steps)}", count) if steps else ("",))
    return [deferred_section(view, preview), order]


def _foot(view: PullView) -> str:
    some = len(view.lines) > 1
    order = " Stages follow one another in the pipeline's order." if some else ""
    return (
        f"An approval counts for exactly this, and for the head {code(view.head[:12])} alone.{order} "
        "`/plan` makes it anew."
    )
