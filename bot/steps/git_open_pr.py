"""`git-open-pr`: opens a pull request, or adopts the open one of the same branches.

As in Kargo: Skipped if the branches do not differ; title and body default to the message of the source's last commit.
`prNumber` stands beside `pr`, for pipelines written before Kargo 1.7.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.github import PullRequest
from bot.domain.promotion import StepStatus
from bot.domain.review import EffectRecord, PublishRecord, StepClass, StepKind
from bot.domain.urls import normalize_git_url
from bot.domain.values import Unknown, Value
from bot.ports import Git, GitHub
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.marks import message_text
from bot.steps.options import Options
from bot.steps.pull_requests import find_repository

KIND = StepKind("git-open-pr", StepClass.REVIEW)


@dataclass(frozen=True, slots=True)
class Config:
    """The branches, and title, body and labels; title and body may hold marks, None means the default."""

    url: str
    source: str
    target: str
    title: Value
    description: Value
    labels: tuple[str, ...]


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    return Config(
        url=options.address("repoURL"),
        source=options.address("sourceBranch"),
        target=options.address("targetBranch"),
        title=options.value("title"),
        description=options.value("description"),
        labels=options.addresses("labels"),
    )


@dataclass(frozen=True, slots=True)
class GitOpenPr:
    """Opens pull requests."""

    git: Git
    github: GitHub

    @property
    def kind(self) -> StepKind:
        """A review: the pull request is the promotion's."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Show it; Skipped if there will be no difference."""
        wanted = parse(config)
        find_repository(self.github, KIND.name, wanted.url)
        if not _pushes(wanted, context) and not await self._differ(wanted):
            return StepResult(StepStatus.SKIPPED, message="the branches do not differ")
        details: list[tuple[str, Value]] = [("from", wanted.source), ("to", wanted.target)]
        if wanted.title is not None:
            details.append(("title", wanted.title))
        output: dict[str, Value] = {
            "pr": {
                "id": Unknown(f"known after step: {context.alias}.pr.id"),
                "url": Unknown(f"known after step: {context.alias}.pr.url"),
            },
            "prNumber": Unknown(f"known after step: {context.alias}.prNumber"),
        }
        record = EffectRecord("open a pull request", wanted.url, tuple(details), quiet=True)
        return StepResult(None, output, record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Open it; an open one of the same branches is adopted."""
        wanted = parse(config)
        repository = find_repository(self.github, KIND.name, wanted.url)
        await self.git.fetch(wanted.url)
        head = await self.git.resolve(wanted.url, f"refs/heads/{wanted.source}")
        if head is None:
            return failed(
                context.alias,
                f"git-open-pr: there is no branch {wanted.source!r} in {wanted.url}; push it with git-push first",
            )
        found = await self.github.find_pull_request(repository, head_branch=wanted.source)
        if found is not None and found.base_branch == wanted.target and found.head == head:
            return _opened(found)
        if not await self._differ(wanted):
            return StepResult(StepStatus.SKIPPED, message="the branches do not differ")
        message = (await self.git.read_commit(wanted.url, head)).message
        subject, _, rest = message.partition("\n")
        title = message_text(wanted.title, "git-open-pr: the title") if wanted.title is not None else subject
        body = rest.strip()
        if wanted.description is not None:
            body = message_text(wanted.description, "git-open-pr: the description")
        pull = await self.github.open_pull_request(
            repository, head_branch=wanted.source, base_branch=wanted.target, title=title, body=body
        )
        if wanted.labels:
            await self.github.set_labels(repository, pull.number, wanted.labels)
        return _opened(pull)

    async def _differ(self, wanted: Config) -> bool:
        """Whether the source branch has a change that the target has not."""
        source = await self.git.resolve(wanted.url, f"refs/heads/{wanted.source}")
        target = await self.git.resolve(wanted.url, f"refs/heads/{wanted.target}")
        if source is None:
            return False
        if target is None:
            return True
        return bool(await self.git.diff(wanted.url, target, source))


def _pushes(wanted: Config, context: StepContext) -> bool:
    """Whether an earlier step will push something to the source branch."""
    url = normalize_git_url(wanted.url)
    return any(
        isinstance(report.record, PublishRecord)
        and report.record.branch == wanted.source
        and report.record.commits > 0
        and normalize_git_url(report.record.url) == url
        for report in context.earlier
    )


def _opened(pull: PullRequest) -> StepResult:
    shown: Value = {"id": pull.number, "url": pull.url}
    return StepResult(output={"pr": shown, "prNumber": pull.number}, message=pull.url)
