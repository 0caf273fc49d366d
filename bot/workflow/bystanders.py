"""The required check on pull requests that are no promotions: people's own.

One that touches what a Stage lives on, or the pipeline itself, would bring by another door what a promotion may bring
only with approvals. So it needs those that the Stage's policy asks for; everything else has nothing to wait for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from bot.domain.approvals import Tally, count_approvals
from bot.domain.github import PullRequest, Repository, Review
from bot.domain.model import Stage
from bot.domain.peoples_pulls import early_reviewers
from bot.domain.promotion import Promotion, PromotionId
from bot.domain.review import Preview
from bot.domain.review_policy import ReviewPolicy
from bot.domain.territory import Territory, territory_of
from bot.ports import Look
from bot.workflow.gates import needed_approvals
from bot.workflow.snapshots import Gatherer

_MOST_FILES = 3000
"""GitHub lists no more files of a pull request; what is not listed may be anything."""
_MOST_KNOWN = 2000
_RECENT = 5


@dataclass(frozen=True, slots=True)
class Touching:
    """What a person's pull request changes: its paths (`all_listed`: GitHub named every one), and per Stage why."""

    paths: tuple[str, ...]
    all_listed: bool
    stages: tuple[tuple[Stage, str], ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a Stage asks of the reviewers of a person's pull request; see `early_reviewers` for `shown_at`."""

    policy: ReviewPolicy
    destroys: bool
    shown_at: datetime | None

    def __hash__(self) -> int:
        return hash((self.policy.metadata.name, self.destroys, self.shown_at))


@dataclass(slots=True)
class Bystanders:
    """Judges people's pull requests. `own` is the repository and folder of the pipeline, None if it is elsewhere."""

    gatherer: Gatherer
    own: tuple[Repository, str] | None = None
    known: dict[tuple[PromotionId, int], Territory] = field(default_factory=dict)

    async def find_promotion_at(self, pull: PullRequest) -> Look | None:
        """The look at the Stage whose promotion has this head too: its check is not for another pull request to set."""
        url = self.gatherer.github.clone_url(pull.repository)
        for other in await self.gatherer.github.find_pull_requests_of(pull.repository, pull.head):
            promotion = await self.gatherer.store.find_promotion_by_pull(url, other.number)
            if other.head == pull.head and promotion is not None and not promotion.state.ended:
                return Look(
                    "stage", f"{promotion.project}/{promotion.stage}", "its head is another one's too"
                )
        return None

    async def look_at(self, pull: PullRequest) -> Touching:
        """Each Stage that it touches, with a path that says so."""
        paths = tuple(await self.gatherer.github.list_pull_request_files(pull.repository, pull.number))
        listed = len(paths) < _MOST_FILES
        stages = self.gatherer.configuration.pipeline.stages.values()
        if self._is_pipeline(pull.repository, paths):
            return Touching(paths, listed, tuple((stage, "the pipeline's configuration") for stage in stages))
        found = []
        for stage in stages:
            territory = await self._territory(stage, pull.repository)
            path = territory.find(paths) if territory is not None else ""
            if territory is not None and not listed:
                path = path or "more files than GitHub lists"
            if path:
                found.append((stage, path))
        return Touching(paths, listed, tuple(found))

    def _is_pipeline(self, repository: Repository, paths: Sequence[str]) -> bool:
        if self.own is None or self.own[0] != repository:
            return False
        folder = self.own[1].strip("/")
        inside = any(not folder or path.startswith(f"{folder}/") for path in paths)
        return inside or len(paths) >= _MOST_FILES

    async def last_preview(self, stage: Stage, repository: Repository) -> Preview | None:
        """The Stage's newest preview in this repository, None if it never had one."""
        for promotion in await self._recent(stage, repository):
            preview = await self.gatherer.store.get_preview(promotion.id, promotion.preview)
            if preview is not None:
                return preview
        return None

    async def _recent(self, stage: Stage, repository: Repository) -> list[Promotion]:
        """The Stage's latest Promotions, the newest first, less those that went to another repository."""
        project, name = stage.metadata.namespace, stage.metadata.name
        recent = await self.gatherer.store.list_promotions(project, name, limit=_RECENT)
        return [
            promotion
            for promotion in recent
            if promotion.target is not None
            and self.gatherer.github.repository_of(promotion.target.url) == repository
        ]

    async def _territory(self, stage: Stage, repository: Repository) -> Territory | None:
        """What the Stage's newest preview in this repository read and wrote; None if it never had one."""
        for promotion in await self._recent(stage, repository):
            found = await self._of_promotion(promotion)
            if found is not None:
                return found
        return None

    async def _of_promotion(self, promotion: Promotion) -> Territory | None:
        key = (promotion.id, promotion.preview)
        if key not in self.known:
            preview = await self.gatherer.store.get_preview(*key) if promotion.preview else None
            if preview is None:
                return None
            if len(self.known) >= _MOST_KNOWN:
                self.known.clear()
            self.known[key] = territory_of(preview, with_diff=promotion.follows is None)
        return self.known[key]

    # -- who approved it -------------------------------------------------------------------------------------------

    async def count(
        self, pull: PullRequest, wanted: Sequence[Wanted], pushers: Sequence[int] = ()
    ) -> list[Tally]:
        """The approvals of the present head, counted once for each different wish; `pushers` are account ids."""
        reviews = await self.gatherer.github.list_reviews(pull.repository, pull.number)
        pushed = {r.user.login.lower(): "pushed to the branch" for r in reviews if r.user.id in pushers}
        excluded = {**pushed, **await self._excluded(pull)}
        return [
            await self._tally(wish, pull, reviews, {**early_reviewers(reviews, wish.shown_at), **excluded})
            for wish in dict.fromkeys(wanted)
        ]

    def wish(self, stage: Stage, *, destroys: bool = False, shown_at: datetime | None = None) -> Wanted:
        """What a Stage asks of the reviewers."""
        return Wanted(self.gatherer.configuration.policy(stage), destroys, shown_at)

    async def _excluded(self, pull: PullRequest) -> Mapping[str, str]:
        authors = await self.gatherer.github.list_commit_authors(pull.repository, pull.number)
        logins = {login for found in authors.values() for login in found}
        wrote = {login.lower(): "wrote a commit of it" for login in logins}
        return {**wrote, pull.author.login.lower(): "opened it"}

    async def _tally(
        self, wish: Wanted, pull: PullRequest, reviews: Sequence[Review], excluded: Mapping[str, str]
    ) -> Tally:
        policy = wish.policy
        needed, on_destroy = needed_approvals(policy, destroys=wish.destroys, rollback=False)
        if not needed and not on_destroy:
            # Where the policy lets releases through without a person, people's changes need none either.
            return Tally(count=0, needed=0)
        logins = sorted({review.user.login for review in reviews})
        standings = {
            login.lower(): await self.gatherer.standing(pull.repository, login, policy) for login in logins
        }
        tally = count_approvals(reviews, [pull.head], policy.approvals, excluded, standings)
        return replace(tally, needed=needed, destroy_needed=on_destroy)
