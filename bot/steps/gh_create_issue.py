"""`gh-create-issue`: opens an issue, once for each step of a Promotion, and notes its number with the Freight.

A hidden marker tells our issue apart, so a second run finds it instead of opening another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.domain.freight import FreightStatus
from bot.domain.review import EffectRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Unknown, Value
from bot.ports import GitHub, Issues
from bot.ports.issues import NewIssue
from bot.ports.store import FreightStore
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult
from bot.steps.github_issues import say_all, texts
from bot.steps.marks import message_text
from bot.steps.options import Options
from bot.steps.pull_requests import find_repository

KIND = StepKind("gh-create-issue", StepClass.NOTE)

_KEY = "github-issue-number"
"""Where Kargo keeps the number in the Freight's metadata."""


@dataclass(frozen=True, slots=True)
class Config:
    """Where, and what; everything but the place and the metadata's key may hold marks."""

    url: str
    title: Value
    body: Value
    labels: tuple[Value, ...]
    assignees: tuple[Value, ...]
    key: str


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    return Config(
        options.address("repoURL"),
        options.text("title"),
        options.text("body"),
        texts(options, "labels"),
        texts(options, "assignees"),
        options.address("issueAlias") or _KEY,
    )


@dataclass(frozen=True, slots=True)
class GhCreateIssue:
    """Writes a note."""

    github: GitHub
    issues: Issues
    store: FreightStore

    @property
    def kind(self) -> StepKind:
        """A note."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Show the issue."""
        wanted = parse(config)
        find_repository(self.github, KIND.name, wanted.url)
        output: dict[str, Value] = {
            name: Unknown(f"known after step: {context.alias}.{name}") for name in ("number", "url")
        }
        details: list[tuple[str, Value]] = [("title", wanted.title), ("body", wanted.body)]
        details += [("labels", list(wanted.labels))] if wanted.labels else []
        details += [("assignees", list(wanted.assignees))] if wanted.assignees else []
        record = EffectRecord("open an issue", wanted.url, (*details, ("kept as", wanted.key)), quiet=True)
        return StepResult(None, output, record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Open it, or find the one of an earlier run."""
        wanted = parse(config)
        repository = find_repository(self.github, KIND.name, wanted.url)
        promotion = context.promotion
        issue = await self.issues.create_issue(
            repository,
            NewIssue(
                message_text(wanted.title, "gh-create-issue: title"),
                message_text(wanted.body, "gh-create-issue: body"),
                f"lockstep:step:{promotion.id}:{context.alias}",
                say_all(wanted.labels, "gh-create-issue: labels"),
                say_all(wanted.assignees, "gh-create-issue: assignees"),
            ),
            since=promotion.created_at,
        )

        def note(status: FreightStatus) -> FreightStatus:
            return replace(status, metadata={**status.metadata, wanted.key: issue.number})

        await self.store.change_freight_status(promotion.project, promotion.freight.name, note)
        return StepResult(output={"number": issue.number, "url": issue.url})
