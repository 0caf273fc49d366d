"""Carrying the commits of a checkout over to another branch, whole paths at a time."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.files import Change, CommitId
from bot.ports import Git
from bot.steps.checkout import Checkout


@dataclass(frozen=True, slots=True)
class Conflict:
    """These paths hold something else on the other branch than they did before the commits."""

    paths: tuple[str, ...]


async def replay(git: Git, checkout: Checkout, tip: CommitId) -> CommitId | Conflict:
    """One commit on `tip` with all that the checkout's commits change, under the last one's message and author.

    A path fits if the other branch has there what the commits found, or what they leave. Nothing is merged as text.
    """
    changes = _all_changes(checkout)
    theirs = await git.list_files(checkout.pin.url, tip)
    clashes = []
    for change in changes:
        there = theirs.get(change.path)
        before = change.before.entry if change.before is not None else None
        after = change.after.entry if change.after is not None else None
        if there not in (before, after):
            clashes.append(change.path)
    if clashes:
        return Conflict(tuple(clashes))
    url = checkout.pin.url
    tree = await git.write_tree(url, tip, {change.path: change.after for change in changes})
    if checkout.head is None or checkout.head == checkout.pin.commit:
        # In a preview there is no commit object to take the message from, and none is needed to find conflicts.
        return tip
    made = await git.read_commit(url, checkout.head)
    return await git.commit(url, tree, (tip,), made.message, made.author)


async def read_changes(git: Git, url: str, before: CommitId | None, after: CommitId) -> list[Change]:
    """What lies between two commits of a mirror, with the contents of both; None before is nothing at all."""
    pairs = {path: (old, new) for path, old, new in await git.diff(url, before, after)}
    old = {path: entry for path, (entry, _) in pairs.items() if entry is not None}
    new = {path: entry for path, (_, entry) in pairs.items() if entry is not None}
    was, now = await git.read_files(url, old), await git.read_files(url, new)
    return [Change(path, was.get(path), now.get(path)) for path in pairs]


def _all_changes(checkout: Checkout) -> tuple[Change, ...]:
    combined: dict[str, Change] = {}
    for commit in checkout.commits:
        for change in commit.changes:
            first = combined.get(change.path)
            before = first.before if first is not None else change.before
            combined[change.path] = Change(change.path, before, change.after)
    return tuple(combined.values())
