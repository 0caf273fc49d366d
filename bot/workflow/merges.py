"""What a merge stands for: steps that it did, and whether its branch still has what it brought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from bot.domain.files import CommitId, Entry, TreeId
from bot.domain.promotion import StepStatus
from bot.domain.review import CommitRecord, Preview, PublishRecord, StepReport
from bot.ports import Git


async def find_lost_change(git: Git, preview: Preview, tip: CommitId) -> str:
    """Why the tip of the target no longer has the change that was merged, empty if it has.

    Other lines of the same files may have changed since; a line that the merge brought must still be there.
    """
    url = preview.target.url
    files = await git.list_files(url, tip)
    moved = {
        path: entry
        for path, entry in preview.differences.items()
        # Other Stages write their own line into the record file.
        if files.get(path) != entry and path != preview.record_file
    }
    if not moved:
        return ""
    before = await git.list_files(url, preview.base)
    for path, merged in moved.items():
        if not await _still_holds(git, url, before.get(path), merged, files.get(path)):
            return f"{path} is no longer what was merged"
    return ""


async def find_lost(git: Git, preview: Preview) -> str:
    """The same of the target as it is in the mirror, whose branch may be gone as well."""
    tip = await git.resolve(preview.target.url, f"refs/heads/{preview.target.branch}")
    return await find_lost_change(git, preview, tip) if tip is not None else "the branch is gone"


async def find_changed(
    git: Git, preview: Preview, found: CommitId, approved: CommitId | TreeId
) -> Sequence[str]:
    """The paths that the preview touched and that a commit has otherwise than what was approved, in order."""
    url = preview.target.url
    now, wanted = await git.list_files(url, found), await git.list_files(url, approved)
    return sorted(path for path in preview.touched if now.get(path) != wanted.get(path))


async def _still_holds(
    git: Git, url: str, before: Entry | None, merged: Entry | None, now: Entry | None
) -> bool:
    if merged is None or now is None or now == before:
        return False
    known = {"before": before, "merged": merged, "now": now}
    read = await git.read_files(url, {name: entry for name, entry in known.items() if entry is not None})
    lines = {name: Counter(file.data.split(b"\n")) for name, file in read.items()}
    brought = lines["merged"] - lines.get("before", Counter())
    return not brought - lines["now"]


def is_merged(approved: StepReport, preview: Preview, merge: CommitId | None) -> bool:
    """Whether the merge stands for a commit or push: also where people had committed already what it would have."""
    if approved.status is not StepStatus.SKIPPED:
        return True
    record = approved.record
    ours = isinstance(record, CommitRecord | PublishRecord) and record.checkout in preview.checkouts
    return ours and merge is not None and preview.changes_anything


def is_public(approved: StepReport, preview: Preview) -> bool:
    """Whether a commit of the prepared zone was published by the merge."""
    record = approved.record
    if not isinstance(record, CommitRecord):
        return True
    later = preview.steps[approved.index : preview.split.cut]
    return any(isinstance(s.record, PublishRecord) and s.record.checkout == record.checkout for s in later)


def without_review(preview: Preview) -> Preview:
    """A preview of which nothing is in the tree yet: every step runs for real, and commits all that it changes."""
    split = preview.split
    changes = {change.path: change for commit in split.prepared for change in commit.changes}
    changes |= {change.path: change for change in split.deferred.changes}
    deferred = replace(split.deferred, changes=tuple(changes.values()))
    return replace(preview, split=replace(split, cut=0, prepared=(), deferred=deferred), differences={})
