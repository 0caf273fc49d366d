"""Whether a task with pull-request steps of its own can be guarded (section 10 of the review gate)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bot.domain.promotion import StepStatus
from bot.domain.review import Problem, StepReport, find_request
from bot.domain.splitting import Place
from bot.domain.step_kinds import AWAITS_MERGE


def find_unguarded(steps: Sequence[StepReport], place: Place, cut: int) -> Problem | None:
    """Why a task with its own pull request cannot be guarded, None if it can.

    Nothing may take effect before the merge, something must wait for it, and a branch that holds people's commits
    (`place` is then that of the pull request that is open) must be the one that the task still asks for.
    """
    request = find_request(steps)
    opening = next((s.alias for s in steps if s.kind == "git-open-pr"), "")
    if place.source != (request.source if request is not None else ""):
        return Problem(
            opening,
            "the pipeline has another branch for this pull request now, and the present one holds commits of people; "
            "close it and promote the Freight again",
            prepared=True,
        )
    if request is None or (cut < len(steps) and steps[cut].kind in AWAITS_MERGE):
        return None
    if cut == len(steps):
        message = (
            "git-open-pr: no step waits for the merge of the pull request; add git-wait-for-pr behind it"
        )
        return Problem(opening, message, prepared=True)
    early = steps[cut]
    return Problem(
        early.alias,
        f"{early.kind} stands before the step that waits for the merge, so it would take effect before the review; "
        "move it behind git-wait-for-pr",
        prepared=True,
    )


def opens_nothing(steps: Iterable[StepReport]) -> bool:
    """Whether the task's own `git-open-pr` found nothing to review: what waits for its pull request is skipped too."""
    return any(step.kind == "git-open-pr" and step.status is StepStatus.SKIPPED for step in steps)
