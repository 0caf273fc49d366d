"""How a release commit reaches a protected branch: by a follow-up pull request, which the App opens and merges.

Everything is found by looking, under names that follow from the work: the branch, the pull request, the merge. The
required check on it is green only while its merge brings exactly what the walk has committed, which is the approved
patch with its holes filled; what it left on the branch is read back and compared once more (section 8 of the review
gate).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, assert_never

from bot.domain.app_manifest import CHECK
from bot.domain.compare import compare_patch, find_filled
from bot.domain.digest import DIGEST_LENGTH
from bot.domain.files import Change, CommitId
from bot.domain.follow_up import (
    Closed,
    FollowUp,
    FollowUpAction,
    MergeIt,
    ReadBack,
    Rebuild,
    TurnGreen,
    TurnRed,
    follow_up_branch,
    follow_up_of,
    plan_follow_up,
)
from bot.domain.github import Conclusion, PullNumber, PullRequest, Repository
from bot.domain.promotion import StepStatus, Stop
from bot.domain.values import Value
from bot.ports import (
    BranchRules,
    Git,
    GitHub,
    MergeDone,
    Moved,
    Post,
    Pushed,
    PushOutcome,
    Refused,
    TransientError,
)
from bot.reports.follow_up import (
    FollowUpView,
    render_follow_up_body,
    render_follow_up_check,
    render_follow_up_title,
)
from bot.steps.checkout import Checkout
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.follow_up_facts import find_differences, is_ours, is_touched
from bot.steps.posts import check_post
from bot.steps.replay import read_changes

_METHODS = ("merge", "squash", "rebase")
"""Ways of merging, best first: a merge commit keeps the commit that was compared."""
_SOON = 0.5
_REFUSED = 15.0
_LATER = 60.0
"""Seconds until it is looked at again: while GitHub is at work, when it refuses the merge, and while a person must act.
The last is longer than a segment stays with a step, so that an event about it begins the next one at once."""
_MOST_SUBJECT = 200


class FollowUpStore(Protocol):
    """What is asked of the store."""

    async def queue_post(self, post: Post) -> bool:
        """Have GitHub show something; False if it does already."""

    async def note_own_pull(self, url: str, pull: int, merge: str) -> None:
        """Remember that a pull request is ours, and the commit that it became (empty: not yet)."""


@dataclass(frozen=True, slots=True)
class Release:
    """What is to reach a branch of its checkout's repository: `changes`, as they are in the commit `head`.

    `walks_again` tells that a branch that moved has the task's edits made again on where it is. `push` moves another
    branch there from where it is expected (None: it is not there); `is_there` tells whether a tip of the branch has it
    already.
    """

    checkout: Checkout
    branch: str
    tip: CommitId
    """Where the branch is. It is looked at before the pull request: what a merge brought is then never seen with that
    still open."""
    head: CommitId
    changes: list[Change]
    walks_again: bool
    push: Callable[[str, CommitId | None], Awaitable[tuple[PushOutcome, CommitId]]]
    is_there: Callable[[CommitId], Awaitable[bool]]

    @property
    def url(self) -> str:
        """The repository."""
        return self.checkout.pin.url


@dataclass(frozen=True, slots=True)
class Merged:
    """The release is on the branch, as this commit."""

    commit: CommitId
    message: str
    detail: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class FollowUps:
    """Carries releases to their branches by pull requests."""

    git: Git
    github: GitHub
    rules: BranchRules
    store: FollowUpStore

    async def carry(self, release: Release, context: StepContext) -> Merged | StepResult:
        """Do what is next: RUNNING until it is merged, FAILED if it was closed, a stop if it brought something else.

        Raises TransientError while GitHub or git shows two states at once.
        """
        url = release.url
        repository = self.github.repository_of(url)
        if repository is None:
            return failed(
                context.alias,
                f"git-push: {url} is no repository of this GitHub, so no follow-up pull request can be opened there; "
                "say writeBack: Push in the ReviewPolicy",
            )
        return await _Work(self, release, context, repository).go_on()


@dataclass(slots=True)
class _Work:
    """One look at one follow-up."""

    all: FollowUps
    release: Release
    context: StepContext
    repository: Repository

    async def go_on(self) -> Merged | StepResult:
        pull = await self._find()
        if pull is None and await self.release.is_there(self.release.tip):
            return Merged(self.release.checkout.head or self.release.head, "the branch has it already", {})
        if (pull is None or pull.open) and await self._is_touched(self.release.tip):
            return StepResult(
                message=f"{self.release.branch} moved to {self.release.tip[:12]}", rebase_on=self.release.tip
            )
        if pull is None:
            opened = await self._open()
            if isinstance(opened, StepResult):
                return opened
            pull = opened
        if not follow_up_of(self.context.detail):
            await self._note(pull, "")
        action = plan_follow_up(await self._see(pull))
        return await self._act(action, pull)

    async def _find(self) -> PullRequest | None:
        """The pull request of this attempt, or what an earlier attempt left that is not closed; None if none is."""
        known = follow_up_of(self.context.detail)
        if known:
            return await self.all.github.get_pull_request(self.repository, PullNumber(known))
        for attempt in range(self.context.attempt, 0, -1):
            pull = await self.all.github.find_pull_request(
                self.repository, head_branch=self._branch(attempt), state="all"
            )
            if pull is None:
                continue
            is_done = pull.merged and pull.base_branch == self.release.branch
            if pull.open or is_done or attempt == self.context.attempt:
                return pull
        return None

    def _branch(self, attempt: int) -> str:
        return follow_up_branch(self.context.promotion, len(self.context.earlier), attempt)

    # -- opening it ------------------------------------------------------------------------------------------------

    async def _open(self) -> PullRequest | StepResult:
        name = self._branch(self.context.attempt)
        there = await self.all.git.resolve(self.release.url, f"refs/heads/{name}")
        if there is not None and not await self._is_ours(there):
            return self._failed(f"the branch {name} holds commits of somebody else; delete it, then /retry")
        if there is None or await self._differences(there):
            refused = await self._push(name, there)
            if refused is not None:
                return refused
        view = FollowUpView(
            self.context.promotion,
            self.release.branch,
            self.release.changes,
            find_filled(self.context.deferred, self.release.changes, self.context.origins),
        )
        return await self.all.github.open_pull_request(
            self.repository,
            head_branch=name,
            base_branch=self.release.branch,
            title=render_follow_up_title(view),
            body=render_follow_up_body(view),
        )

    async def _push(self, name: str, expected: CommitId | None) -> StepResult | None:
        """Bring the branch to the release; what is wrong if it is refused."""
        outcome, _ = await self.release.push(name, expected)
        match outcome:
            case Pushed():
                return None
            case Moved():
                raise TransientError(f"{name} was pushed to just now; it is looked at again", retry_after=1.0)
            case Refused(message=message):
                return self._failed(f"{self.release.url} refuses the push to {name}: {message.strip()}")
            case _:
                assert_never(outcome)

    async def _note(self, pull: PullRequest, merge: str) -> None:
        url = self.all.github.clone_url(self.repository)
        await self.all.store.note_own_pull(url, pull.number, merge)

    # -- looking at it ---------------------------------------------------------------------------------------------

    async def _see(self, pull: PullRequest) -> FollowUp:
        seen = FollowUp(
            open=pull.open,
            merged=pull.merged,
            base_branch=pull.base_branch,
            wanted_branch=self.release.branch,
            draft=pull.draft,
            mergeable=pull.mergeable,
            closed_by=pull.closed_by,
        )
        if not pull.open or pull.base_branch != self.release.branch:
            return seen
        if await self.all.git.resolve(self.release.url, pull.head) != pull.head:
            raise TransientError(
                f"#{pull.number} was pushed to just now; it is looked at again", retry_after=1.0
            )
        differences = await self._differences(pull.head)
        if differences:
            return replace(seen, differences=differences, rebuildable=await self._is_ours(pull.head))
        checks = await self.all.github.list_checks(self.repository, pull.head)
        green = any(c.name == CHECK and c.conclusion is Conclusion.SUCCESS for c in checks)
        return replace(seen, green=green)

    async def _differences(self, head: CommitId) -> tuple[str, ...]:
        place = (self.release.url, self.release.branch, self.release.tip)
        return await find_differences(self.all.git, place, head, self.release.changes)

    async def _is_ours(self, head: CommitId) -> bool:
        span = (self.release.tip, head)
        return await is_ours(self.all.git, self.release.url, span, self.release.head, self.context)

    async def _is_touched(self, after: CommitId) -> bool:
        release = self.release
        if not release.walks_again:
            return False
        return await is_touched(self.all.git, release.checkout.pin, after, release.changes, self.context)

    # -- doing what is next ----------------------------------------------------------------------------------------

    async def _act(self, action: FollowUpAction, pull: PullRequest) -> Merged | StepResult:
        match action:
            case ReadBack():
                return await self._read_back(pull, pull.merge_commit)
            case Closed(reason=reason):
                return self._closed(pull, reason)
            case Rebuild():
                refused = await self._push(pull.head_branch, pull.head)
                return refused or self._wait(pull, "has its branch made anew", _SOON)
            case TurnRed(reason=reason):
                await self._show(pull, reason)
                return self._wait(pull, f"is red: {reason}", _LATER)
            case TurnGreen(reason=reason):
                await self._show(pull, "")
                late = pull.draft or pull.mergeable is False
                return self._wait(pull, reason, _LATER if late else _SOON)
            case MergeIt():
                return await self._merge(pull)
            case _:
                assert_never(action)

    async def _show(self, pull: PullRequest, problem: str) -> None:
        check = render_follow_up_check(self.context.promotion, pull.head, problem)
        await self.all.store.queue_post(check_post(self.repository, check))

    async def _merge(self, pull: PullRequest) -> Merged | StepResult:
        allowed = await self.all.rules.merge_methods(self.repository, self.release.branch)
        method = next((name for name in _METHODS if name in allowed), "")
        if not method:
            return self._wait(pull, "cannot be merged: the rules allow no way of merging", _LATER)
        made = await self.all.git.read_commit(self.release.url, self.release.head)
        subject, _, rest = made.message.partition("\n")
        outcome = await self.all.github.merge_pull_request(
            self.repository,
            pull.number,
            head=pull.head,
            method=method,
            title=f"{subject[:_MOST_SUBJECT]} (#{pull.number})",
            # With its trailers, by which our commits are told from others whatever GitHub makes of them.
            message=rest.strip(),
        )
        if isinstance(outcome, MergeDone):
            return await self._read_back(pull, outcome.commit)
        pause = _SOON if outcome.head_moved else _REFUSED
        return self._wait(pull, f"is not merged by GitHub yet: {outcome.message}", pause)

    # -- what came of it -------------------------------------------------------------------------------------------

    async def _read_back(self, pull: PullRequest, commit: CommitId | None) -> Merged | StepResult:
        git, url = self.all.git, self.release.url
        await git.fetch(url)
        tip = await git.resolve(url, f"refs/heads/{self.release.branch}")
        known = commit is not None and await git.resolve(url, commit) == commit
        if commit is None or tip is None or not known or not await git.is_ancestor(url, commit, tip):
            raise TransientError(f"the merge of #{pull.number} is not to be seen yet", retry_after=1.0)
        await self._note(pull, commit)
        # Newest first, and the last one is what the branch was before the merge.
        line = await git.list_mainline(url, commit, limit=len(self.release.checkout.commits) + 1)
        bases = [line[0].parents[0], *(each.parents[0] for each in line[1:-1] if len(line[0].parents) == 1)]
        if len(bases) == 1 and await self._is_touched(bases[0]):
            # The task's edits are made on what it was merged into before they are compared.
            return StepResult(message=f"#{pull.number} was merged on {bases[0][:12]}", rebase_on=bases[0])
        found: tuple[str, ...] = ()
        for base in bases:
            different = compare_patch(self.release.changes, await read_changes(git, url, base, commit), {})
            if not different:
                return await self._done(pull, commit)
            found = found or tuple(str(each) for each in different)
        digest = commit[:DIGEST_LENGTH]
        if digest in self.context.promotion.accepted:
            return await self._done(pull, commit)
        reason = f"the follow-up pull request #{pull.number} brought something else than was approved"
        return StepResult(stop=Stop(reason, digest, found), detail=self._detail(pull))

    async def _done(self, pull: PullRequest, commit: CommitId) -> Merged:
        await self._delete_branch(pull)
        return Merged(commit, f"merged by the follow-up pull request #{pull.number}", self._detail(pull))

    async def _delete_branch(self, pull: PullRequest) -> None:
        """Delete its branch if nobody pushed to it since; one that is kept by a rule harms nobody."""
        git, url = self.all.git, self.release.url
        if await git.resolve(url, f"refs/heads/{pull.head_branch}") == pull.head:
            await git.push(url, None, pull.head_branch, expected=pull.head)

    def _closed(self, pull: PullRequest, reason: str) -> StepResult:
        stage = self.context.promotion.stage
        said = (
            f"the follow-up pull request #{pull.number} {reason}, so nothing later was done; /retry opens it again, "
            f"/rollback {stage} goes back"
        )
        return replace(self._failed(said), detail=self._detail(pull))

    def _failed(self, message: str) -> StepResult:
        return failed(self.context.alias, f"git-push: {message}")

    def _wait(self, pull: PullRequest, reason: str, pause: float) -> StepResult:
        return StepResult(
            status=StepStatus.RUNNING,
            message=f"the follow-up pull request #{pull.number} {reason}",
            retry_after=pause,
            detail=self._detail(pull),
        )

    def _detail(self, pull: PullRequest) -> Mapping[str, Value]:
        return {"follow_up": int(pull.number), "url": pull.url}
