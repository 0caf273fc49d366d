"""What a follow-up pull request would bring, and whether its branch and its target are as the walk left them."""

from __future__ import annotations

import posixpath
from collections.abc import Collection
from urllib.parse import urlsplit

from bot.domain.files import Change, CommitId
from bot.domain.follow_up import compare_entries
from bot.domain.review import Pin
from bot.domain.step_kinds import StepClass
from bot.ports import Conflicted, Git
from bot.steps.contract import StepContext
from bot.steps.messages import PREFIX
from bot.steps.worktree import inside_path


async def find_differences(
    git: Git, place: tuple[str, str, CommitId], head: CommitId, changes: Collection[Change]
) -> tuple[str, ...]:
    """How a merge of a head would bring something else than these changes, empty if it would not.

    `place` is where it goes: the repository, the branch, and the tip of that.
    """
    url, branch, tip = place
    merged = await git.merge_trees(url, tip, head)
    if isinstance(merged, Conflicted):
        return (f"conflicts with {branch} in {', '.join(merged.paths[:5])}",)
    brings = {path: after for path, _, after in await git.diff(url, tip, merged.tree)}
    there = await git.list_files(url, tip)
    # What the branch has already need not be brought.
    wanted = [c for c in changes if there.get(c.path) != (c.after.entry if c.after is not None else None)]
    return compare_entries(wanted, brings)


async def is_ours(
    git: Git, url: str, span: tuple[CommitId, CommitId], made: CommitId, context: StepContext
) -> bool:
    """Whether every commit that the second of a span has and the first has not was made by us for this Promotion.

    Then nothing is lost if the branch is made anew. `made` is a commit of ours.
    """
    ours = (await git.read_commit(url, made)).committer.email
    # The committer of what GitHub signs itself. An Enterprise server has an address of its own; where its operator
    # chose another one than this default, such a commit counts as somebody's, and nothing is lost.
    servers = ("noreply@github.com", f"noreply@{urlsplit(url).hostname}")
    return all(
        commit.trailers.get(f"{PREFIX}Promotion") == context.promotion.id
        and commit.committer.email in (ours, *servers)
        for commit in await git.log(url, *span)
    )


async def is_touched(
    git: Git, pin: Pin, after: CommitId, changes: Collection[Change], context: StepContext
) -> bool:
    """Whether what a branch got since it was pinned changes a path that the task's edits read or write."""
    if pin.commit is None or pin.commit == after:
        return False
    touched: set[str | None] = {change.path for change in changes}
    for report in context.earlier:
        if report.step_class is StepClass.EDIT:
            paths = (*report.reads, *report.wrote, *(change.path for change in report.changes))
            touched |= {inside_path(pin.path, path) for path in paths}
    changed = await git.diff(pin.url, pin.commit, after)
    # What an edit read may be a folder as a whole.
    return any(touched & _with_folders(path) for path, _, _ in changed)


def _with_folders(path: str) -> set[str | None]:
    """A path and every folder that it lies in, the root as `.`."""
    found: set[str | None] = {path, "."}
    while path := posixpath.dirname(path):
        found.add(path)
    return found
