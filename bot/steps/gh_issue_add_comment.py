"""`gh-issue-add-comment`: comments on an issue or pull request, once for each step of a Promotion.

A hidden marker tells our comment apart, so a second run edits it instead of adding another.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.github import PullNumber
from bot.domain.review import EffectRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Unknown, Value
from bot.ports import GitHub
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult
from bot.steps.marks import message_text, show_scalar
from bot.steps.options import Options, known_text
from bot.steps.pull_requests import find_repository

KIND = StepKind("gh-issue-add-comment", StepClass.NOTE)


@dataclass(frozen=True, slots=True)
class Config:
    """Where, and what; the number and the body may hold marks."""

    url: str
    number: Value
    body: Value


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown repository."""
    options = Options(KIND.name, given)
    return Config(options.address("repoURL"), options.value("issueNumber"), options.text("body"))


@dataclass(frozen=True, slots=True)
class GhIssueAddComment:
    """Writes a note."""

    github: GitHub

    @property
    def kind(self) -> StepKind:
        """A note."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Show the comment."""
        wanted = parse(config)
        find_repository(self.github, KIND.name, wanted.url)
        output: dict[str, Value] = {
            name: Unknown(f"known after step: {context.alias}.{name}") for name in ("commentID", "url")
        }
        address = f"{wanted.url} #{show_scalar(wanted.number)}"
        record = EffectRecord("comment", address, (("body", wanted.body),), quiet=True)
        return StepResult(None, output, record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Post it, or make ours say this."""
        wanted = parse(config)
        repository = find_repository(self.github, KIND.name, wanted.url)
        body = message_text(wanted.body, "gh-issue-add-comment: the body")
        number = PullNumber(int(known_text(wanted.number, "gh-issue-add-comment: issueNumber")))
        marker = f"lockstep:step:{context.promotion.id}:{context.alias}"
        comment = await self.github.post_comment(repository, number, body, marker=marker)
        url = f"{wanted.url.removesuffix('/').removesuffix('.git')}/issues/{number}#issuecomment-{comment}"
        return StepResult(output={"commentID": comment, "url": url})
