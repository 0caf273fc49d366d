"""Follow-up pull requests beside the walk that opens and merges them: events, queues, and promotions that end badly."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta

from bot.domain.app_manifest import CHECK
from bot.domain.files import CommitId
from bot.domain.follow_up import follow_up_branch, promotion_of_branch
from bot.domain.github import CheckRun, Conclusion, PullRequest
from bot.domain.planning import is_no_op
from bot.domain.promotion import Promotion, PromotionId, State, StepStatus
from bot.domain.review import Preview
from bot.domain.review_policy import ReviewPolicy
from bot.ports import BranchRules, Clock, Conflicted, Git, GitHub, Look, Store, TransientError
from bot.reports.follow_up import render_follow_up_check
from bot.steps.posts import check_post

_PUSHES = ("git-push", "github-push")
_SIGNED = "required_signatures"
_UNSIGNED = (
    "the rules of {branch} ask for signed commits, and what the App pushes is not signed: GitHub refuses to merge it "
    "unless the App may pass that rule"
)
_DONE = (StepStatus.SUCCEEDED, StepStatus.SKIPPED)


@dataclass(frozen=True, slots=True)
class OpenFollowUps:
    """Finds follow-ups by their names, and keeps those from being merged whose promotion does not go on."""

    store: Store
    git: Git
    github: GitHub
    rules: BranchRules
    clock: Clock

    # -- before there is one ---------------------------------------------------------------------------------------

    async def with_obstacle(self, preview: Preview, policy: ReviewPolicy) -> Preview:
        """The preview with the rules that will refuse the App's push of what is deferred, as far as GitHub tells.

        Where commits must be signed there is a warning, as nothing that git pushes for the App is.
        """
        repository = self.github.repository_of(preview.target.url)
        if repository is None or is_no_op(preview):
            return preview
        refusing = await self.rules.why_no_push(repository, preview.target.branch)
        if _SIGNED in refusing.split(", "):
            said = _UNSIGNED.format(branch=preview.target.branch)
            preview = replace(preview, warnings=(*preview.warnings, said))
        pushes = policy.write_back == "Push" and bool(preview.split.deferred.changes)
        return replace(preview, write_back=refusing) if pushes else preview

    # -- events ----------------------------------------------------------------------------------------------------

    async def find_promotion(self, pull: PullRequest) -> Promotion | None:
        """The Promotion that a pull request follows up, None if it is none of ours."""
        named = promotion_of_branch(pull.head_branch) if not pull.from_fork else None
        found = await self.store.get_promotion(named) if named is not None else None
        if found is None or found.target is None:
            return None
        ours = pull.repository.is_same(self.github.repository_of(found.target.url))
        return found if ours else None

    async def wake(self, pull: PullRequest) -> bool:
        """Have the walk that waits for a follow-up go on, after something happened to it; False if it is none.

        A segment that is in flight may have looked before it happened, so it is woken again behind that. Raises
        TransientError if the row changes at that moment.
        """
        promotion = await self.find_promotion(pull)
        if promotion is None:
            return False
        if promotion.state.ended:
            if pull.open:
                await self._show(promotion, pull, f"its promotion has ended: {promotion.reason}")
            return True
        if promotion.running:
            again = Look("pull", f"{pull.repository}#{pull.number}", "its promotion was at work")
            await self.store.request_looks([again], at=self.clock.now() + timedelta(seconds=1))
            return True
        if promotion.state is State.FULFILLING and promotion.wake_at is not None:
            look = Look("stage", f"{promotion.project}/{promotion.stage}", "its follow-up changed")
            woken = replace(promotion, wake_at=self.clock.now() - timedelta(seconds=1))
            if not await self.store.save_promotion(woken, expected=promotion, looks=[look]):
                raise TransientError("the promotion of a follow-up changed just now", retry_after=1.0)
        return True

    async def judge_group(self, pull: PullRequest, head: CommitId) -> CheckRun:
        """What a merge queue is told of a group's commit: whether it has exactly what the follow-up brings."""
        promotion = await self.find_promotion(pull)
        url = self.github.clone_url(pull.repository)
        if promotion is not None and promotion.target is not None:
            url = promotion.target.url
        checks = await self.github.list_checks(pull.repository, pull.head)
        green = any(c.name == CHECK and c.conclusion is Conclusion.SUCCESS for c in checks)
        why = "" if green else "its own check is not green"
        why = why or await self._why_group_differs(url, pull, head)
        return CheckRun(
            name=CHECK,
            head=head,
            title=why or "The queue brings what was approved",
            summary=f"Follow-up pull request #{pull.number}: {why or 'exactly what was approved'}.",
            conclusion=Conclusion.FAILURE if why else Conclusion.SUCCESS,
            external_id=f"{pull.number}/group",
        )

    async def _why_group_differs(self, url: str, pull: PullRequest, head: CommitId) -> str:
        await self.git.fetch(url)
        tip = await self.git.resolve(url, f"refs/heads/{pull.base_branch}")
        if tip is None:
            return f"the branch {pull.base_branch} is gone"
        alone = await self.git.merge_trees(url, tip, pull.head)
        if isinstance(alone, Conflicted):
            return f"it conflicts with {pull.base_branch}"
        files = await self.git.list_files(url, head)
        brings = await self.git.diff(url, tip, alone.tree)
        moved = sorted(path for path, _, after in brings if files.get(path) != after)
        return f"the queue changes {', '.join(moved[:3])} before it" if moved else ""

    # -- promotions that do not go on ------------------------------------------------------------------------------

    async def turn_red(self, promotion: Promotion, reason: str) -> None:
        """Keep open follow-ups from being merged while a promotion has stopped or failed."""
        async for pull in self._find_open(promotion):
            await self._show(promotion, pull, reason)

    async def close(self, promotion: Promotion) -> None:
        """Close the open follow-ups of a promotion that nobody will go on with, and delete their branches."""
        async for pull in self._find_open(promotion):
            await self._show(promotion, pull, "its promotion has ended")
            await self.github.update_pull_request(pull.repository, pull.number, state="closed")
            url = promotion.target.url if promotion.target is not None else ""
            await self.git.fetch(url)
            if await self.git.resolve(url, f"refs/heads/{pull.head_branch}") == pull.head:
                # People's later pushes keep it alive; a rule that keeps it harms nobody.
                await self.git.push(url, None, pull.head_branch, expected=pull.head)

    async def close_left(self, promotion_id: PromotionId) -> None:
        """Close what a promotion has left that ended and that another one has taken over from."""
        promotion = await self.store.get_promotion(promotion_id)
        if promotion is not None and promotion.state.ended and not promotion.blocked:
            await self.close(promotion)

    async def _find_open(self, promotion: Promotion) -> AsyncIterator[PullRequest]:
        """Those of pushes that have begun and are not done, by their names: the journal may not know of them yet."""
        repository = self.github.repository_of(promotion.target.url) if promotion.target is not None else None
        if repository is None or not promotion.effects_begun:
            return
        runs = await self.store.list_steps(promotion.id)
        for index, step in enumerate(promotion.steps):
            run = runs.get(step.alias)
            if step.uses not in _PUSHES or run is None or run.status in _DONE:
                continue
            for attempt in range(1, promotion.attempt + 1):
                name = follow_up_branch(promotion, index, attempt)
                pull = await self.github.find_pull_request(repository, head_branch=name)
                if pull is not None:
                    yield pull

    async def _show(self, promotion: Promotion, pull: PullRequest, problem: str) -> None:
        check = render_follow_up_check(promotion, pull.head, problem)
        await self.store.queue_post(check_post(pull.repository, check))
