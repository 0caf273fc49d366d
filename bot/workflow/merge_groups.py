"""What a merge queue is told of a promotion: whether its group would bring exactly what was approved."""

from __future__ import annotations

from bot.domain.actions import Snapshot
from bot.domain.files import CommitId
from bot.domain.github import CheckRun, Conclusion
from bot.domain.review import Preview
from bot.ports import Git, TransientError
from bot.workflow.merges import find_changed


async def judge_group(git: Git, seen: Snapshot, head: CommitId) -> CheckRun:
    """The required check of a group's commit `head`; `seen` is the Stage whose promotion is in the queue.

    Raises TransientError while the promotion's preview is being made.
    """
    promotion, preview = seen.promotion, seen.preview
    if promotion is None or preview is None or promotion.running:
        raise TransientError("the preview of what is in the merge queue is being made", retry_after=2.0)
    why = await _why_not(git, seen, preview, head)
    return CheckRun(
        name="lockstep",
        head=head,
        title=why or "The queue brings what was approved",
        summary=f"Pull request #{promotion.pull} of {promotion.stage}: {why or 'every gate is open'}.",
        conclusion=Conclusion.FAILURE if why else Conclusion.SUCCESS,
        external_id=f"{promotion.id}/group",
    )


async def _why_not(git: Git, seen: Snapshot, preview: Preview, head: CommitId) -> str:
    if preview.is_red:
        return preview.held or preview.problems[0].message
    closed = [gate.reason for gate in seen.gates if not gate.open]
    if closed:
        return "; ".join(closed)
    await git.fetch(preview.target.url)
    early = seen.promotion.early if seen.promotion is not None and seen.promotion.is_ahead else None
    # What was applied before the merge has left its commits on the branch.
    wanted = early.ready if early is not None and early.ready is not None else preview.tree
    moved = await find_changed(git, preview, head, wanted)
    if moved:
        names = ", ".join(moved[:3])
        return f"the queue changes {names} before it; it is previewed again once those changes are merged"
    return ""
