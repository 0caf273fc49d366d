"""Whether a branch holds already what a checkout would push, as a second run of the same step finds it."""

from __future__ import annotations

from bot.domain.compare import compare_patch
from bot.domain.files import CommitId
from bot.domain.promotion import PromotionId
from bot.ports import Git
from bot.ports.git import Commit
from bot.steps.checkout import Checkout
from bot.steps.messages import PREFIX
from bot.steps.replay import read_changes


async def is_there(
    git: Git, checkout: Checkout, head: CommitId, tip: CommitId, promotion: PromotionId
) -> bool:
    """Whether the branch at `tip` holds `head`, or what an earlier run of the same step made of it on another base.

    The checkout then has that commit as its head.
    """
    url = checkout.pin.url
    if not checkout.commits:
        return tip == head
    if await git.is_ancestor(url, head, tip):
        return True
    ours = (await git.read_commit(url, head)).trailers.get(f"{PREFIX}Step")
    for commit in await git.log(url, checkout.pin.commit, tip):
        named = commit.trailers.get(f"{PREFIX}Promotion"), commit.trailers.get(f"{PREFIX}Step")
        # Trailers are text that anybody can write: what is believed is the change itself.
        if named == (promotion, ours) and await _is_same(git, checkout, head, commit):
            checkout.head = commit.id
            return True
    return False


async def _is_same(git: Git, checkout: Checkout, head: CommitId, commit: Commit) -> bool:
    """Whether a commit of the branch changes the same lines as ours do, on whatever base."""
    url, base = checkout.pin.url, checkout.pin.commit
    if base is None or not commit.parents:
        return False
    ours = await read_changes(git, url, base, head)
    theirs = await read_changes(git, url, commit.parents[0], commit.id)
    return not compare_patch(ours, theirs, {})
