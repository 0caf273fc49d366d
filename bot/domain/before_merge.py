"""What `apply: BeforeMerge` does before the merge, and what stays behind it.

The steps run in the order of the task. Those from the cut on run on the approved pull request, up to the first one that
needs what was pushed to be public: an act, a wait, a note or another push that stands behind a push to the target. What
is pushed to the target before that goes onto the promotion branch instead, and the pull request is merged.
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.promotion import Promotion, State, StepRun, StepStatus
from bot.domain.review import ApplyRecord, Presence, Preview, PublishRecord, StepReport
from bot.domain.review_policy import ReviewPolicy
from bot.domain.step_kinds import StepClass
from bot.domain.urls import normalize_git_url

APPLY_GATE = "apply"
"""The gate that waits for `/apply`, and then for the end of what it began."""

METHOD = "squash"
"""How the App merges what it applied: one commit holds inputs, values and the apply's result."""

_BINDING = ("approvals", "freeze", "hold", "target", "draft", APPLY_GATE)
"""Gates that still count between the apply and the merge: those that people close. Time passes them."""

_OUTWARD = (StepClass.ACT, StepClass.WAIT, StepClass.NOTE, StepClass.REVIEW)


def merge_point(preview: Preview) -> int:
    """The index of the first step that runs after the merge, or the number of steps.

    Where the task waits for its pull request itself, that is the cut: its own order binds.
    """
    published = False
    for step in preview.steps:
        if step.presence in (Presence.SKIPPED, Presence.ON_FAILURE):
            continue
        early = step.index < preview.split.cut
        if not early and (
            step.step_class is StepClass.REVIEW or _needs_merge(step, preview, published=published)
        ):
            return step.index
        published = published or _is_to_target(step, preview)
    return len(preview.steps)


def applies_before(policy: ReviewPolicy, preview: Preview) -> bool:
    """Whether anything is to be done before the merge: otherwise the pull request is merged as with AfterMerge."""
    if policy.apply != "BeforeMerge" or preview.source:
        return False
    return any(_takes_effect(step) for step in preview.steps[preview.split.cut : merge_point(preview)])


def is_asked(promotion: Promotion) -> bool:
    """Whether an approver asked for the apply of the preview in force."""
    return promotion.early is not None and promotion.early.digest == promotion.digest


def describe_apply_gate(promotion: Promotion, policy: ReviewPolicy) -> str:
    """What the gate of the apply waits for; empty once what was applied is on the branch."""
    early = promotion.early
    if early is not None and early.ready is not None:
        return ""
    if promotion.has_begun_ahead and promotion.state is State.STOPPED:
        return "stopped before the merge"
    if promotion.has_begun_ahead:
        return f"it is applied, asked for by {early.by if early is not None else '?'}; the merge comes after that"
    if policy.auto_merge:
        return f"the policy {policy.metadata.name} applies it when every other gate is open"
    if early is not None and not is_asked(promotion):
        return f"waits for `/apply` (that of {early.by} was for another preview)"
    return "waits for `/apply` by an approver"


def describe_done(preview: Preview, runs: Mapping[str, StepRun], since: int) -> str:
    """What was applied in the attempts of this preview, as one clause."""
    said = []
    for step in preview.steps:
        run = runs.get(step.alias)
        if step.kind != "tf-apply" or run is None or run.attempt < since:
            continue
        where = step.record.directory if isinstance(step.record, ApplyRecord) else step.alias
        match run.status:
            case StepStatus.SUCCEEDED:
                said.append(f"{where} is applied ({_sentence(run.message)})")
            case StepStatus.FAILED | StepStatus.ERRORED:
                said.append(f"{where} may be half applied")
            case StepStatus.RUNNING if run.finished_at is None:
                said.append(f"{where} may be applied, its outcome is unknown")
    return "; ".join(said) or "nothing was applied"


def _sentence(text: str) -> str:
    return " ".join(text.split())[:200].rstrip(".")


def is_binding(gate: str) -> bool:
    """Whether a gate of this name counts between the apply and the merge."""
    return gate in _BINDING


def _takes_effect(step: StepReport) -> bool:
    if step.presence in (Presence.SKIPPED, Presence.ON_FAILURE):
        return False
    if isinstance(step.record, ApplyRecord):
        return step.record.kind.is_barrier
    return step.kind == "tf-apply" or step.step_class is StepClass.ACT


def _needs_merge(step: StepReport, preview: Preview, *, published: bool) -> bool:
    """Whether a step behind the cut stands on what is public already."""
    if isinstance(step.record, PublishRecord):
        record = step.record
        if _is_to_target(step, preview):
            # Commits of another branch's checkout are carried over onto the target's own, which has to be merged.
            return record.checkout not in preview.checkouts
        return published
    return published and step.step_class in _OUTWARD


def _is_to_target(step: StepReport, preview: Preview) -> bool:
    record = step.record
    if not isinstance(record, PublishRecord) or record.tag or record.generated:
        return False
    same = normalize_git_url(record.url) == normalize_git_url(preview.target.url)
    return same and record.branch == preview.target.branch
