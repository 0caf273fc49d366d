"""What a pull request goes onto: the target's tip, or the first commit of a branch that is still to be made."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.files import CommitId
from bot.domain.promotion import Promotion
from bot.domain.review import Pin, Preview, PublishRecord, StepReport
from bot.domain.splitting import Place
from bot.ports import Git, Moved, Refused, Signature, TerminalError, TransientError


async def find_tip(
    git: Git, place: Place, pins: Sequence[Pin], promotion: Promotion, author: tuple[str, str]
) -> CommitId:
    """The tip of the target's branch; where there is none, the empty commit that will be its first.

    That commit is made in the mirror alone. It is the same one on every replica and in every preview of a Promotion.
    Raises TerminalError if a branch is missing that no checkout of the task is pushed to.
    """
    url, branch = place.target.url, place.target.branch
    pin = _pin_of(place, pins)
    if pin is not None and pin.commit is not None and pin.branch == branch:
        return pin.commit
    await git.fetch(url)
    tip = await git.resolve(url, f"refs/heads/{branch}")
    if tip is not None:
        return tip
    if pin is None:
        raise TerminalError(f"the branch {branch} of {url} does not exist; create it, or set `reviewIn`")
    empty = await git.write_tree(url, None, {})
    signature = Signature(*author, at=promotion.created_at.replace(microsecond=0))
    return await git.commit(url, empty, (), f"Begin {branch}\n", signature)


async def find_root(
    git: Git, place: Place, pins: Sequence[Pin], steps: Sequence[StepReport], tip: CommitId
) -> CommitId | None:
    """The commit on whose tree the prepared change is made, None for an empty tree.

    That is the target's tip. A checkout of another branch gives its whole tree to a target that it replaces (`force`),
    has no history with, or is ahead of; else its changes are carried over path by path.
    """
    pin = _pin_of(place, pins)
    if pin is None or pin.branch == place.target.branch:
        return tip
    replaced = any(
        s.record.force
        for s in steps
        if isinstance(s.record, PublishRecord)
        and (s.record.checkout, s.record.branch) == (place.checkout, place.target.branch)
    )
    if pin.commit is None or replaced:
        return pin.commit
    url = place.target.url
    ahead = await git.is_ancestor(url, tip, pin.commit)
    return pin.commit if ahead or not await git.is_related(url, tip, pin.commit) else tip


async def seed_target(git: Git, preview: Preview) -> None:
    """Make the target's branch if it does not exist yet: it begins with the empty commit of the preview.

    Raises TransientError if the branch appears or vanishes meanwhile, TerminalError if the server refuses it.
    """
    url, branch = preview.target.url, preview.target.branch
    await git.fetch(url)
    if await git.resolve(url, f"refs/heads/{branch}") is not None:
        return
    first = await git.read_commit(url, preview.base)
    if first.parents or first.tree != await git.write_tree(url, None, {}):
        raise TransientError(f"{branch} was deleted while its preview was made; it is previewed again")
    match await git.push(url, preview.base, branch, expected=None):
        case Moved(tip=tip) if tip != preview.base:
            raise TransientError(f"{branch} was made meanwhile; it is previewed again", retry_after=0.0)
        case Refused(message=message):
            raise TerminalError(
                f"{url} refuses the new branch {branch}: {message.strip()}; create it, or let the App create branches"
            )


def _pin_of(place: Place, pins: Sequence[Pin]) -> Pin | None:
    return next((pin for pin in pins if pin.path == place.checkout), None)
