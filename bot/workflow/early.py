"""`apply: BeforeMerge`: what becomes of a Promotion whose steps run on its approved pull request, before the merge.

The walk is the one that runs after a merge. It stands on *N*, the merge of the approved head into the target, which is
made here and is nowhere public; what it commits goes onto the promotion branch, and the App merges that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from bot.domain.actions import BeginApply, ContinueFulfil
from bot.domain.before_merge import METHOD, describe_done, merge_point
from bot.domain.files import CommitId
from bot.domain.github import PullRequest
from bot.domain.planning_early import describe_conflict, describe_moved
from bot.domain.promotion import EarlyApply, Promotion, State, Stop
from bot.domain.review import Preview
from bot.ports import (
    Clock,
    Conflicted,
    Git,
    GitHub,
    MergeDone,
    MergeRefused,
    Signature,
    Store,
    TerminalError,
    TransientError,
)
from bot.steps.contract import Onto
from bot.workflow.crossing import Ahead
from bot.workflow.merges import find_changed
from bot.workflow.outcomes import Finished, Mergeable, Stopped, Waiting

# -- what the row becomes ----------------------------------------------------------------------------------------


def begun(promotion: Promotion, action: BeginApply) -> Promotion:
    """The row of an apply that begins on an approved head."""
    early = EarlyApply(promotion.digest, action.by, head=action.head)
    return replace(promotion, state=State.FULFILLING, early=early, reason=action.reason, wake_at=None)


def merged(promotion: Promotion, merge: CommitId | None, reason: str) -> Promotion:
    """The row of a merge that is fulfilled as after any merge, whatever was applied before it."""
    return replace(
        promotion,
        state=State.FULFILLING,
        merge_commit=merge,
        early=None,
        effects_begun=False,
        stop=None,
        reason=reason,
        wake_at=None,
    )


def continued(promotion: Promotion, action: ContinueFulfil) -> Promotion:
    """The row of a walk that goes on: behind its merge, or on the target as it is now."""
    early = promotion.early
    if early is not None and action.anew:
        early = replace(early, base=None, commit=None, ready=None)
    return replace(
        promotion,
        state=State.FULFILLING,
        merge_commit=action.merge or promotion.merge_commit,
        early=early,
        stop=None,
        reason=action.reason,
        wake_at=None,
    )


def afresh(promotion: Promotion) -> Promotion:
    """The row of a promotion that is previewed again: what was applied before it is the state's business from here on.

    The journal's earlier attempts are of another preview, so none of their steps counts as done.
    """
    if not promotion.has_begun_ahead:
        return promotion
    attempt = promotion.attempt + 1
    return replace(
        promotion,
        state=State.REVIEW,
        early=None,
        effects_begun=False,
        stop=None,
        attempt=attempt,
        first_attempt=attempt,
    )


def failed_ahead(promotion: Promotion, reason: str) -> Promotion:
    """The row of a step that failed before the merge: it keeps its Stage and its pull request until people decide."""
    return replace(
        promotion, state=State.STOPPED, stop=Stop(reason, digest="", failed=True), reason=reason, wake_at=None
    )


async def remember(store: Store, before: Promotion, after: Promotion) -> Promotion:
    """Keep, before anything outside is touched, that it was begun, and on what; raises TransientError if it changed."""
    if after != before and not await store.save_promotion(after, expected=before):
        raise TransientError("the promotion changed meanwhile", retry_after=1.0)
    return after


def event_kind(promotion: Promotion) -> str:
    """What the end of a segment is called on the timeline."""
    if promotion.stop is not None and promotion.stop.failed:
        return "failed"
    ready = promotion.is_ahead and promotion.early is not None and promotion.early.ready is not None
    return "applied" if ready else promotion.state.value.lower()


# -- the merge ---------------------------------------------------------------------------------------------------


async def merge(
    github: GitHub, git: Git, promotion: Promotion, pull: PullRequest, head: CommitId
) -> MergeDone | MergeRefused:
    """Squash the branch: one commit with the release's own message. Merge it where the repository does not squash."""
    url = promotion.target.url if promotion.target is not None else ""
    subject, _, rest = (await git.read_commit(url, head)).message.partition("\n")
    outcome = await github.merge_pull_request(
        pull.repository,
        pull.number,
        head=head,
        method=METHOD,
        title=f"{subject} (#{pull.number})",
        message=rest.strip(),
    )
    if isinstance(outcome, MergeDone) or outcome.head_moved:
        return outcome
    return await github.merge_pull_request(
        pull.repository,
        pull.number,
        head=head,
        method="merge",
        title=f"{pull.title} (#{pull.number})",
        message="applied, and every gate is open",
    )


# -- the walk ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EarlyApplier:
    """Says what an apply before the merge stands on, and what follows from how it ended.

    `author` is the bot's name and e-mail.
    """

    git: Git
    store: Store
    clock: Clock
    author: tuple[str, str]

    async def stand(self, promotion: Promotion, preview: Preview) -> Promotion:
        """The row with what the walk stands on; in another state than FULFILLING if it may not begin, or not go on."""
        early = promotion.early
        if early is None or early.head is None:
            raise TerminalError(f"nobody asked to apply {promotion.id} before its merge")
        url, branch = preview.target.url, preview.target.branch
        # The head is on no branch once the pull request is squashed; GitHub keeps it by its number.
        await self.git.fetch(
            url, *((f"refs/pull/{promotion.pull}/head",) if promotion.pull is not None else ())
        )
        if early.commit is not None and early.base is not None:
            # The mirror of another replica may not have it; the same two commits make the same one.
            await self._merge_of(promotion, url, early.base, early.head)
            return promotion
        base = await self.git.resolve(url, f"refs/heads/{branch}")
        if base is None:
            raise TerminalError(
                f"the branch {branch} of {url} does not exist any more; restore it, then /retry"
            )
        why = "" if promotion.effects_begun else await self._why_not_begun(promotion, url, early.head)
        commit = await self._merge_of(promotion, url, base, early.head)
        if not why and commit is None:
            why = f"the branch conflicts with {branch}"
        if not why and not promotion.effects_begun:
            why = await self._why_changed(preview, commit)
        if why and not promotion.effects_begun:
            return replace(promotion, state=State.REVIEW, early=replace(early, head=None), preview_wanted=why)
        if commit is None:
            stop = Stop(describe_conflict(branch, await self._done(promotion, preview)), digest="")
            return replace(promotion, state=State.STOPPED, stop=stop, reason=stop.reason)
        stood = replace(early, base=base, commit=commit, ready=None)
        return replace(promotion, early=stood, effects_begun=True)

    def ahead(self, promotion: Promotion, preview: Preview) -> Ahead | None:
        """The part of the walk that lies before the merge, None where there is none."""
        early = promotion.early
        if early is None or early.commit is None or early.head is None:
            return None
        heads = tuple(dict.fromkeys((early.head, early.commit, *promotion.own_commits)))
        return Ahead(early.commit, merge_point(preview), Onto(promotion.branch, heads))

    async def conclude(
        self, promotion: Promotion, preview: Preview, outcome: Finished | Waiting | Stopped | Mergeable
    ) -> Promotion:
        """The row after a pass before the merge; nothing but a merge, a closing or a person's word ends it."""
        made = outcome.head if isinstance(outcome, Mergeable) else _release_of(outcome)
        promotion = await self._with_head(promotion, preview, made)
        match outcome:
            case Waiting(reason=reason, retry_after=pause):
                return replace(promotion, reason=reason, wake_at=self.clock.now() + timedelta(seconds=pause))
            case Stopped(stop=stop):
                return replace(promotion, state=State.STOPPED, stop=stop, reason=stop.reason)
            case Finished(reason=reason):
                return failed_ahead(promotion, reason)
        early = promotion.early
        wanted = outcome.head or promotion.head
        if early is None or wanted is None:
            raise TerminalError(f"nobody asked to apply {promotion.id} before its merge")
        if promotion.head != wanted:
            tip = await self.git.resolve(preview.target.url, f"refs/heads/{promotion.branch}")
            stop = Stop(describe_moved(tip, wanted, await self._done(promotion, preview)), digest="")
            return replace(promotion, state=State.STOPPED, stop=stop, reason=stop.reason)
        ready = replace(early, ready=wanted)
        return replace(
            promotion, early=ready, reason="applied; it is merged when the check is green", wake_at=None
        )

    async def _with_head(self, promotion: Promotion, preview: Preview, made: CommitId | None) -> Promotion:
        """The row with the branch's head as it was read back, as long as it is one of ours.

        Approvals of the head that was approved go on counting: what stands above it is this walk's own, told by the ids
        of its commits, and their content is the approved patch, or the walk would have stopped before it made them.
        """
        early, url = promotion.early, preview.target.url
        if early is None or early.head is None or early.commit is None:
            return promotion
        await self.git.fetch(url)
        tip = await self.git.resolve(url, f"refs/heads/{promotion.branch}")
        own = [early.commit] if early.commit != early.head else []
        if made is not None and made != early.commit:
            own += [commit.id for commit in reversed(await self.git.log(url, early.commit, made))]
        own_commits = tuple(dict.fromkeys((*promotion.own_commits, *own)))
        if tip is None or tip not in (early.head, *own_commits):
            return replace(promotion, own_commits=own_commits)
        heads = tuple(dict.fromkeys((*promotion.heads, tip)))
        return replace(promotion, head=tip, heads=heads, own_commits=own_commits)

    async def _why_not_begun(self, promotion: Promotion, url: str, head: CommitId) -> str:
        tip = await self.git.resolve(url, f"refs/heads/{promotion.branch}")
        return "" if tip == head else f"the branch was pushed to: its head is {(tip or 'gone')[:7]}"

    async def _why_changed(self, preview: Preview, commit: CommitId | None) -> str:
        """Whether what would be applied on is not what was previewed, on any path that the preview touched."""
        if commit is None:
            return ""
        changed = await find_changed(self.git, preview, commit, preview.tree)
        return f"{preview.target.branch} changed {', '.join(changed[:3])}" if changed else ""

    async def _merge_of(
        self, promotion: Promotion, url: str, base: CommitId, head: CommitId
    ) -> CommitId | None:
        """*N* as a commit: the head itself if the target has nothing that it lacks; None if they conflict."""
        if await self.git.is_ancestor(url, base, head):
            return head
        found = await self.git.merge_trees(url, base, head)
        if isinstance(found, Conflicted):
            return None
        branch = promotion.target.branch if promotion.target is not None else ""
        signature = Signature(*self.author, at=promotion.created_at.replace(microsecond=0))
        message = f"Merge {branch} into {promotion.branch}\n\nLockstep-Promotion: {promotion.id}\n"
        return await self.git.commit(url, found.tree, [head, base], message, signature)

    async def _done(self, promotion: Promotion, preview: Preview) -> str:
        return describe_done(preview, await self.store.list_steps(promotion.id), promotion.first_attempt)


def _release_of(outcome: Finished | Waiting | Stopped) -> CommitId | None:
    return outcome.release_commit if isinstance(outcome, Finished) else None
