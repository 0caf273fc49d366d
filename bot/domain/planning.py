"""What to do next for a Stage: a plain function of what was seen, whose answer carries the reason people read."""

from __future__ import annotations

from datetime import datetime, timedelta

from bot.domain.actions import (
    Action,
    BeginApply,
    BeginFulfil,
    ContinueFulfil,
    End,
    EnsureSegment,
    Gate,
    Hold,
    MakePreview,
    Merge,
    Snapshot,
    StartPromotion,
    StartRollback,
    Wait,
    first_opening,
)
from bot.domain.before_merge import APPLY_GATE, METHOD, applies_before
from bot.domain.files import CommitId
from bot.domain.github import PullRequest
from bot.domain.planning_early import plan_ahead, plan_apply
from bot.domain.promotion import Promotion, State
from bot.domain.review import Lane, Preview
from bot.domain.review_policy import ReviewPolicy


def plan(seen: Snapshot) -> Action:
    """The next action for a Stage."""
    action = _plan(seen)
    wake = seen.promotion.wake_at if seen.promotion is not None else None
    if (
        isinstance(action, MakePreview | BeginApply)
        and seen.promotion is not None
        and not _is_due(wake, seen.now)
    ):
        # The last try met a passing trouble: the pause that it asked for holds.
        return Wait(seen.promotion.reason, until=wake)
    return action


def _plan(seen: Snapshot) -> Action:
    promotion = seen.promotion
    if promotion is None:
        return _plan_idle(seen)
    if promotion.running:
        return EnsureSegment()
    if promotion.early is not None and promotion.is_ahead:
        if not promotion.effects_begun:
            # On its way to its first effect it met a passing trouble: it is a pull request in review still.
            return _plan_review(seen, promotion)
        return plan_ahead(seen, promotion, promotion.early)
    match promotion.state:
        case State.QUEUED:
            return _plan_queued(seen, promotion)
        case State.REVIEW:
            return _plan_review(seen, promotion)
        case State.HELD:
            return _plan_held(seen, promotion)
        case State.STOPPED:
            return _plan_stopped(seen, promotion)
        case State.FULFILLING:
            return _plan_fulfilling(seen, promotion)
        case _:
            return _plan_idle(seen)


def _plan_idle(seen: Snapshot) -> Action:
    if seen.problem:
        return Wait(seen.problem)
    if seen.frozen:
        return Wait(f"frozen: {seen.frozen}")
    if seen.back is not None:
        return StartRollback(seen.back, seen.back_reason)
    last = seen.last
    if last is not None and last.blocked:
        failed = (
            f"{last.id} failed after its merge: {last.reason}. `/retry` or `/rollback` on its pull request."
        )
        return Wait(f"{failed} {seen.back_reason}".rstrip())
    if seen.verifying:
        # As in Kargo, the next Promotion waits until it is known how the present Freight does.
        return Wait(seen.verifying)
    if seen.candidate is None:
        return Wait(seen.candidate_reason or "no newer Freight is available", until=seen.candidate_at)
    return StartPromotion(seen.candidate, seen.candidate_reason)


def _plan_queued(seen: Snapshot, promotion: Promotion) -> Action:
    if promotion.cancel_requested:
        return End(State.ABORTED, "cancelled")
    if seen.candidate is not None and _supersedes(seen, promotion):
        return End(State.ABORTED, f"superseded by {seen.candidate.alias}", superseded_by=seen.candidate)
    preview = seen.preview
    if preview is None or promotion.preview_wanted:
        return MakePreview(promotion.preview_wanted or "a new promotion")
    if seen.steps_changed:
        return MakePreview("the pipeline's steps changed")
    if seen.base_changed:
        return MakePreview(f"{preview.target.branch} changed {', '.join(seen.base_changed[:3])}")
    if any(p.transient for p in preview.problems) and _is_due(seen.retry_preview_at, seen.now):
        return MakePreview("tried again")
    return Wait(promotion.reason, until=seen.retry_preview_at)


def _plan_review(seen: Snapshot, promotion: Promotion) -> Action:
    pull, preview = seen.pull, seen.preview
    if pull is None or preview is None:
        return MakePreview("its pull request is not to be found")
    if pull.merged and pull.merge_commit is not None:
        return _plan_merged(seen, pull.merge_commit)
    if not pull.open:
        who = f" by {pull.closed_by}" if pull.closed_by else ""
        return End(
            State.ABORTED, f"its pull request was closed{who}: {promotion.freight.alias} is rejected here"
        )
    if promotion.cancel_requested:
        return End(State.ABORTED, "cancelled")
    if seen.candidate is not None and _supersedes(seen, promotion):
        return End(State.ABORTED, f"superseded by {seen.candidate.alias}", superseded_by=seen.candidate)
    stale = _why_preview_again(seen, promotion, pull, preview)
    if stale:
        return MakePreview(stale)
    return _plan_open(seen, pull, preview)


def _why_preview_again(seen: Snapshot, promotion: Promotion, pull: PullRequest, preview: Preview) -> str:
    if promotion.preview_wanted:
        return promotion.preview_wanted
    if pull.head != promotion.head:
        return f"the branch was pushed to: its head is {pull.head[:7]}"
    if seen.steps_changed:
        return "the pipeline's steps changed"
    if seen.base_changed:
        return f"{preview.target.branch} changed {', '.join(seen.base_changed[:3])}"
    if any(a.plan is not None for a in preview.applies) and _is_old(seen, preview):
        return "the plan is older than the policy allows"
    if preview.is_passing and _is_due(seen.retry_preview_at, seen.now):
        return "tried again"
    return ""


def _plan_open(seen: Snapshot, pull: PullRequest, preview: Preview) -> Action:
    if preview.is_red:
        first = preview.held or preview.problems[0].message
        return Wait(first, until=seen.retry_preview_at)
    closed = [gate for gate in seen.gates if not gate.open and gate.name != APPLY_GATE]
    if closed:
        # What a step waits for is asked again by a new preview, whatever else is closed meanwhile.
        again = seen.retry_preview_at if preview.is_passing else None
        until = min(
            (at for at in (again, *(gate.opens_at for gate in closed)) if at is not None), default=None
        )
        return Wait("; ".join(gate.reason for gate in closed), until=until)
    if seen.promotion is not None and applies_before(seen.policy, preview):
        return plan_apply(seen, seen.promotion, pull.head, _expiry(seen, preview))
    method = merge_method(seen.policy, preview)
    if not method:
        return Wait("ready to merge: a person merges it", until=_expiry(seen, preview))
    if not seen.check_green:
        return Wait("the check turns green before the merge", until=seen.now + timedelta(seconds=1))
    who = "the policy" if seen.policy.auto_merge else "git-merge-pr"
    return Merge(pull.head, f"{who} merges it: every gate is open", method)


def _plan_merged(seen: Snapshot, merge: CommitId) -> Action:
    closed = [gate for gate in seen.gates if not gate.open]
    if seen.preview is not None and seen.preview.is_red:
        problem = seen.preview.held or seen.preview.problems[0].message
        return Hold(merge, f"merged while red: {problem}")
    if closed:
        return Hold(merge, f"merged although: {'; '.join(gate.reason for gate in closed)}")
    return BeginFulfil(merge, "merged with every gate open")


def _plan_held(seen: Snapshot, promotion: Promotion) -> Action:
    accepted = promotion.digest in promotion.accepted
    # Who accepts stands in for reviews; a freeze or a window goes on holding it.
    passed = {"approvals"} if accepted else set()
    closed = [gate for gate in seen.gates if not gate.open and gate.name not in passed]
    closed = [gate for gate in closed if not _is_asked_by_the_walk(gate, seen.preview)]
    if promotion.cancel_requested:
        return End(State.ABORTED, "cancelled after the merge; nothing was applied")
    if seen.lost:
        return End(State.ABORTED, describe_revert(promotion, seen.lost))
    if seen.preview is not None and seen.preview.is_red and not accepted:
        return Wait(promotion.reason)
    if closed:
        until = first_opening(closed)
        return Wait(f"merged, held: {'; '.join(gate.reason for gate in closed)}", until=until)
    return BeginFulfil(promotion.merge_commit, "the gates are open now")


def _is_asked_by_the_walk(gate: Gate, preview: Preview | None) -> bool:
    """Whether a gate is a wait of the task, which the walk asks again before anything takes effect."""
    waits = preview.waits if preview is not None else ()
    return gate.name == "wait" and gate.reason in {w.reason or w.subject for w in waits if not w.asks}


def _plan_stopped(seen: Snapshot, promotion: Promotion) -> Action:
    stop = promotion.stop
    if promotion.cancel_requested:
        return End(State.ABORTED, "cancelled after it stopped")
    if seen.lost and not seen.applied:
        return End(State.ABORTED, describe_revert(promotion, seen.lost))
    if stop is None or stop.digest in promotion.accepted:
        return ContinueFulfil("the new preview was accepted")
    if not stop.digest:
        return Wait(f"stopped: {stop.reason}. `/promote` or `/rollback` brings other Freight.")
    return Wait(f"stopped: {stop.reason}. `/apply {stop.digest}` by an approver accepts it.")


def _plan_fulfilling(seen: Snapshot, promotion: Promotion) -> Action:
    if seen.lost and not promotion.effects_begun:
        return End(State.ABORTED, describe_revert(promotion, seen.lost))
    closed = [gate for gate in seen.gates if not gate.open]
    if closed and not promotion.effects_begun:
        until = first_opening(closed)
        return Wait("; ".join(gate.reason for gate in closed), until=until)
    if _is_due(promotion.wake_at, seen.now):
        return ContinueFulfil("its time has come")
    return Wait(promotion.reason, until=promotion.wake_at)


def _supersedes(seen: Snapshot, promotion: Promotion) -> bool:
    """Whether newer Freight of the same origin takes over; people's work and approvals are not thrown away."""
    candidate = seen.candidate
    if candidate is None or candidate.name == promotion.freight.name or promotion.rollback:
        return False
    if (
        candidate.origin != promotion.freight.origin
        or candidate.discovered_at <= promotion.freight.discovered_at
    ):
        return False
    if promotion.actor != "lockstep" or seen.people_commits:
        return False
    match seen.policy.supersede:
        case "Always":
            return True
        case "Never":
            return False
        case _:
            return seen.tally is None or seen.tally.count == 0


def _is_old(seen: Snapshot, preview: Preview) -> bool:
    return seen.now >= preview.made_at + timedelta(seconds=seen.policy.plan_max_age)


def _expiry(seen: Snapshot, preview: Preview) -> datetime | None:
    if not any(a.plan is not None for a in preview.applies):
        return None
    return preview.made_at + timedelta(seconds=seen.policy.plan_max_age)


def _is_due(at: datetime | None, now: datetime) -> bool:
    return at is None or at <= now


def describe_revert(promotion: Promotion, lost: str) -> str:
    """What is said of a merge that was undone before anything of it was applied."""
    if promotion.follows is not None:
        return f"the merge of #{promotion.follows.pull} was reverted ({lost}): nothing was applied"
    return f"its merge was reverted ({lost}): nothing was applied, {promotion.freight.alias} is rejected here"


def merge_method(policy: ReviewPolicy, preview: Preview | None) -> str:
    """How the App merges the pull request once every gate is open, empty if it is left to a person."""
    if preview is not None and applies_before(policy, preview):
        return METHOD
    asked = preview.merge_method if preview is not None else ""
    return asked or ("merge" if policy.auto_merge else "")


def is_no_op(preview: Preview) -> bool:
    """Whether there is nothing to review: no pull request is opened, the rest runs at once."""
    return preview.lane is Lane.NO_OP and not preview.is_red
