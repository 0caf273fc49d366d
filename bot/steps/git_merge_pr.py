"""`git-merge-pr`: merges a pull request with the head that was seen, and only when our check is green on it.

Kargo tries whatever the server lets through; here the gate's check must have succeeded first, and it is waited for
whether `wait` is set or not.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.github import Conclusion, PullRequest, Repository
from bot.domain.promotion import StepStatus
from bot.domain.review import StepClass, StepKind
from bot.domain.values import Unknown
from bot.ports import GitHub, MergeDone
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.options import Options
from bot.steps.pull_requests import find_repository, pull_number

KIND = StepKind("git-merge-pr", StepClass.REVIEW)

CHECK = "lockstep"
"""The name of the required check."""


@dataclass(frozen=True, slots=True)
class GitMergePr:
    """Merges a pull request."""

    github: GitHub

    @property
    def kind(self) -> StepKind:
        """A review."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """The commit is known after the merge."""
        find_repository(self.github, KIND.name, Options(KIND.name, config).address("repoURL"))
        del context
        return StepResult(None, {"commit": Unknown("known after merge: commit")})

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Merge; one that is merged already counts as done."""
        options = Options(KIND.name, config)
        repository = find_repository(self.github, KIND.name, options.address("repoURL"))
        pull = await self.github.get_pull_request(repository, pull_number(options))
        if pull.merged:
            return StepResult(output={"commit": pull.merge_commit or ""})
        if not pull.open:
            return failed(context.alias, f"git-merge-pr: {pull.url} is closed and not merged")
        pause = options.duration("pollInterval", 10.0)
        if not await self._is_green(repository, pull):
            message = f"{pull.url} waits for the check {CHECK!r}"
            return StepResult(StepStatus.RUNNING, message=message, retry_after=pause)
        reason = _why_not_ready(pull)
        if not reason:
            outcome = await self.github.merge_pull_request(
                repository,
                pull.number,
                head=pull.head,
                method=options.address("mergeMethod", "merge"),
                title=pull.title,
                message="",
            )
            if isinstance(outcome, MergeDone):
                return StepResult(output={"commit": outcome.commit})
            if outcome.head_moved:
                return StepResult(
                    StepStatus.RUNNING, message=f"{pull.url} got new commits", retry_after=pause
                )
            reason = outcome.message
        if options.flag("wait") and pull.mergeable is not False:
            return StepResult(StepStatus.RUNNING, message=f"{pull.url}: {reason}", retry_after=pause)
        return failed(context.alias, f"git-merge-pr: {pull.url} cannot be merged: {reason}")

    async def _is_green(self, repository: Repository, pull: PullRequest) -> bool:
        checks = await self.github.list_checks(repository, pull.head)
        return any(check.name == CHECK and check.conclusion is Conclusion.SUCCESS for check in checks)


def _why_not_ready(pull: PullRequest) -> str:
    if pull.draft:
        return "it is a draft"
    if pull.mergeable is False:
        return "it conflicts with its base branch"
    if pull.mergeable is None:
        return "GitHub has not found out yet whether it can be merged"
    return ""
