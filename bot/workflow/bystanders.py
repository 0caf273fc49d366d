"""The required check on pull requests that are no promotions: people's own.

One that touches what a Stage lives on, or the pipeline itself, would bring by another door what a promotion may bring
only with approvals. So it needs those that the Stage's policy asks for; everything else has nothing to wait for.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bot.domain.approvals import Tally, count_approvals
from bot.domain.files import CommitId
from bot.domain.github import CheckRun, PullRequest, Repository, Review
from bot.domain.model import Stage
from bot.domain.promotion import Promotion, PromotionId
from bot.domain.review_policy import ReviewPolicy
from bot.ports import Look
from bot.reports.bystanders import render_touching_check, render_untouched_check
from bot.workflow.snapshots import Gatherer

_MOST_FILES = 3000
"""GitHub lists no more files of a pull request; what is not listed may be anything."""
_MOST_KNOWN = 2000
_RECENT = 5


@dataclass(frozen=True, slots=True)
class Territory:
    """Paths of a repository that a Stage lives on: files, and the folders that hold them."""

    files: frozenset[str]
    folders: frozenset[str]

    def find(self, paths: Iterable[str]) -> str:
        """The first path that lies in it, empty if none does."""
        # A path that was touched may itself be a folder, which a renderer read as a whole.
        inside = self.folders | self.files
        return next((path for path in paths if path in self.files or inside & _above(path)), "")


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

    async def judge(self, pull: PullRequest, head: CommitId) -> CheckRun:
        """The check `lockstep` of a person's pull request, to be shown on `head` (its own, or its merge group's)."""
        touched = await self._touched(pull)
        if not touched:
            return render_untouched_check(pull.number, head)
        reviews = await self.gatherer.github.list_reviews(pull.repository, pull.number)
        excluded = await self._excluded(pull)
        tallies = [await self._tally(policy, pull, reviews, excluded) for policy in self._policies(touched)]
        named = [(stage.metadata.name, path) for stage, path in touched]
        return render_touching_check(pull.number, head, named, tallies)

    # -- what it touches -------------------------------------------------------------------------------------------

    async def _touched(self, pull: PullRequest) -> list[tuple[Stage, str]]:
        """Each Stage that it touches, with a path that says so."""
        paths = await self.gatherer.github.list_pull_request_files(pull.repository, pull.number)
        stages = self.gatherer.configuration.pipeline.stages.values()
        if self._is_pipeline(pull.repository, paths):
            return [(stage, "the pipeline's configuration") for stage in stages]
        found = []
        for stage in stages:
            territory = await self._territory(stage, pull.repository)
            path = territory.find(paths) if territory is not None else ""
            if territory is not None and len(paths) >= _MOST_FILES:
                path = path or "more files than GitHub lists"
            if path:
                found.append((stage, path))
        return found

    def _is_pipeline(self, repository: Repository, paths: Sequence[str]) -> bool:
        if self.own is None or self.own[0] != repository:
            return False
        folder = self.own[1].strip("/")
        inside = any(not folder or path.startswith(f"{folder}/") for path in paths)
        return inside or len(paths) >= _MOST_FILES

    async def _territory(self, stage: Stage, repository: Repository) -> Territory | None:
        """What the Stage's newest preview in this repository read and wrote; None if it never had one."""
        project, name = stage.metadata.namespace, stage.metadata.name
        for promotion in await self.gatherer.store.list_promotions(project, name, limit=_RECENT):
            target = promotion.target
            if target is None or self.gatherer.github.repository_of(target.url) != repository:
                continue
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
            files = preview.touched | set(preview.differences)
            folders = {posixpath.dirname(path) for path in files} - {""}
            self.known[key] = Territory(frozenset(files), frozenset(folders))
        return self.known[key]

    # -- who approved it -------------------------------------------------------------------------------------------

    def _policies(self, touched: Sequence[tuple[Stage, str]]) -> list[ReviewPolicy]:
        policies: list[ReviewPolicy] = []
        for stage, _ in touched:
            policy = self.gatherer.configuration.policy(stage)
            if policy not in policies:
                policies.append(policy)
        return policies

    async def _excluded(self, pull: PullRequest) -> Mapping[str, str]:
        authors = await self.gatherer.github.list_commit_authors(pull.repository, pull.number)
        logins = {login for found in authors.values() for login in found}
        wrote = {login.lower(): "wrote a commit of it" for login in logins}
        return {**wrote, pull.author.login.lower(): "opened it"}

    async def _tally(
        self, policy: ReviewPolicy, pull: PullRequest, reviews: Sequence[Review], excluded: Mapping[str, str]
    ) -> Tally:
        if policy.auto_merge or policy.review == "None":
            # Where the policy lets releases through without a person, people's changes need none either.
            return Tally(count=0, needed=0)
        logins = sorted({review.user.login for review in reviews})
        standings = {
            login.lower(): await self.gatherer.standing(pull.repository, login, policy) for login in logins
        }
        return count_approvals(reviews, [pull.head], policy.approvals, excluded, standings)


def _above(path: str) -> frozenset[str]:
    """Every folder that a path lies in."""
    folders = []
    while path := posixpath.dirname(path):
        folders.append(path)
    return frozenset(folders)
