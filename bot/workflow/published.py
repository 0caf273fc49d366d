"""What a walk knows of its commits once they are public: by a push, or by the merge of a follow-up pull request.

The commit that a branch got may be another than the one that the walk made: on another base, or of GitHub's making.
From then on that one counts, for the steps behind it in this walk and in every later one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bot.domain.files import CommitId
from bot.domain.promotion import StepRun, StepStatus
from bot.domain.review import CommitRecord, PublishRecord, StepReport
from bot.domain.step_kinds import StepClass
from bot.domain.values import Value
from bot.ports import Git
from bot.steps.worktree import WorkTree


def find_public(
    approved: StepReport, steps: Sequence[StepReport], runs: Mapping[str, StepRun]
) -> CommitId | None:
    """The public commit that a commit step stands for by the journal, None if it is not public yet."""
    record = approved.record
    if approved.step_class is not StepClass.COMMIT or not isinstance(record, CommitRecord):
        return None
    push = next((s for s in steps[approved.index + 1 :] if _publishes(s, record.checkout)), None)
    made, pushed = runs.get(approved.alias), runs.get(push.alias) if push is not None else None
    if pushed is None or made is None or {made.status, pushed.status} != {StepStatus.SUCCEEDED}:
        return None
    return _commit_of(pushed.output) if pushed.finished_at is not None else None


async def stand_at(git: Git, tree: WorkTree, place: str, commit: CommitId) -> None:
    """Let a checkout stand at a public commit, what the walk has staged and not committed left out.

    A checkout that was made of a later commit of its branch stays there: that holds it already.
    """
    pin = tree.checkout_at(place).pin
    await _fetch(git, pin.url, commit)
    later = pin.commit is not None and await git.is_ancestor(pin.url, commit, pin.commit)
    await tree.advance(place, pin.commit if later and pin.commit is not None else commit, keep=False)


async def note_push(git: Git, tree: WorkTree, reports: Sequence[StepReport]) -> dict[int, StepReport] | None:
    """After a push, let its checkout stand at what was published; the commits that stand for that now, by index.

    `reports` are those of the walk so far, the push's last. None if it published nothing that this walk committed.
    """
    push = reports[-1]
    record, commit = push.record, _commit_of(push.output)
    if not isinstance(record, PublishRecord) or push.status is not StepStatus.SUCCEEDED or commit is None:
        return None
    checkout = tree.checkouts.get(record.checkout)
    own = checkout is not None and record.branch == checkout.pin.branch
    if checkout is None or not checkout.commits or not own or not _publishes(push, record.checkout):
        return None
    is_other = checkout.head != commit or _last_commit(reports, record.checkout) != commit
    await _fetch(git, checkout.pin.url, commit)
    await tree.advance(record.checkout, commit)
    return _standing_for(reports, record.checkout, commit) if is_other else {}


def _standing_for(reports: Sequence[StepReport], checkout: str, commit: CommitId) -> dict[int, StepReport]:
    found: dict[int, StepReport] = {}
    for index in reversed(range(len(reports) - 1)):
        report = reports[index]
        if _publishes(report, checkout):
            break
        if _is_commit_in(report, checkout):
            output: Mapping[str, Value] = {**report.output, "commit": commit}
            found[index] = replace(report, output=output)
    return found


def _last_commit(reports: Sequence[StepReport], checkout: str) -> Value:
    made = (report.output.get("commit") for report in reversed(reports) if _is_commit_in(report, checkout))
    return next(made, None)


def _is_commit_in(report: StepReport, checkout: str) -> bool:
    record = report.record
    done = report.status is StepStatus.SUCCEEDED
    return done and isinstance(record, CommitRecord) and record.checkout == checkout


def _publishes(report: StepReport, checkout: str) -> bool:
    record = report.record
    return (
        isinstance(record, PublishRecord)
        and record.checkout == checkout
        and not record.tag
        and not record.generated
    )


def _commit_of(output: Mapping[str, Value]) -> CommitId | None:
    commit = output.get("commit")
    return CommitId(commit) if isinstance(commit, str) and commit else None


async def _fetch(git: Git, url: str, commit: CommitId) -> None:
    """Have a commit that GitHub may have made in the mirror."""
    if await git.resolve(url, commit) != commit:
        await git.fetch(url)
