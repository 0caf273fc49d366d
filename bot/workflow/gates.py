"""The gates of a promotion as they are just now, each with its reason."""

from __future__ import annotations

from bot.domain.actions import Gate
from bot.domain.approvals import Tally, needs_for_destroy
from bot.domain.before_merge import APPLY_GATE, applies_before, describe_apply_gate, is_binding
from bot.domain.github import PullRequest
from bot.domain.promotion import Promotion
from bot.domain.review import Preview
from bot.domain.review_policy import Approvals, ReviewPolicy
from bot.ports import StageRecord
from bot.workflow.candidates import describe_difference


def needed_approvals(policy: ReviewPolicy, *, destroys: bool, rollback: bool) -> tuple[int, int]:
    """How many approvals a merge needs, and how many of those entitled to approve a deletion."""
    rule = policy.approvals
    if policy.review == "None":
        return 0, 0
    if rollback:
        return policy.rollback_count, needs_for_destroy(rule.on_destroy, destroys=destroys)
    if not policy.auto_merge:
        return rule.count, needs_for_destroy(rule.on_destroy, destroys=destroys)
    if not destroys or "destroy" in policy.auto_merge_allow:
        return 0, 0
    # Without a rule of its own, one person is enough where normally none is asked.
    return 1, 1 if rule == Approvals() else rule.on_destroy.count


def gates_of(
    promotion: Promotion, preview: Preview, tally: Tally, pull: PullRequest | None, record: StageRecord
) -> tuple[Gate, ...]:
    """Every condition of the merge, in the order in which people read them."""
    gates = [Gate("wait", wait.open, wait.reason or wait.subject) for wait in preview.waits]
    frozen = record.frozen and not promotion.rollback
    gates.append(Gate("freeze", not frozen, f"frozen: {record.frozen}" if frozen else "no freeze"))
    hold = record.holds.get(promotion.freight.origin)
    # A person's choice of Freight holds auto-promotion and not itself, nor that Freight once more; `/hold` holds all.
    again = promotion.follows is not None or (
        hold is not None and promotion.corrects and hold.freight == promotion.freight.name
    )
    chosen = hold is not None and hold.created_at is not None and (hold.promotion == promotion.id or again)
    if hold is not None and not chosen:
        gates.append(Gate("hold", False, f"on hold: {hold.reason or 'somebody promoted other Freight'}"))
    if record.differs and tally.by_policy and promotion.actor == "lockstep":
        # A person may merge it all the same: that is their answer.
        gates.append(Gate("hold", False, describe_difference(promotion.stage, record.differs)))
    if pull is not None:
        gates.append(_approval_gate(tally))
        if pull.base_branch != preview.target.branch:
            where = f"the pull request goes to {pull.base_branch} instead of {preview.target.branch}"
            gates.append(Gate("target", False, where))
        if pull.mergeable is False and pull.open:
            gates.append(Gate("conflict", False, f"the branch conflicts with {pull.base_branch}"))
        if pull.draft and pull.open:
            gates.append(Gate("draft", False, "the pull request is a draft"))
    return tuple(gates)


def with_apply(
    gates: tuple[Gate, ...],
    policy: ReviewPolicy,
    promotion: Promotion,
    preview: Preview,
    pull: PullRequest | None,
) -> tuple[Gate, ...]:
    """The gates with that of the apply before the merge; once that began, time closes none of the others."""
    begun = promotion.has_begun_ahead
    if pull is None or not pull.open or not (begun or applies_before(policy, preview)):
        return gates
    why = describe_apply_gate(promotion, policy)
    apply = Gate(APPLY_GATE, not why, why or "applied, and what it left is on the branch")
    return (*(gate for gate in gates if not begun or is_binding(gate.name)), apply)


def _approval_gate(tally: Tally) -> Gate:
    if tally.objections:
        return Gate("approvals", False, f"{', '.join(tally.objections)} asked for changes")
    if tally.by_policy:
        return Gate("approvals", True, f"the policy {tally.by_policy} approves")
    if tally.count < tally.needed:
        return Gate("approvals", False, f"{tally.count} of {tally.needed} approvals")
    if tally.destroy_count < tally.destroy_needed:
        reason = (
            f"{tally.destroy_count} of {tally.destroy_needed} approvals for a plan that deletes or replaces"
        )
        return Gate("approvals", False, reason)
    return Gate("approvals", True, f"approved by {', '.join(tally.approvers) or 'nobody (none needed)'}")
