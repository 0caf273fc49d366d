"""`git-merge-pr`: has the pull request that the task opened merged by the App.

Kargo merges whatever the server lets through, at once. Here the step says who merges and by which method: the gate
does, once every gate is open and the check is green on the head that was seen, whether `wait` is set or not.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.review import MergeRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Unknown
from bot.ports import GitHub
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.options import Options
from bot.steps.pull_requests import check_is_ours, find_own

KIND = StepKind("git-merge-pr", StepClass.REVIEW)

METHODS = ("merge", "squash", "rebase")
"""GitHub's words for the ways to merge; the first is what it does unless told otherwise."""


@dataclass(frozen=True, slots=True)
class GitMergePr:
    """Asks for the merge, and reads which commit it left."""

    github: GitHub

    @property
    def kind(self) -> StepKind:
        """A review."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """How it is to be merged; the commit is known after the merge."""
        options = Options(KIND.name, config)
        check_is_ours(KIND.name, options, context)
        method = options.address("mergeMethod", METHODS[0]).lower()
        if method not in METHODS:
            return failed(
                context.alias, f"git-merge-pr: mergeMethod {method!r} is none of {', '.join(METHODS)}"
            )
        output = {"commit": Unknown("known after merge: commit")}
        return StepResult(None, output, record=MergeRecord(method))

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Give the merge."""
        pull = await find_own(KIND.name, self.github, Options(KIND.name, config), context)
        if not pull.merged:
            return failed(context.alias, f"git-merge-pr: {pull.url} is not merged")
        return StepResult(output={"commit": pull.merge_commit or ""})
