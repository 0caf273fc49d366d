"""`git-commit`: records all changes of a checkout as one commit.

Kargo's statuses: nothing staged is Skipped, and `commit` is the checkout's head either way. After a merge a checkout
whose change the pull request carried has nothing staged any more; the merge is then its commit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from bot.domain.files import Change, CommitId
from bot.domain.promotion import StepStatus
from bot.domain.review import CommitRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.urls import normalize_git_url
from bot.domain.values import Unknown, Value
from bot.ports import Git, Signature, TerminalError
from bot.steps.checkout import Checkout
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.marks import message_text
from bot.steps.messages import release_message
from bot.steps.options import Options
from bot.steps.worktree import clean_path

KIND = StepKind("git-commit", StepClass.COMMIT)

_SENTINEL = re.compile(rb"lockstep-unknown-\d+-")


@dataclass(frozen=True, slots=True)
class Config:
    """The checkout and the message, which may hold marks; `author` is deprecated in Kargo in favour of git-clone's."""

    path: str
    message: Value
    author: tuple[str, str] | None


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    author = options.part("author")
    return Config(
        path=clean_path(options.address("path")),
        message=options.text("message"),
        author=(author.address("name"), author.address("email")) if author.has("name") else None,
    )


@dataclass(frozen=True, slots=True)
class GitCommit:
    """Writes a commit object into the mirror; nothing is pushed."""

    git: Git

    @property
    def kind(self) -> StepKind:
        """A commit."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Record what would be committed."""
        wanted = parse(config)
        checkout = context.tree.checkout_at(wanted.path)
        changes = await context.tree.staged(wanted.path)
        if not changes:
            return _nothing(checkout.commit, CommitRecord(wanted.path, wanted.message, ()))
        context.tree.commit(wanted.path, wanted.message, changes)
        return StepResult(
            output={"commit": Unknown("known after merge: commit")},
            record=CommitRecord(wanted.path, wanted.message, changes),
        )

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Make the commit; with the same tree, parent and journal a second run makes the same one."""
        wanted = parse(config)
        checkout = context.tree.checkout_at(wanted.path)
        changes = await context.tree.staged(wanted.path)
        record = CommitRecord(wanted.path, wanted.message, changes)
        if not changes:
            if carried_by_merge(checkout, context):
                return StepResult(output={"commit": context.merge or ""}, record=record)
            return _nothing(checkout.commit, record)
        text = message_text(wanted.message, "git-commit: the message")
        if not text.strip():
            return failed(
                context.alias, f"git-commit in {wanted.path!r}: the message is empty; git refuses that"
            )
        _refuse_sentinels(changes)
        commit = await self._commit(wanted, checkout, changes, release_message(text, context), context)
        checkout.head = commit
        context.tree.commit(wanted.path, wanted.message, changes)
        return StepResult(output={"commit": commit}, record=record)

    async def _commit(
        self,
        wanted: Config,
        checkout: Checkout,
        changes: tuple[Change, ...],
        message: str,
        context: StepContext,
    ) -> CommitId:
        url = checkout.pin.url
        written = {change.path: change.after for change in changes}
        tree = await self.git.write_tree(url, checkout.head, written)
        name, email = wanted.author or checkout.author or context.author
        parents = () if checkout.head is None else (checkout.head,)
        return await self.git.commit(url, tree, parents, message, Signature(name, email, _date(context)))


def _date(context: StepContext) -> datetime:
    """When the step first began in this attempt: the same on every run, so that the commit's id is."""
    run = context.run
    if run is not None and run.begun_at is not None:
        return run.begun_at
    return context.now


def carried_by_merge(checkout: Checkout, context: StepContext) -> bool:
    """Whether the merged pull request brought this checkout's change: it is the target's, and there was one."""
    target = context.promotion.target
    if context.merge is None or target is None or checkout.pin.branch != target.branch:
        return False
    if normalize_git_url(checkout.pin.url) != normalize_git_url(target.url):
        return False
    approved = context.approved.record if context.approved is not None else None
    return not isinstance(approved, CommitRecord) or bool(approved.changes)


def _nothing(head: Value, record: CommitRecord) -> StepResult:
    return StepResult(
        status=StepStatus.SKIPPED, output={"commit": head}, message="nothing to commit", record=record
    )


def _refuse_sentinels(changes: tuple[Change, ...]) -> None:
    for change in changes:
        if change.after is not None and _SENTINEL.search(change.after.data):
            raise TerminalError(
                f"git-commit: {change.path} holds a stand-in for a value that is not known; it is not committed"
            )
