"""`git-push`: publishes the commits of a checkout on a branch, or as a tag.

Where Kargo rebases textually before each try, here the target branch of the pull request, if it moved, makes the walk
begin again on its new tip (`rebase_on`), so that edits are made on what is there and compared with what was approved.
Commits for any other branch are carried over as they are, path by path, and never where that branch differs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.domain.files import CommitId
from bot.domain.follow_up import follow_up_of
from bot.domain.review import PublishRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.urls import normalize_git_url
from bot.domain.values import Unknown, Value
from bot.ports import Git, Moved, Pushed, PushOutcome, Refused
from bot.steps.checkout import Checkout
from bot.steps.contract import Config as Given
from bot.steps.contract import Onto, StepContext, StepResult, failed
from bot.steps.early_push import OTHER_CHECKOUT, EarlyPush
from bot.steps.follow_up import FollowUps, Release
from bot.steps.git_commit import carried_by_merge
from bot.steps.github_push import Move, SigningPusher
from bot.steps.options import Options
from bot.steps.pull_requests import is_for_review
from bot.steps.pushed import is_there
from bot.steps.replacing import is_replaced
from bot.steps.replay import Conflict, read_changes, replay
from bot.steps.worktree import clean_path

KIND = StepKind("git-push", StepClass.PUBLISH)

_FORCED_TRIES = 5


@dataclass(frozen=True, slots=True)
class Config:
    """What is pushed where; at most one of `target_branch`, `generate` and `tag` is given."""

    path: str
    target_branch: str
    generate: bool
    tag: str
    force: bool


@dataclass(frozen=True, slots=True)
class Destination:
    """A checkout and the branch or tag that its head goes to."""

    checkout: Checkout
    branch: str
    tag: str
    force: bool
    generated: bool

    @property
    def url(self) -> str:
        """The repository."""
        return self.checkout.pin.url

    @property
    def is_new(self) -> bool:
        """Whether the branch need not exist: the push may create it."""
        return self.branch != self.checkout.pin.branch or self.checkout.pin.commit is None

    @property
    def has_commits(self) -> bool:
        """Whether the walk committed anything in this checkout."""
        return bool(self.checkout.commits)


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    return Config(
        path=clean_path(options.address("path")),
        target_branch=options.address("targetBranch"),
        generate=options.flag("generateTargetBranch"),
        tag=options.address("tag"),
        force=options.flag("force"),
    )


def commit_url(url: str, commit: str) -> str:
    """Where a person sees a commit: GitHub's address for it."""
    return f"{url.removesuffix('/').removesuffix('.git')}/commit/{commit}"


@dataclass(frozen=True, slots=True)
class GitPush:
    """Moves a branch to the checkout's head, with a lease on where it was."""

    git: Git
    name: str = KIND.name
    signing: SigningPusher | None = None
    """For `github-push`: GitHub makes the commits of a branch, and signs them."""
    follow_ups: FollowUps | None = None
    """How commits reach the pull request's target where they are not pushed there."""

    @property
    def kind(self) -> StepKind:
        """A publish; a tag or another branch than the pull request's counts as an act."""
        return StepKind(self.name, StepClass.PUBLISH)

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Record what would be published."""
        wanted = parse(config)
        found = self._destination(wanted, context)
        if isinstance(found, StepResult):
            return found
        record = self._record(wanted, found)
        if found.has_commits:
            ours = is_for_review(context) or await is_replaced(self.git, found.checkout.pin, record, context)
            conflict = await self._find_conflict(found) if not ours else ""
            if conflict:
                return failed(context.alias, conflict)
            unknown = Unknown("known after merge: commit")
            return StepResult(
                output=_output(found, unknown, Unknown("known after merge: commit URL")), record=record
            )
        head = found.checkout.commit
        url = (
            commit_url(found.url, head) if isinstance(head, str) else Unknown("known after merge: commit URL")
        )
        return StepResult(output=_output(found, head, url), record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Push; what is there already counts as done."""
        wanted = parse(config)
        found = self._destination(wanted, context)
        if isinstance(found, StepResult):
            return found
        if found.checkout.head is None:
            return failed(
                context.alias, f"git-push: {wanted.path!r} holds no commit yet; add a git-commit step before"
            )
        if found.tag:
            result = await self._push_tag(found, found.checkout.head, context)
        elif not found.has_commits and found.branch == found.checkout.pin.branch:
            head = context.merge if carried_by_merge(found.checkout, context) else found.checkout.head
            result = _done(found, head or found.checkout.head, "nothing to push")
        elif context.onto is not None and _is_for_target(found, context):
            result = await self._push_early(found, found.checkout.head, context, context.onto)
        elif self._goes_by_pull(found, context):
            result = await self._follow_up(found, found.checkout.head, context)
        else:
            result = await self._push_branch(found, found.checkout.head, context)
        return _with_record(result, self._record(wanted, found))

    # -- where -------------------------------------------------------------------------------------------------

    def _destination(self, wanted: Config, context: StepContext) -> Destination | StepResult:
        checkout = context.tree.checkout_at(wanted.path)
        if wanted.tag:
            return Destination(checkout, "", wanted.tag, force=False, generated=False)
        branch = (
            context.promotion.generated_branch
            if wanted.generate
            else wanted.target_branch or checkout.pin.branch
        )
        if not branch:
            return failed(
                context.alias,
                f"git-push: {wanted.path!r} is a checkout of {checkout.pin.url} by tag or commit, so it has no branch; "
                "name one with targetBranch",
            )
        return Destination(
            checkout, branch, "", force=wanted.force or wanted.generate, generated=wanted.generate
        )

    def _record(self, wanted: Config, found: Destination) -> PublishRecord:
        return PublishRecord(
            checkout=wanted.path,
            url=found.url,
            branch=found.branch,
            commits=len(found.checkout.commits),
            tag=found.tag,
            generated=found.generated,
            force=wanted.force,
        )

    async def _find_conflict(self, found: Destination) -> str:
        """Why the commits could not be carried over to another branch as it stands, empty if they can."""
        if found.tag or found.force or found.branch == found.checkout.pin.branch:
            return ""
        tip = await self.git.resolve(found.url, f"refs/heads/{found.branch}")
        if tip is None or tip == found.checkout.pin.commit:
            return ""
        base = found.checkout.pin.commit
        if base is not None and await self.git.is_ancestor(found.url, tip, base):
            return ""
        clashes = await replay(self.git, found.checkout, tip)
        return _conflict(found, clashes) if isinstance(clashes, Conflict) else ""

    # -- doing it ----------------------------------------------------------------------------------------------

    async def _push_tag(self, found: Destination, head: CommitId, context: StepContext) -> StepResult:
        await self.git.fetch(found.url)
        there = await self.git.resolve(found.url, f"refs/tags/{found.tag}")
        if there == head:
            return _done(found, head, "the tag is there already")
        outcome = await self.git.push_tag(found.url, head, found.tag, force=False)
        match outcome:
            case Pushed():
                return _done(found, head, f"pushed tag {found.tag}")
            case Moved(tip=tip):
                return failed(
                    context.alias,
                    f"git-push: the tag {found.tag!r} exists in {found.url} at {(tip or there or '')[:12]}; "
                    "a tag is never moved, choose another name",
                )
            case Refused(message=message):
                return failed(context.alias, _refused(found, message))

    async def _push_branch(self, found: Destination, head: CommitId, context: StepContext) -> StepResult:
        await self.git.fetch(found.url)
        for _ in range(_FORCED_TRIES):
            tip = await self.git.resolve(found.url, f"refs/heads/{found.branch}")
            if tip is not None and await is_there(self.git, found.checkout, head, tip, context.promotion.id):
                return _done(found, head, "the branch has it already")
            pushed = await self._aim(found, head, tip, context)
            if isinstance(pushed, Conflict):
                return failed(context.alias, _conflict(found, pushed))
            commit, expected = pushed
            outcome, commit = await self._push(found, commit, expected)
            match outcome:
                case Pushed():
                    found.checkout.head = commit
                    return _done(found, commit, f"pushed to {found.branch}")
                case Refused(message=message):
                    if tip is not None and self._may_follow_up(found, context):
                        return await self._follow_up(found, head, context)
                    return failed(context.alias, _refused(found, message))
                case Moved(tip=moved):
                    answer = await self._moved(found, head, moved, context)
                    if answer is not None:
                        return answer
        return failed(
            context.alias,
            f"git-push: the branch {found.branch!r} of {found.url} moved before each of {_FORCED_TRIES} tries; "
            "somebody else writes to it all the time, say /retry when it is quiet",
        )

    async def _push_early(
        self, found: Destination, head: CommitId, context: StepContext, onto: Onto
    ) -> StepResult:
        """Push onto the promotion branch what the merge will bring to the target."""
        if not _is_walked_again(found, context):
            return failed(context.alias, f"git-push: {OTHER_CHECKOUT}")
        done = await EarlyPush(self.git, self.signing).push(found.checkout, head, onto)
        if isinstance(done, StepResult):
            return done
        output = _output(found, done, commit_url(found.url, done))
        return StepResult(output=output, message=f"it is on {onto.branch}", detail={"onto": onto.branch})

    def _goes_by_pull(self, found: Destination, context: StepContext) -> bool:
        """Whether the policy asks for a follow-up pull request, or one was begun that a push must not overtake."""
        begun = context.run is not None and bool(follow_up_of(context.run.detail))
        return self._may_follow_up(found, context) and (begun or context.policy.write_back == "PullRequest")

    def _may_follow_up(self, found: Destination, context: StepContext) -> bool:
        """Whether a follow-up pull request could bring what is pushed: commits of the task, to the target."""
        is_possible = found.has_commits and found.checkout.pin.commit is not None
        return self.follow_ups is not None and is_possible and _is_for_target(found, context)

    async def _follow_up(self, found: Destination, head: CommitId, context: StepContext) -> StepResult:
        if self.follow_ups is None:
            return failed(context.alias, _refused(found, "pull requests cannot be opened here"))
        await self.git.fetch(found.url)
        tip = await self.git.resolve(found.url, f"refs/heads/{found.branch}")
        if tip is None:
            return failed(context.alias, _deleted(found))
        aimed = await self._aim(replace(found, force=False), head, tip, context)
        if isinstance(aimed, Conflict):
            return failed(context.alias, _conflict(found, aimed))
        commit, base = aimed

        async def push(branch: str, expected: CommitId | None) -> tuple[PushOutcome, CommitId]:
            if self.signing is None:
                return await self.git.push(found.url, commit, branch, expected=expected), commit
            move = Move(branch, expected, base, force=expected is not None)
            return await self.signing.push(found.url, commit, move)

        release = Release(
            checkout=found.checkout,
            branch=found.branch,
            tip=tip,
            head=commit,
            changes=await read_changes(self.git, found.url, found.checkout.pin.commit, head),
            walks_again=_is_walked_again(found, context),
            push=push,
            is_there=lambda there: is_there(self.git, found.checkout, head, there, context.promotion.id),
        )
        done = await self.follow_ups.carry(release, context)
        if isinstance(done, StepResult):
            return done
        output = _output(found, done.commit, commit_url(found.url, done.commit))
        return StepResult(output=output, message=done.message, detail=done.detail)

    async def _push(
        self, found: Destination, commit: CommitId, expected: CommitId | None
    ) -> tuple[PushOutcome, CommitId]:
        """What came of the push, and the commit that the branch was to get."""
        if self.signing is None:
            return await self.git.push(found.url, commit, found.branch, expected=expected), commit
        move = Move(found.branch, expected, found.checkout.pin.commit, found.force)
        return await self.signing.push(found.url, commit, move)

    async def _aim(
        self, found: Destination, head: CommitId, tip: CommitId | None, context: StepContext
    ) -> tuple[CommitId, CommitId | None] | Conflict:
        """The commit to push and the lease to push it with."""
        if found.force:
            return head, tip
        if _is_walked_again(found, context) or (tip is None and not found.is_new):
            return head, found.checkout.pin.commit
        if tip is None or await self.git.is_ancestor(found.url, tip, head):
            return head, tip
        if not found.has_commits:
            return Conflict(())
        replayed = await replay(self.git, found.checkout, tip)
        return replayed if isinstance(replayed, Conflict) else (replayed, tip)

    async def _moved(
        self, found: Destination, head: CommitId, tip: CommitId | None, context: StepContext
    ) -> StepResult | None:
        """What a lost lease means; None to try again."""
        await self.git.fetch(found.url)
        if tip is not None and await is_there(self.git, found.checkout, head, tip, context.promotion.id):
            return _done(found, head, "the branch has it already")
        if tip is None and not found.is_new:
            return failed(context.alias, _deleted(found))
        if found.force or tip is None or not _is_walked_again(found, context):
            return None
        return StepResult(message=f"{found.branch} moved to {tip[:12]}", rebase_on=tip)


def _is_for_target(found: Destination, context: StepContext) -> bool:
    """Whether the branch is the one that the pull request goes to."""
    target = context.promotion.target
    if target is None or found.branch != target.branch:
        return False
    return normalize_git_url(found.url) == normalize_git_url(target.url)


def _is_walked_again(found: Destination, context: StepContext) -> bool:
    """Whether a moved branch begins the walk again: only checkouts of the target itself are pinned anew then."""
    return found.branch == found.checkout.pin.branch and _is_for_target(found, context)


def _output(found: Destination, commit: Value, url: Value) -> dict[str, Value]:
    branch: dict[str, Value] = {} if found.tag else {"branch": found.branch}
    return {"commit": commit, "commitURL": url, **branch}


def _done(found: Destination, commit: CommitId, message: str) -> StepResult:
    # An earlier run may have pushed the same change on another base; its commit is the one that is public.
    public = found.checkout.head if found.has_commits and found.checkout.head else commit
    return StepResult(output=_output(found, public, commit_url(found.url, public)), message=message)


def _with_record(result: StepResult, record: PublishRecord) -> StepResult:
    return replace(result, record=record)


def _deleted(found: Destination) -> str:
    return (
        f"git-push: the branch {found.branch!r} of {found.url} was deleted meanwhile; restore it, then /retry"
    )


def _refused(found: Destination, message: str) -> str:
    what = f"the tag {found.tag!r}" if found.tag else f"the branch {found.branch!r}"
    return (
        f"git-push: {found.url} refuses the push to {what}: {message.strip()}. Let the App bypass the rule, or set "
        "writeBack: PullRequest in the ReviewPolicy so that the release commit goes by a pull request"
    )


def _conflict(found: Destination, conflict: Conflict) -> str:
    if not conflict.paths:
        return (
            f"git-push: the branch {found.branch!r} of {found.url} has commits that {found.checkout.pin.path!r} does "
            "not hold, and this task committed nothing; merge them first, or set force: true"
        )
    paths = ", ".join(conflict.paths[:5]) + (" and more" if len(conflict.paths) > 5 else "")
    return (
        f"git-push: the commits of {found.checkout.pin.path!r} do not fit on the branch {found.branch!r} of "
        f"{found.url}, which holds something else in {paths}; check out that branch and edit it, or set force: true"
    )
