"""`gh-issue-delete-comment`: removes a comment; one that is gone counts as removed."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.github import CommentId
from bot.domain.review import EffectRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Value
from bot.ports import GitHub, Issues
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult
from bot.steps.github_issues import read_id
from bot.steps.marks import show_scalar
from bot.steps.options import Options
from bot.steps.pull_requests import find_repository

KIND = StepKind("gh-issue-delete-comment", StepClass.NOTE)


@dataclass(frozen=True, slots=True)
class Config:
    """Which comment; its id may hold marks."""

    url: str
    comment: Value


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown repository."""
    options = Options(KIND.name, given)
    return Config(options.address("repoURL"), options.value("commentID"))


@dataclass(frozen=True, slots=True)
class GhIssueDeleteComment:
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
        record = EffectRecord("delete a comment", address, quiet=True)
        return StepResult(record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Delete it."""
        del context
        wanted = parse(config)
        repository = find_repository(self.github, KIND.name, wanted.url)
        comment = CommentId(read_id(wanted.comment, "gh-issue-delete-comment: commentID"))
        removed = await self.issues.delete_comment(repository, comment)
        return StepResult(message="" if removed else "the comment was gone already")
