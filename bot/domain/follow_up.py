"""The follow-up pull request: how a release commit reaches a branch that the App may not, or shall not, push to.

Its name follows from the work, so that a second run finds it by looking; what is done next with it is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bot.domain.files import Change, Entry
from bot.domain.promotion import Promotion, PromotionId
from bot.domain.review import Preview
from bot.domain.review_policy import ReviewPolicy
from bot.domain.values import Value

FOLDER = "_release"
"""No Stage is named like this, since names in Kubernetes have no underscore: no other branch is in the way."""
_BRANCH = re.compile(rf"lockstep/[^/]+/{FOLDER}/(?P<promotion>[^/]+)/\d+(-\d+)?")
_MOST_SHOWN = 20


def follow_up_branch(promotion: Promotion, index: int, attempt: int) -> str:
    """The head branch of what the step at this index publishes, by the attempt in which it is opened.

    One that was closed is not opened again: the next attempt has a branch of its own.
    """
    again = f"-{attempt}" if attempt > 1 else ""
    return f"lockstep/{promotion.project}/{FOLDER}/{promotion.id}/{index + 1}{again}"


def promotion_of_branch(branch: str) -> PromotionId | None:
    """The Promotion whose follow-up a head branch is for by its name, None if it is for none."""
    found = _BRANCH.fullmatch(branch)
    return PromotionId(found["promotion"]) if found is not None else None


def needs_follow_up(policy: ReviewPolicy, preview: Preview | None) -> bool:
    """Whether release commits reach the branch this way: the policy wants it, or rules refuse the App's push."""
    return policy.write_back != "Push" or (preview is not None and bool(preview.write_back))


def follow_up_of(detail: Mapping[str, Value]) -> int:
    """The number of the follow-up pull request that a step's journal names, 0 if it has none."""
    number = detail.get("follow_up")
    return number if isinstance(number, int) and not isinstance(number, bool) else 0


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A follow-up pull request as it is now.

    `differences` say how the diff that its merge would bring is another than the approved patch with its holes
    filled, empty if it is exactly that; `rebuildable` that nothing of people's is on its branch; `green` that GitHub
    shows our success on its head.
    """

    open: bool
    merged: bool
    base_branch: str
    wanted_branch: str
    differences: tuple[str, ...] = ()
    rebuildable: bool = False
    green: bool = False
    draft: bool = False
    mergeable: bool | None = None
    closed_by: str = ""


@dataclass(frozen=True, slots=True)
class ReadBack:
    """It is merged: see what that left on the branch."""


@dataclass(frozen=True, slots=True)
class Closed:
    """It was closed without a merge into the branch: nothing later may run."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Make its branch anew of what the walk has committed."""


@dataclass(frozen=True, slots=True)
class TurnRed:
    """It may not be merged as it is."""

    reason: str


@dataclass(frozen=True, slots=True)
class TurnGreen:
    """It may be merged; its check is to say so, and then `reason` is what it waits for."""

    reason: str


@dataclass(frozen=True, slots=True)
class MergeIt:
    """GitHub shows that it is green: merge it."""


FollowUpAction = ReadBack | Closed | Rebuild | TurnRed | TurnGreen | MergeIt


def plan_follow_up(seen: FollowUp) -> FollowUpAction:
    """What is to be done next with a follow-up pull request."""
    if seen.merged and seen.base_branch != seen.wanted_branch:
        return Closed(f"was merged into {seen.base_branch} instead of {seen.wanted_branch}")
    if seen.merged:
        return ReadBack()
    if not seen.open:
        who = f" by {seen.closed_by}" if seen.closed_by else ""
        return Closed(f"was closed{who} without a merge")
    if seen.base_branch != seen.wanted_branch:
        return TurnRed(f"goes to {seen.base_branch} instead of {seen.wanted_branch}")
    if seen.differences:
        # Red before it is made anew would turn to and fro: the new head has a check of its own.
        return Rebuild() if seen.rebuildable else TurnRed("; ".join(seen.differences))
    if seen.draft:
        return TurnGreen("is a draft; mark it as ready for review")
    if seen.mergeable is False:
        return TurnGreen(f"cannot be merged into {seen.base_branch} yet")
    if seen.mergeable is None:
        return TurnGreen("is being looked at by GitHub")
    if not seen.green:
        return TurnGreen("turns green before it is merged")
    return MergeIt()


def compare_entries(wanted: Iterable[Change], actual: Mapping[str, Entry | None]) -> tuple[str, ...]:
    """How the paths that a merge would change are others than those of the patch, byte by byte; empty if they are not.

    `actual` maps each path that would change to what it would hold, None for one that would be removed.
    """
    expected = {change.path: change.after.entry if change.after is not None else None for change in wanted}
    found = []
    for path in sorted(expected.keys() | actual.keys()):
        if path not in expected:
            found.append(f"{path} was not to change")
        elif path not in actual:
            found.append(f"{path} does not change")
        elif expected[path] != actual[path]:
            found.append(f"{path} is not what was approved")
    if len(found) > _MOST_SHOWN:
        return (*found[:_MOST_SHOWN], f"and {len(found) - _MOST_SHOWN:,} more")
    return tuple(found)
