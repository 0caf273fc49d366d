"""`git-wait-for-pr`: waits until a pull request is merged; one that is closed unmerged ends the promotion."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.promotion import StepStatus
from bot.domain.review import StepClass, StepKind
from bot.domain.values import Unknown, Value
from bot.ports import GitHub
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.options import Options
from bot.steps.pull_requests import describe, find_repository, pull_number

KIND = StepKind("git-wait-for-pr", StepClass.REVIEW)


@dataclass(frozen=True, slots=True)
class GitWaitForPr:
    """Reads a pull request."""

    github: GitHub

    @property
    def kind(self) -> StepKind:
        """A review."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """What it gives is known after the merge."""
        find_repository(self.github, KIND.name, Options(KIND.name, config).address("repoURL"))
        shown: Value = {
            name: Unknown(f"known after step: {context.alias}.pr.{name}")
            for name in ("id", "url", "open", "merged")
        }
        return StepResult(None, {"pr": shown, "commit": Unknown("known after merge: commit")})

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Running while it is open."""
        options = Options(KIND.name, config)
        repository = find_repository(self.github, KIND.name, options.address("repoURL"))
        pull = await self.github.get_pull_request(repository, pull_number(options))
        if pull.merged:
            return StepResult(output={"pr": describe(pull), "commit": pull.merge_commit or ""})
        if pull.open:
            return StepResult(
                StepStatus.RUNNING,
                output={"pr": describe(pull)},
                message=f"{pull.url} is open",
                retry_after=options.duration("pollInterval", 30.0),
            )
        who = f" by {pull.closed_by}" if pull.closed_by else ""
        return failed(context.alias, f"git-wait-for-pr: {pull.url} was closed{who} without being merged")
