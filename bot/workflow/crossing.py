"""The merge in the middle of a walk: `apply: BeforeMerge` runs the steps before it on what the merge will leave.

Behind the merge the same walk stands on it. Loose files and outputs are kept; what was committed before is in the
merge, and its id is that of the merge, since a squash leaves no other on the target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bot.domain.files import CommitId
from bot.domain.promotion import Promotion, StepRun, StepStatus
from bot.domain.review import CommitRecord, Preview, PublishRecord, StepReport
from bot.domain.values import Value
from bot.steps.contract import Onto
from bot.steps.git_push import commit_url
from bot.steps.worktree import WorkTree


@dataclass(frozen=True, slots=True)
class Ahead:
    """A walk that begins before the merge.

    It stands on `standing`, the merge that is to come; the step at `point` is the first one behind it. `onto` says
    where pushes to the target go until then.
    """

    standing: CommitId
    point: int
    onto: Onto


def counting_runs(
    runs: Mapping[str, StepRun], promotion: Promotion, ahead: Ahead | None
) -> dict[str, StepRun]:
    """The journal, as far as it is of the preview in force, and of pushes that count where this walk goes.

    What was pushed onto the promotion branch counts for nothing where somebody merged past it.
    """
    return {
        alias: run
        for alias, run in runs.items()
        if run.attempt >= promotion.first_attempt and (ahead is not None or not run.detail.get("onto"))
    }


async def cross(tree: WorkTree, preview: Preview, merge: CommitId) -> None:
    """Have the target's checkouts stand on the merge; what is edited in them and not committed stays."""
    for place in preview.checkouts:
        if place in tree.checkouts:
            await tree.advance(place, merge)


def as_merged(reports: Sequence[StepReport], preview: Preview, merge: CommitId) -> list[StepReport]:
    """The reports with the merge as the commit of everything that was committed or pushed for the target."""
    return [_as_merged(report, merge) if _is_targets(report, preview) else report for report in reports]


def find_pushed(reports: Sequence[StepReport], preview: Preview, ahead: Ahead | None) -> CommitId | None:
    """The commit that the walk pushed last in place of the target, None if it pushed none."""
    for report in reversed(reports):
        record, commit = report.record, report.output.get("commit")
        if not isinstance(record, PublishRecord) or not _is_targets(report, preview):
            continue
        pushed = report.status is StepStatus.SUCCEEDED and isinstance(commit, str)
        if pushed and ahead is not None and commit != ahead.standing:
            return CommitId(str(commit))
    return None


def _is_targets(report: StepReport, preview: Preview) -> bool:
    match report.record:
        case CommitRecord(checkout=checkout):
            return checkout in preview.checkouts
        case PublishRecord(checkout=checkout, branch=branch, tag=""):
            return checkout in preview.checkouts and branch == preview.target.branch
    return False


def _as_merged(report: StepReport, merge: CommitId) -> StepReport:
    if not isinstance(report.output.get("commit"), str):
        return report
    output: dict[str, Value] = {**report.output, "commit": merge}
    if isinstance(report.record, PublishRecord):
        output["commitURL"] = commit_url(report.record.url, merge)
    return replace(report, output=output)
