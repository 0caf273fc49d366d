"""What a follow-up pull request says: its title, its body, and the required check on its head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.app_manifest import CHECK
from bot.domain.compare import Filled
from bot.domain.files import Change, CommitId
from bot.domain.github import CheckRun, Conclusion
from bot.domain.promotion import Promotion
from bot.reports.fitting import COMMENT_LIMIT, Section, fit, head_of
from bot.reports.markdown import bullets, clean, code, fence, plain, table, title
from bot.reports.patches import counted, patch_text
from bot.reports.wording import plural

_TITLE = 120
_MOST_ROWS = 100


@dataclass(frozen=True, slots=True)
class FollowUpView:
    """What is said of one: the promotion, the branch that it goes to, what it brings and which values that fills in."""

    promotion: Promotion
    branch: str
    changes: Sequence[Change]
    filled: Sequence[Filled] = ()


def render_follow_up_title(view: FollowUpView) -> str:
    """`acme/dev: release of calm-otter`, at most 120 characters."""
    promotion = view.promotion
    alias = promotion.freight.label
    return title(f"{promotion.project}/{promotion.stage}: release of {alias}", _TITLE, inert=True)


def render_follow_up_body(view: FollowUpView) -> str:
    """What it is, which promotion it follows, which values it brings, and what people may do with it."""
    promotion = view.promotion
    # The number of a pull request of the same repository, written so that GitHub links it.
    before = f", the follow-up of #{promotion.pull}" if promotion.pull is not None else ""
    lead = (
        f"The release commit of Freight **{plain(promotion.freight.alias)}** in **{plain(promotion.stage)}**{before}: "
        f"what promotion {code(promotion.id)} commits to {code(view.branch)} now that the steps before it are done."
    )
    how = (
        f"Lockstep merges it by itself. Its check {code(CHECK)} is green only while the merge brings exactly what was "
        "approved, with the values filled in that were not known then; a commit of anybody else turns it red. "
        f"Closing it stops the promotion; {code('/retry')} opens it again."
    )
    patch = clean(patch_text(view.changes, {}))
    shown = f"### Change ({counted(view.changes)})"
    paths = bullets([code(change.path) for change in view.changes], _MOST_ROWS)
    sections = [
        Section((lead,)),
        Section((how,)),
        _filled(view.filled),
        Section(
            (
                f"{shown}\n\n{fence(head_of(patch, 30_000), 'diff')}",
                f"{shown}\n\n{fence(head_of(patch, 8_000), 'diff')}",
                f"{shown}\n\n{paths}",
                f"It changes {plural(len(view.changes), 'file')}.",
            )
        ),
    ]
    return fit(sections, COMMENT_LIMIT)


def _filled(filled: Sequence[Filled]) -> Section:
    if not filled:
        return Section(("",))
    rows = [[code(line.path), code(line.approved), code(line.actual)] for line in filled[:_MOST_ROWS]]
    shown = "### Values that were not known before\n\n" + table(["File", "Approved", "Now"], rows)
    if len(filled) > _MOST_ROWS:
        shown += f"\n\nand {len(filled) - _MOST_ROWS:,} more"
    return Section((shown, shown, f"{plural(len(filled), 'value')} were not known before."))


def render_follow_up_check(promotion: Promotion, head: CommitId, problem: str) -> CheckRun:
    """The required check on its head: green, or red with the reason."""
    which = f"Release of {plain(promotion.freight.alias)} in {plain(promotion.stage)}"
    of = f" (#{promotion.pull})" if promotion.pull is not None else ""
    if problem:
        said = (
            f"{which}{of}: {plain(problem)}\n\nIt is merged only if it brings exactly what was approved. Take other "
            f"commits off the branch, or close it and say {code('/retry')} on the promotion's pull request."
        )
    else:
        said = f"{which}{of}: it brings exactly what was approved, its unknown values filled in."
    return CheckRun(
        name=CHECK,
        head=head,
        title=title(problem) if problem else "Exactly what was approved",
        summary=said,
        conclusion=Conclusion.FAILURE if problem else Conclusion.SUCCESS,
        external_id=f"{promotion.id}/follow-up",
    )
