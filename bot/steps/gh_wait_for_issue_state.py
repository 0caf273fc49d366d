"""`gh-wait-for-issue-state`: waits until an expression over an issue holds; before the cut it is a merge gate."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.github import IssueNumber
from bot.domain.promotion import StepStatus
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Value, is_tainted
from bot.expressions.operands import Operand
from bot.ports import GitHub, Issues
from bot.steps.anticipation import is_behind_cut
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.gates import ask_later, show_look
from bot.steps.github_issues import describe_issue, read_id
from bot.steps.marks import show_scalar
from bot.steps.options import Options
from bot.steps.pull_requests import find_repository
from bot.steps.queries import holds

KIND = StepKind("gh-wait-for-issue-state", StepClass.WAIT)


@dataclass(frozen=True, slots=True)
class Config:
    """Which issue, whose number may hold marks, and what it means; seconds between two looks."""

    url: str
    number: Value
    success: str
    failure: str
    poll_interval: float


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown repository."""
    options = Options(KIND.name, given)
    return Config(
        options.address("repoURL"),
        options.value("issueNumber"),
        options.address("successExpression"),
        options.address("failureExpression"),
        options.duration("pollInterval", 30.0),
    )


@dataclass(frozen=True, slots=True)
class GhWaitForIssueState:
    """Waits."""

    github: GitHub
    issues: Issues

    @property
    def kind(self) -> StepKind:
        """A wait."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Whether it holds now, or that it is asked after the merge."""
        wanted = parse(config)
        find_repository(self.github, KIND.name, wanted.url)
        subject = f"issue {wanted.url} #{show_scalar(wanted.number)}"
        if is_behind_cut(context) or is_tainted(wanted.number):
            return ask_later(subject)
        return show_look(subject, await self._look(wanted, context))

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Look, and look again later."""
        return await self._look(parse(config), context)

    async def _look(self, wanted: Config, context: StepContext) -> StepResult:
        repository = find_repository(self.github, KIND.name, wanted.url)
        number = IssueNumber(read_id(wanted.number, "gh-wait-for-issue-state: issueNumber"))
        issue = await self.issues.get_issue(repository, number)
        if issue is None:
            return failed(context.alias, f"gh-wait-for-issue-state: {repository} has no issue #{number}")
        names: dict[str, Operand] = {"issue": dict(describe_issue(issue))}
        seen = f"{repository}#{number} is {issue.state}, labels: {', '.join(issue.labels) or 'none'}"
        if wanted.failure and holds(wanted.failure, names, "gh-wait-for-issue-state: failureExpression"):
            return failed(context.alias, f"gh-wait-for-issue-state: {seen}; {wanted.failure} holds")
        if holds(wanted.success, names, "gh-wait-for-issue-state: successExpression"):
            return StepResult()
        return StepResult(
            StepStatus.RUNNING,
            message=f"{seen}; {wanted.success} does not hold yet",
            retry_after=wanted.poll_interval,
        )
