"""`gha-wait-for-workflow`: waits for a run of GitHub Actions to end, and if asked to, that it ended in one way.

Without `expectedConclusion` any end will do, as in Kargo.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.github import RunId
from bot.domain.promotion import StepStatus
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Unknown, Value, is_tainted
from bot.ports import GitHub, Workflows
from bot.steps.anticipation import is_behind_cut
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.gates import ask_later, show_look
from bot.steps.github_issues import read_id
from bot.steps.marks import show_scalar
from bot.steps.options import Options
from bot.steps.pull_requests import find_repository

KIND = StepKind("gha-wait-for-workflow", StepClass.WAIT)


@dataclass(frozen=True, slots=True)
class Config:
    """Which run, whose id may hold marks, and how it must end; seconds between two looks."""

    url: str
    run: Value
    expected: str
    poll_interval: float


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown repository."""
    options = Options(KIND.name, given)
    return Config(
        options.address("repoURL"),
        options.value("runID"),
        options.address("expectedConclusion"),
        options.duration("pollInterval", 30.0),
    )


@dataclass(frozen=True, slots=True)
class GhaWaitForWorkflow:
    """Waits."""

    github: GitHub
    workflows: Workflows

    @property
    def kind(self) -> StepKind:
        """A wait."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Whether it has ended, or that it is asked after the merge."""
        wanted = parse(config)
        find_repository(self.github, KIND.name, wanted.url)
        subject = f"run {show_scalar(wanted.run)} of {wanted.url}"
        later: dict[str, Value] = {"conclusion": Unknown(f"known after step: {context.alias}.conclusion")}
        if is_behind_cut(context) or is_tainted(wanted.run):
            return ask_later(subject, later)
        return show_look(subject, await self._look(wanted, context), later)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Look, and look again later."""
        return await self._look(parse(config), context)

    async def _look(self, wanted: Config, context: StepContext) -> StepResult:
        repository = find_repository(self.github, KIND.name, wanted.url)
        number = RunId(read_id(wanted.run, "gha-wait-for-workflow: runID"))
        run = await self.workflows.get_run(repository, number)
        if run is None:
            return failed(context.alias, f"gha-wait-for-workflow: {repository} has no run {number}")
        if run.status != "completed":
            return StepResult(
                StepStatus.RUNNING, message=f"{run.url} is {run.status}", retry_after=wanted.poll_interval
            )
        if wanted.expected and run.conclusion != wanted.expected:
            return failed(
                context.alias,
                f"gha-wait-for-workflow: {run.url} ended with {run.conclusion}, not with {wanted.expected}",
            )
        return StepResult(output={"conclusion": run.conclusion})
