"""`gh-update-issue`: sets title, body, state, labels and assignees of an issue; what is so already is not sent."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.github import IssueNumber
from bot.domain.review import EffectRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Value
from bot.ports import GitHub, Issues, TerminalError
from bot.ports.issues import IssueChange
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult
from bot.steps.github_issues import read_id, say_all, texts
from bot.steps.marks import message_text, show_scalar
from bot.steps.options import Options
from bot.steps.pull_requests import find_repository

KIND = StepKind("gh-update-issue", StepClass.NOTE)

_PARTS = ("title", "body", "state", "addLabels", "removeLabels", "assignees")


@dataclass(frozen=True, slots=True)
class Config:
    """Which issue, and the parts that are given; values may hold marks, the state may not."""

    url: str
    number: Value
    state: str
    options: Options

    @property
    def parts(self) -> tuple[tuple[str, Value], ...]:
        """What is given, as a reviewer sees it."""
        return tuple((name, self.options.value(name)) for name in _PARTS if name in self.options.values)


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address, and if nothing is to be changed."""
    options = Options(KIND.name, given)
    wanted = Config(
        options.address("repoURL"), options.value("issueNumber"), options.address("state"), options
    )
    if not wanted.parts:
        raise TerminalError(f"gh-update-issue: nothing is to be changed; give one of {', '.join(_PARTS)}")
    return wanted


@dataclass(frozen=True, slots=True)
class GhUpdateIssue:
    """Writes a note."""

    github: GitHub
    issues: Issues

    @property
    def kind(self) -> StepKind:
        """A note."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Show the changes."""
        del context
        wanted = parse(config)
        find_repository(self.github, KIND.name, wanted.url)
        address = f"{wanted.url} #{show_scalar(wanted.number)}"
        return StepResult(record=EffectRecord("update an issue", address, wanted.parts, quiet=True))

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Make it so."""
        del context
        wanted = parse(config)
        repository = find_repository(self.github, KIND.name, wanted.url)
        number = IssueNumber(read_id(wanted.number, "gh-update-issue: issueNumber"))
        await self.issues.update_issue(repository, number, _change(wanted.options))
        return StepResult()


def _change(options: Options) -> IssueChange:
    def text(name: str) -> str | None:
        value = options.value(name)
        return None if value is None else message_text(value, f"gh-update-issue: {name}")

    def listed(name: str) -> tuple[str, ...]:
        return say_all(texts(options, name), f"gh-update-issue: {name}")

    return IssueChange(
        title=text("title"),
        body=text("body"),
        state=text("state"),
        add_labels=listed("addLabels"),
        remove_labels=listed("removeLabels"),
        assignees=listed("assignees") if options.has("assignees") else None,
    )
