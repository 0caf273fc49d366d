"""Where the branches of promotions are: the one that a preview finds, and those that are left behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.domain.files import CommitId
from bot.domain.promotion import Promotion
from bot.domain.review import Preview
from bot.domain.splitting import Place
from bot.ports import Conflicted, Git, Signature, Store
from bot.workflow.publish import Branch
from bot.workflow.snapshots import Gatherer
from bot.workflow.walk import Base


@dataclass(frozen=True, slots=True)
class Clash:
    """The promotion branch cannot be merged into `tip`, where its target was: both changed these paths."""

    tip: CommitId
    paths: tuple[str, ...]


async def find_branch(git: Git, gatherer: Gatherer, promotion: Promotion) -> Branch:
    """Where the promotion branch is before a preview is made, and whether people's commits are on it."""
    if promotion.pull is None or promotion.target is None:
        return Branch(None)
    await git.fetch(promotion.target.url)
    tip = await git.resolve(promotion.target.url, f"refs/heads/{promotion.branch}")
    if tip is None or tip == promotion.drop:
        return Branch(tip)
    return Branch(tip, bool(await gatherer.people_below(promotion, tip)))


async def find_base(
    git: Git, promotion: Promotion, previous: Preview | None, found: Branch
) -> Base | Clash | None:
    """What the preview stands on where people's commits are on the branch: the merge of it into the base."""
    head = found.tip
    if not found.people or head is None or previous is None or promotion.target is None:
        return None
    url, branch = promotion.target.url, promotion.target.branch
    tip = await git.resolve(url, f"refs/heads/{branch}")
    if tip is None:
        return None
    merged = await merge_for_preview(git, url, tip, head, promotion.created_at)
    if isinstance(merged, Conflicted):
        return Clash(tip, merged.paths)
    return Base(Place(previous.target, previous.checkout, previous.source), tip, merged, ours=True)


async def merge_for_preview(
    git: Git, url: str, tip: CommitId, head: CommitId, at: datetime
) -> CommitId | Conflicted:
    """The merge of a head into its target as a commit in the mirror alone; the same for the same two and time."""
    merged = await git.merge_trees(url, tip, head)
    if isinstance(merged, Conflicted):
        return merged
    signature = Signature("lockstep", "lockstep@localhost", at)
    return await git.commit(url, merged.tree, [tip, head], "merge for preview", signature)


async def find_superseded(store: Store, promotion: Promotion) -> Sequence[Promotion]:
    """The Promotions right before a new one that newer Freight superseded, as far as they have a pull request."""
    if promotion.pull is not None:
        return ()
    found = []
    for old in await store.list_promotions(promotion.project, promotion.stage):
        if old.id == promotion.id:
            continue
        if not old.superseded_by:
            break
        if old.pull is not None:
            found.append(old)
    return found
