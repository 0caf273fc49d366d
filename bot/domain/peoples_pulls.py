"""What is remembered of a person's own pull request that changes what Stages' Terraform reads, and what follows.

Such a pull request is previewed Stage by Stage for the Freight that each has. Each preview is that of a Promotion that
does not exist yet; once the pull request is merged it becomes one, the re-promotion, under the id that it had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.domain.files import CommitId
from bot.domain.freight import FreightName
from bot.domain.github import PullNumber, PullRequest, Review, ReviewState
from bot.domain.promotion import Following, Promotion, PromotionId
from bot.domain.review import ApplyKind, Preview

_RETRY = timedelta(seconds=30)
"""How long after a passing trouble a preview is made again."""


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """The re-promotion of one Stage, as it would begin now: Freight, steps, preview, digest, target and base.

    `differs` says why the Stage's steps would write something else than what the pull request leaves: then there is
    nothing to re-promote. `idle` tells that Terraform's inputs are those that were applied. `done` says what came of it
    after the merge, empty as long as something is due.
    """

    promotion: Promotion
    differs: str = ""
    idle: bool = False
    done: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Project and Stage."""
        return self.promotion.project, self.promotion.stage

    @property
    def shown_at(self) -> datetime | None:
        """Since when the digest in force is shown."""
        return self.promotion.follows.shown_at if self.promotion.follows is not None else None


@dataclass(frozen=True, slots=True)
class PeoplesPull:
    """A person's pull request, by the repository's git address and its number; `plans` in pipeline order.

    `branch` is where it goes, `head_branch` where it comes from (empty for a fork's). `vouched` is the head of a fork
    that somebody with the right let be planned. `wanted` says why a new preview was asked for. `pushers` are the
    account ids of people who pushed to its branch. `merge` is the commit that it became; `over` that nothing is due any
    more: the row then only tells that all was done once.
    """

    url: str
    pull: PullNumber
    branch: str
    head_branch: str = ""
    plans: tuple[PlannedStage, ...] = ()
    vouched: CommitId | None = None
    vouched_by: str = ""
    wanted: str = ""
    pushers: tuple[int, ...] = ()
    merge: CommitId | None = None
    over: bool = False
    waits: Mapping[str, str] = field(default_factory=dict)
    """Why a Stage (`project/stage`) has no preview although it would need one."""

    def plan_of(self, project: str, stage: str) -> PlannedStage | None:
        """What is planned for a Stage."""
        return next((plan for plan in self.plans if plan.key == (project, stage)), None)

    def with_plan(self, plan: PlannedStage, order: Sequence[tuple[str, str]]) -> PeoplesPull:
        """The same with this plan in place of the Stage's former one; `order` is that of the pipeline."""
        plans = {item.key: item for item in self.plans} | {plan.key: plan}
        known = [plans[key] for key in order if key in plans]
        rest = [item for key, item in plans.items() if key not in order]
        waits = {key: why for key, why in self.waits.items() if key != "/".join(plan.key)}
        return replace(self, plans=(*known, *rest), waits=waits)

    def without(self, kept: Sequence[tuple[str, str]]) -> PeoplesPull:
        """The same with nothing of Stages but those that are kept."""
        names = {"/".join(key) for key in kept}
        return replace(
            self,
            plans=tuple(plan for plan in self.plans if plan.key in kept),
            waits={key: why for key, why in self.waits.items() if key in names},
        )


@dataclass(frozen=True, slots=True)
class Standpoint:
    """What a preview of a Stage must have been made of to be shown now; `tip` is that of the target's branch."""

    head: CommitId
    tip: CommitId
    freight: FreightName
    promotion: Promotion
    """What the Stage would promote now: the steps and vars of the pipeline in force."""
    moved: tuple[str, ...] = ()
    """Paths that the target's branch has changed since the preview was made."""


def foreign_branch(pull: PullRequest) -> str:
    """What stands for the head branch in the re-promotion's row; of a fork's nothing that is a branch here.

    The name of a fork's branch, `main` perhaps, is that of other people's in the repository that it goes to.
    """
    return f"refs/pull/{pull.number}/head" if pull.from_fork or not pull.head_branch else pull.head_branch


def why_preview(
    plan: PlannedStage | None, preview: Preview | None, now: Standpoint, at: datetime, max_age: float
) -> str:
    """Why a Stage is to be previewed (again), empty if what is there holds; `max_age` is in seconds."""
    if plan is None or preview is None:
        return "it was not previewed yet"
    old = plan.promotion
    if old.head != now.head:
        return f"its head is {now.head[:7]}"
    if old.freight.name != now.freight:
        return f"the Stage has {now.promotion.freight.alias} now"
    if (old.steps, old.variables) != (now.promotion.steps, now.promotion.variables):
        return "the pipeline's steps changed"
    touched = [path for path in now.moved if path in preview.touched]
    if touched:
        return f"{preview.target.branch} changed {', '.join(touched[:3])}"
    planned = any(apply.plan is not None for apply in preview.applies)
    if planned and at >= preview.made_at + timedelta(seconds=max_age):
        return "the plan is older than the policy allows"
    if any(problem.transient for problem in preview.problems) and at >= preview.made_at + _RETRY:
        return "tried again"
    return ""


def next_preview(preview: Preview, max_age: float) -> datetime | None:
    """When time alone asks for a new preview, None if it never does; `max_age` in seconds."""
    if any(problem.transient for problem in preview.problems):
        return preview.made_at + _RETRY
    planned = any(apply.plan is not None for apply in preview.applies)
    return preview.made_at + timedelta(seconds=max_age) if planned else None


def plan_stage(
    promotion: Promotion, preview: Preview, before: PlannedStage | None, pull: PullNumber, at: datetime
) -> PlannedStage:
    """The plan that a new preview makes; the same digest on the same head keeps the approvals that it has."""
    digest = preview.digest
    kept = before is not None and (before.promotion.digest, before.promotion.head) == (digest, promotion.head)
    shown_at = (before.shown_at if before is not None and kept else None) or at
    applies = preview.applies
    return PlannedStage(
        promotion=replace(
            promotion,
            digest=digest,
            target=preview.target,
            base=preview.base,
            pull=pull,
            heads=(promotion.head,) if promotion.head is not None else (),
            follows=Following(pull, promotion.created_at, shown_at),
        ),
        # What a person could do about it on a promotion's own branch does not concern this one.
        differs=preview.held.partition(":")[0],
        idle=not preview.problems and all(apply.kind is ApplyKind.UNCHANGED for apply in applies),
    )


def early_reviewers(reviews: Sequence[Review], shown_at: datetime | None) -> Mapping[str, str]:
    """Logins, in lower case, of people whose approval is older than what it would be for, each with the reason."""
    # GitHub tells times to the second.
    since = shown_at.replace(microsecond=0) if shown_at is not None else None
    latest = {
        review.user.login.lower(): review
        for review in sorted(reviews, key=lambda review: (review.submitted_at, review.id))
        if review.state not in (ReviewState.COMMENTED, ReviewState.PENDING)
    }
    return {
        login: "approved before this plan was shown, and may approve again"
        for login, review in latest.items()
        if since is not None and review.state is ReviewState.APPROVED and review.submitted_at < since
    }


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose turn it is after a merge: the Stage to begin now, None if one must end first or nothing is left."""

    plan: PlannedStage | None
    waits_for: tuple[str, str] | None = None
    over: bool = False


def choose_turn(pull: PeoplesPull, known: Mapping[PromotionId, bool]) -> Turn:
    """The next re-promotion of a merged pull request; `known` are those that began, and whether each has ended.

    They come in the pipeline's order: a later Stage waits until what an earlier one does is over, be it in failure.
    """
    for plan in pull.plans:
        if plan.done or known.get(plan.promotion.id, False):
            continue
        if plan.promotion.id in known:
            return Turn(None, plan.key)
        return Turn(plan)
    return Turn(None, over=True)
