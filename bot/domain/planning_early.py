"""What to do next where Terraform is applied before the merge: `apply: BeforeMerge` of the ReviewPolicy."""

from __future__ import annotations

from datetime import datetime, timedelta

from bot.domain.actions import (
    Action,
    BeginApply,
    BeginFulfil,
    ContinueFulfil,
    End,
    Halt,
    Hold,
    MakePreview,
    Merge,
    Snapshot,
    Wait,
    first_opening,
)
from bot.domain.before_merge import APPLY_GATE, METHOD, is_asked
from bot.domain.files import CommitId
from bot.domain.github import PullRequest
from bot.domain.promotion import EarlyApply, Promotion, State, Stop
from bot.domain.review import Preview


def plan_apply(seen: Snapshot, promotion: Promotion, head: CommitId, expiry: datetime | None) -> Action:
    """What follows for a pull request whose other gates are open: the apply, once somebody asks for it."""
    if is_asked(promotion) and promotion.early is not None:
        by = promotion.early.by
        return BeginApply(head, by, f"`/apply` by {by}: every gate is open")
    if seen.policy.auto_merge:
        by = f"the policy {seen.policy.metadata.name}"
        return BeginApply(head, by, f"{by} applies it: every gate is open")
    return Wait("ready to be applied: an approver types `/apply`", until=expiry)


def plan_ahead(seen: Snapshot, promotion: Promotion, early: EarlyApply) -> Action:
    """What follows for a promotion that was begun and is not merged yet."""
    pull, preview = seen.pull, seen.preview
    if pull is None or preview is None:
        again = seen.now + timedelta(seconds=30)
        return Wait(f"its pull request is not to be found; {seen.done}", until=again)
    if pull.merged and pull.merge_commit is not None:
        return _plan_merged(seen, early, pull.head, pull.merge_commit)
    if not pull.open:
        who = f" by {pull.closed_by}" if pull.closed_by else ""
        rejected = f"{promotion.freight.alias} is rejected here"
        return End(State.ABORTED, f"its pull request was closed{who}: {rejected}; {seen.done}")
    if promotion.cancel_requested:
        return End(State.ABORTED, f"cancelled before its merge; {seen.done}")
    if promotion.state is State.STOPPED:
        return _plan_stopped(seen, promotion, early, pull)
    if early.ready is not None:
        return _plan_ready(seen, early, pull, preview)
    if promotion.wake_at is None or promotion.wake_at <= seen.now:
        return ContinueFulfil("its time has come")
    return Wait(promotion.reason, until=promotion.wake_at)


def _plan_merged(seen: Snapshot, early: EarlyApply, head: CommitId, merge: CommitId) -> Action:
    if head == early.ready:
        return ContinueFulfil("merged with what was applied", merge=merge)
    # Somebody merged past the check, without the commits that wait for the apply: the merge is fulfilled as it is.
    closed = [gate for gate in seen.gates if not gate.open and gate.name != APPLY_GATE]
    if closed:
        return Hold(
            merge, f"merged while it was applied, although: {'; '.join(gate.reason for gate in closed)}"
        )
    return BeginFulfil(merge, "merged by a person before it was done; what is left follows on the merge")


def _plan_ready(seen: Snapshot, early: EarlyApply, pull: PullRequest, preview: Preview) -> Action:
    obstacle = find_obstacle(early, pull, seen.done)
    if obstacle:
        return Halt(Stop(obstacle, digest=""))
    if pull.head != early.ready:
        why = "the branch was set back to what was approved: what was committed behind the apply goes there again"
        return ContinueFulfil(why, anew=True)
    if seen.base_changed:
        what = ", ".join(seen.base_changed[:3])
        return ContinueFulfil(
            f"{preview.target.branch} changed {what}: the commits are made anew on it", anew=True
        )
    closed = [gate for gate in seen.gates if not gate.open]
    if closed:
        until = first_opening(closed)
        return Wait(f"applied, not merged yet: {'; '.join(gate.reason for gate in closed)}", until=until)
    if not seen.check_green:
        return Wait("the check turns green before the merge", until=seen.now + timedelta(seconds=1))
    return Merge(pull.head, "applied, and every gate is open", METHOD)


def _plan_stopped(seen: Snapshot, promotion: Promotion, early: EarlyApply, pull: PullRequest) -> Action:
    stop = promotion.stop
    if promotion.preview_wanted:
        return MakePreview(promotion.preview_wanted)
    if stop is None or (stop.digest and stop.digest in promotion.accepted):
        return ContinueFulfil("the new preview was accepted")
    if stop.failed:
        return Wait(f"failed before its merge: {stop.reason.rstrip('.')}. {seen.done}. `/retry` tries again")
    if stop.digest:
        return Wait(f"stopped: {stop.reason}. `/apply {stop.digest}` by an approver accepts it.")
    if not find_obstacle(early, pull, seen.done):
        return ContinueFulfil("what stopped it is out of the way", anew=True)
    return Wait(f"stopped: {stop.reason}", until=seen.now + timedelta(minutes=5))


def find_obstacle(early: EarlyApply, pull: PullRequest, done: str) -> str:
    """Why the pull request cannot take what was applied, and what to do; empty if it can."""
    if pull.head not in (early.head, early.ready):
        return describe_moved(pull.head, early.ready or early.head, done)
    if pull.mergeable is False:
        return describe_conflict(pull.base_branch, done)
    return ""


def describe_moved(found: CommitId | None, expected: CommitId | None, done: str) -> str:
    """What is said of a branch that somebody pushed to after its apply began."""
    now = f"its head is {found[:7]}" if found else "it is gone"
    return (
        f"the head moved while it was applied: {now} and not {(expected or '?')[:7]}. {done}. Set the branch back to "
        "go on, or say `/promote STAGE FREIGHT` to have it made anew, and approved, without that"
    )


def describe_conflict(branch: str, done: str) -> str:
    """What is said of a target that moved, after the apply, so that the branch no longer fits on it."""
    return (
        f"the branch conflicts with {branch}. {done}. Say `/plan` to have it made anew on {branch}; "
        "with commits of people on it, `/promote STAGE FREIGHT`"
    )
