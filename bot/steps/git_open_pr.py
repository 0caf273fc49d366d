"""`git-open-pr`: opens the promotion's pull request where the task wants it.

Kargo opens a pull request beside the promotion. Here it is the promotion's own: the preview says what it shall be, the
gate opens it with everything that protects it, and after the merge the step gives what Kargo's would. As in Kargo it
is Skipped if there is nothing to review; title and body default to the message of the task's last commit. `prNumber`
stands beside `pr`, for pipelines written before Kargo 1.7.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.files import File
from bot.domain.promotion import StepStatus
from bot.domain.review import CommitRecord, PublishRecord, RequestRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.urls import normalize_git_url
from bot.domain.values import Text, Value
from bot.ports import Git, GitHub
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.options import Options
from bot.steps.pull_requests import find_own, find_repository, is_free, opened_by

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
    """Says what the pull request shall be, and which it became."""

    git: Git
    github: GitHub

    @property
    def kind(self) -> StepKind:
        """A review: the pull request is the promotion's."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """What the pull request shall be; Skipped if it would hold nothing."""
        wanted = parse(config)
        find_repository(self.github, KIND.name, wanted.url)
        pushed = _find_push(wanted, context)
        if pushed is None:
            return failed(
                context.alias,
                f"git-open-pr: no step before it pushes the branch {wanted.source!r} of {wanted.url}; only a branch "
                "that the task itself pushes can be reviewed, so add git-push before it",
            )
        pin = context.tree.checkout_at(pushed.checkout).pin
        if pin.branch != wanted.target or wanted.source == wanted.target:
            return failed(
                context.alias,
                f"git-open-pr: {pushed.checkout!r} is a checkout of {pin.branch or 'no branch'!r}, but the pull "
                f"request goes from {wanted.source!r} to {wanted.target!r}; only a change made on the target branch "
                "is supported",
            )
        record = _request(wanted, pushed, context)
        opened = context.promotion.pull is not None and context.promotion.branch == wanted.source
        if not opened:
            if not _differs(pushed, context):
                return StepResult(StepStatus.SKIPPED, message="there is nothing to review", record=record)
            if not await is_free(self.git, pushed.url, wanted.source, pin.commit, context.promotion):
                return failed(
                    context.alias,
                    f"git-open-pr: the branch {wanted.source!r} of {wanted.url} is there already and holds commits "
                    f"that are neither in {wanted.target!r} nor of an earlier promotion; merge or delete it, or let "
                    "git-push generate the branch",
                )
        return StepResult(None, _output(context), record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Give the promotion's pull request, which the gate has opened."""
        pull = await find_own(KIND.name, self.github, Options(KIND.name, config), context)
        shown: Value = {"id": pull.number, "url": pull.url}
        return StepResult(output={"pr": shown, "prNumber": pull.number}, message=pull.url)


def _find_push(wanted: Config, context: StepContext) -> PublishRecord | None:
    """What an earlier step pushes to the source branch, the last if there are several."""
    url = normalize_git_url(wanted.url)
    pushes = (r.record for r in reversed(context.earlier) if isinstance(r.record, PublishRecord))
    return next((p for p in pushes if p.branch == wanted.source and normalize_git_url(p.url) == url), None)


def _differs(pushed: PublishRecord, context: StepContext) -> bool:
    """Whether what the task pushes changes anything: one commit may take back what another brought."""
    before: dict[str, File | None] = {}
    after: dict[str, File | None] = {}
    for report in context.earlier:
        if isinstance(report.record, CommitRecord) and report.record.checkout == pushed.checkout:
            for change in report.record.changes:
                before.setdefault(change.path, change.before)
                after[change.path] = change.after
    return pushed.commits > 0 and before != after


def _request(wanted: Config, pushed: PublishRecord, context: StepContext) -> RequestRecord:
    records = (report.record for report in reversed(context.earlier))
    commit = next((r for r in records if isinstance(r, CommitRecord) and r.checkout == pushed.checkout), None)
    subject, rest = _halves(commit.message) if commit is not None else (None, None)
    return RequestRecord(
        checkout=pushed.checkout,
        url=pushed.url,
        source=wanted.source,
        target=wanted.target,
        title=wanted.title if wanted.title is not None else subject,
        description=wanted.description if wanted.description is not None else rest,
        labels=wanted.labels,
    )


def _halves(message: Value) -> tuple[Value, Value]:
    """Subject and body of a commit message, its holes shown."""
    text = message if isinstance(message, str) else str(message) if isinstance(message, Text) else ""
    subject, _, rest = text.strip().partition("\n")
    return subject, rest.strip()


def _output(context: StepContext) -> dict[str, Value]:
    shown: Value = {name: opened_by(context.alias, f"pr.{name}") for name in ("id", "url")}
    return {"pr": shown, "prNumber": opened_by(context.alias, "prNumber")}
