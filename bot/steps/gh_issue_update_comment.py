"""`gh-issue-update-comment`: sets the body of a comment; one that is gone fails."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.github import CommentId
from bot.domain.review import EffectRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Value
from bot.ports import GitHub, Issues
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.github_issues import read_id
from bot.steps.marks import message_text, show_scalar
from bot.steps.options import Options
from bot.steps.pull_requests import find_repository

KIND = StepKind("gh-issue-update-comment", StepClass.NOTE)


@dataclass(frozen=True, slots=True)
class Config:
    """Which comment, and what it shall say; both may hold marks."""

    url: str
    comment: Value
    body: Value


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown repository."""
    options = Options(KIND.name, given)
    return Config(options.address("repoURL"), options.value("commentID"), options.text("body"))


@dataclass(frozen=True, slots=True)
class GhIssueUpdateComment:
    """Writes a note."""

    github: GitHub
    issues: Issues

    @property
    def kind(self) -> StepKind:
        """A note."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Show the comment."""
        del context
        wanted = parse(config)
        find_repository(self.github, KIND.name, wanted.url)
        address = f"{wanted.url} comment {show_scalar(wanted.comment)}"
        record = EffectRecord("update a comment", address, (("body", wanted.body),), quiet=True)
        return StepResult(record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Update it."""
        wanted = parse(config)
        repository = find_repository(self.github, KIND.name, wanted.url)
        comment = CommentId(read_id(wanted.comment, "gh-issue-update-comment: commentID"))
        body = message_text(wanted.body, "gh-issue-update-comment: body")
        if not await self.issues.update_comment(repository, comment, body):
            return failed(
                context.alias,
                f"gh-issue-update-comment: {repository} has no comment {comment}; it was deleted, or lies elsewhere",
            )
        return StepResult()
