"""`git-wait-for-pr`: ends when the pull request that the task opened is merged.

Nothing waits in this step. The gate brings a promotion behind it only after the merge, and one whose pull request is
closed unmerged has ended before; so it gives what Kargo's step gives then.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Unknown, Value
from bot.ports import GitHub
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.options import Options
from bot.steps.pull_requests import check_is_ours, describe, find_own

KIND = StepKind("git-wait-for-pr", StepClass.REVIEW)


@dataclass(frozen=True, slots=True)
class GitWaitForPr:
    """Reads the promotion's pull request."""

    github: GitHub

    @property
    def kind(self) -> StepKind:
        """A review."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """What it gives is known after the merge."""
        check_is_ours(KIND.name, Options(KIND.name, config), context)
        shown: Value = {
            name: Unknown(f"known after step: {context.alias}.pr.{name}")
            for name in ("id", "url", "open", "merged")
        }
        return StepResult(None, {"pr": shown, "commit": Unknown("known after merge: commit")})

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Give the merge."""
        pull = await find_own(KIND.name, self.github, Options(KIND.name, config), context)
        if not pull.merged:
            return failed(context.alias, f"git-wait-for-pr: {pull.url} is not merged")
        return StepResult(output={"pr": describe(pull), "commit": pull.merge_commit or ""})
