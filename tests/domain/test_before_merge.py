"""`apply: BeforeMerge`: what runs before the merge, what is done next around it, and what a rollback keeps."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.actions import (
    Action,
    BeginApply,
    BeginFulfil,
    ContinueFulfil,
    End,
    Gate,
    Halt,
    Hold,
    MakePreview,
    Merge,
    Snapshot,
    Wait,
)
from bot.domain.before_merge import applies_before, describe_apply_gate, describe_done, merge_point
from bot.domain.files import CommitId
from bot.domain.keeping import keeps_infra, kept_paths
from bot.domain.planning import plan
from bot.domain.promotion import EarlyApply, Promotion, State, StepRun, StepStatus, Stop
from bot.domain.review import ApplyKind, KeptRecord, Patch, Preview, Split, StepReport
from bot.domain.review_policy import ReviewPolicy
from bot.domain.step_kinds import StepClass
from tests.domain import reviews as b

BEFORE = ReviewPolicy(apply="BeforeMerge")
AUTO = replace(BEFORE, auto_merge=True)
TFVARS, VALUES = "tf/env.auto.tfvars", "helm/values.yaml"
MERGE, READY, THEIRS = CommitId("f" * 40), CommitId("d" * 40), CommitId("a" * 40)
NOTE = b.report("send-message", StepClass.NOTE)
WAIT = b.report("git-wait-for-pr", StepClass.REVIEW)


def previewed(cut: int, *reports: StepReport, **changes: object) -> Preview:
    made = b.preview(steps=b.steps(*reports), split=Split(cut, (), Patch(b.MAIN, ())))
    return replace(made, **changes)  # type: ignore[arg-type]


RELEASE = (b.clone(), b.edit(TFVARS), b.apply(), b.edit(VALUES), b.commit(TFVARS, VALUES), b.push(), b.sync())


@pytest.mark.parametrize(
    ("seen", "point", "applies"),
    [
        pytest.param(previewed(2, *RELEASE), 6, True, id="apply, values, push, sync: the sync is behind it"),
        pytest.param(previewed(2, *RELEASE[:6]), 6, True, id="nothing stands behind the push"),
        pytest.param(previewed(2, *RELEASE[:5], b.act(), *RELEASE[5:]), 7, True, id="an act before the push"),
        pytest.param(previewed(2, *RELEASE[:6], NOTE), 6, True, id="a note tells of what is public"),
        pytest.param(previewed(2, *RELEASE[:6], b.push("env/dev")), 6, True, id="a push elsewhere behind it"),
        pytest.param(previewed(2, b.clone(), b.push("env/dev"), *RELEASE[2:]), 6, True, id="one before it"),
        pytest.param(
            previewed(3, b.clone(), b.commit(TFVARS), b.push(), b.apply(), b.sync()),
            4,
            True,
            id="an apply behind the push of its inputs",
        ),
        pytest.param(
            previewed(3, b.clone(), b.commit(VALUES), b.push(), b.sync()), 3, False, id="an image alone"
        ),
        pytest.param(
            previewed(3, b.clone(), b.commit(VALUES), b.push(), b.sync(), b.apply(), b.push()),
            3,
            False,
            id="an apply that waits for a rollout of what is merged",
        ),
        pytest.param(
            previewed(1, b.clone(), b.apply(), b.commit(VALUES), b.push()), 4, True, id="no sync at all"
        ),
        pytest.param(
            previewed(1, b.clone(), WAIT, b.apply(), source="release/dev"),
            1,
            False,
            id="a task that waits for its merge itself",
        ),
    ],
)
def test_steps_up_to_what_needs_the_merge_run_before_it(seen: Preview, point: int, applies: bool) -> None:
    assert merge_point(seen) == point
    assert applies_before(BEFORE, seen) is applies
    assert not applies_before(ReviewPolicy(), seen)


# -- what is done next ---------------------------------------------------------------------------------------------

ASKED = EarlyApply("d1", "olivia")
BEGUN = replace(ASKED, head=b.HEAD, base=b.BASE, commit=b.HEAD)
DONE = replace(BEGUN, ready=READY)
WAITS = Gate("apply", False, "waits for `/apply` by an approver")
OPEN = Gate("approvals", True, "approved by olivia")
CLOSED = Gate("approvals", False, "0 of 1 approvals")
FROZEN = Gate("freeze", False, "frozen: incident")


def waiting(**changes: object) -> Snapshot:
    """An approved release that nobody has applied."""
    made = b.reviewed(policy=BEFORE, preview=previewed(2, *RELEASE), gates=(OPEN, WAITS))
    return replace(made, **changes)  # type: ignore[arg-type]


def running(promotion: Promotion, **changes: object) -> Snapshot:
    """A release that is applied, and not merged."""
    pull = b.pull(head=promotion.head)
    made = waiting(promotion=promotion, pull=pull, gates=(OPEN,), done="tf is applied")
    return replace(made, **changes)  # type: ignore[arg-type]


def ahead(early: EarlyApply = BEGUN, **changes: object) -> Promotion:
    made = b.in_review(state=State.FULFILLING, early=early, effects_begun=True, head=early.ready or b.HEAD)
    return replace(made, **changes)  # type: ignore[arg-type]


def stopped(stop: Stop, early: EarlyApply = BEGUN, **changes: object) -> Promotion:
    return ahead(early, state=State.STOPPED, stop=stop, **changes)


FAILED = Stop("tf-apply: no", "", failed=True)
MOVED = Stop("the head moved", "")
MERGED = b.pull(open=False, merged=True, merge_commit=MERGE)


@pytest.mark.parametrize(
    ("seen", "action"),
    [
        pytest.param(waiting(), Wait, id="nobody asked"),
        pytest.param(waiting(promotion=b.in_review(early=ASKED)), BeginApply, id="an approver typed /apply"),
        pytest.param(
            waiting(promotion=b.in_review(early=ASKED), gates=(CLOSED, WAITS)),
            Wait,
            id="and the approval was withdrawn",
        ),
        pytest.param(
            waiting(promotion=b.in_review(early=replace(ASKED, digest="d0"))), Wait, id="for another preview"
        ),
        pytest.param(waiting(policy=AUTO), BeginApply, id="the policy asks by itself"),
        pytest.param(waiting(policy=AUTO, gates=(CLOSED, WAITS)), Wait, id="and a gate is closed"),
        pytest.param(
            waiting(promotion=b.in_review(early=ASKED), pull=b.pull(head=THEIRS)),
            MakePreview,
            id="somebody pushed after it was approved",
        ),
        pytest.param(
            waiting(promotion=b.in_review(early=ASKED), base_changed=("tf/main.tf",)),
            MakePreview,
            id="the base changed a touched path",
        ),
        pytest.param(waiting(pull=MERGED, gates=(OPEN,)), BeginFulfil, id="merged by hand"),
        pytest.param(waiting(pull=MERGED, gates=(CLOSED,)), Hold, id="merged by hand without an approval"),
        pytest.param(
            waiting(promotion=b.in_review(early=BEGUN, state=State.FULFILLING)),
            BeginApply,
            id="met a passing trouble before its first effect",
        ),
        pytest.param(
            waiting(
                promotion=b.in_review(
                    early=BEGUN, state=State.FULFILLING, wake_at=b.NOW + timedelta(seconds=9)
                )
            ),
            Wait,
            id="and pauses",
        ),
        pytest.param(running(ahead()), ContinueFulfil, id="a walk that waited is due"),
        pytest.param(
            running(ahead(wake_at=b.NOW + timedelta(seconds=9))), Wait, id="a walk waits for its time"
        ),
        pytest.param(running(ahead(), candidate=b.freight("d")), ContinueFulfil, id="newer Freight waits"),
        pytest.param(running(ahead(DONE)), Wait, id="applied, the check is not green"),
        pytest.param(running(ahead(DONE), check_green=True), Merge, id="applied, and the check is green"),
        pytest.param(running(ahead(DONE), check_green=True, gates=(FROZEN,)), Wait, id="frozen meanwhile"),
        pytest.param(
            running(ahead(DONE), check_green=True, pull=b.pull(head=THEIRS)), Halt, id="pushed to meanwhile"
        ),
        pytest.param(
            running(ahead(DONE), check_green=True, pull=b.pull(head=b.HEAD)),
            ContinueFulfil,
            id="set back to what was approved meanwhile",
        ),
        pytest.param(
            running(ahead(DONE), check_green=True, pull=b.pull(head=READY, mergeable=False)),
            Halt,
            id="in conflict meanwhile",
        ),
        pytest.param(
            running(ahead(DONE), check_green=True, base_changed=(VALUES,)),
            ContinueFulfil,
            id="the target changed a touched path meanwhile",
        ),
        pytest.param(
            running(ahead(DONE), pull=replace(MERGED, head=READY)), ContinueFulfil, id="merged as applied"
        ),
        pytest.param(
            running(ahead(DONE), pull=MERGED), BeginFulfil, id="merged by hand without what was applied"
        ),
        pytest.param(
            running(stopped(FAILED), pull=MERGED, gates=(FROZEN,)), Hold, id="that, although it is frozen"
        ),
        pytest.param(running(ahead(), pull=b.pull(open=False)), End, id="closed"),
        pytest.param(running(ahead(cancel_requested=True)), End, id="cancelled"),
        pytest.param(running(stopped(FAILED)), Wait, id="failed"),
        pytest.param(running(stopped(FAILED, preview_wanted="/plan")), MakePreview, id="failed, and /plan"),
        pytest.param(running(stopped(FAILED), pull=b.pull(open=False)), End, id="failed, and closed"),
        pytest.param(running(stopped(MOVED), pull=b.pull(head=THEIRS)), Wait, id="stopped by a push"),
        pytest.param(running(stopped(MOVED)), ContinueFulfil, id="stopped, and the branch is back"),
        pytest.param(
            running(stopped(Stop("another plan", "abc"))), Wait, id="stopped at what nobody approved"
        ),
        pytest.param(
            running(stopped(Stop("another plan", "abc"), accepted=("abc",))),
            ContinueFulfil,
            id="and accepted",
        ),
    ],
)
def test_what_is_done_next_around_an_apply_before_the_merge(seen: Snapshot, action: type[Action]) -> None:
    assert isinstance(plan(seen), action)


def test_only_the_merge_of_what_was_applied_is_crossed() -> None:
    crossed = plan(running(ahead(DONE), pull=replace(MERGED, head=READY)))
    assert crossed == ContinueFulfil("merged with what was applied", merge=MERGE)


@pytest.mark.parametrize(
    "seen",
    [running(ahead(), pull=b.pull(open=False, closed_by="uma")), running(ahead(cancel_requested=True))],
    ids=["closed", "cancelled"],
)
def test_an_end_says_what_was_applied(seen: Snapshot) -> None:
    action = plan(seen)
    assert isinstance(action, End)
    assert action.reason.endswith("tf is applied")


@pytest.mark.parametrize(
    ("promotion", "policy", "says"),
    [
        (b.in_review(), BEFORE, "waits for `/apply` by an approver"),
        (b.in_review(), AUTO, "the policy default applies it when every other gate is open"),
        (b.in_review(early=replace(ASKED, digest="d0")), BEFORE, "that of olivia was for another preview"),
        (ahead(), BEFORE, "it is applied, asked for by olivia"),
        (stopped(FAILED), BEFORE, "stopped before the merge"),
        (ahead(DONE), BEFORE, ""),
    ],
    ids=["nobody asked", "the policy asks", "asked for another digest", "under way", "stopped", "done"],
)
def test_the_gate_of_the_apply_says_what_it_waits_for(
    promotion: Promotion, policy: ReviewPolicy, says: str
) -> None:
    assert says in describe_apply_gate(promotion, policy)
    assert bool(says) == bool(describe_apply_gate(promotion, policy))


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (None, "nothing was applied"),
        (
            StepRun("tf-apply-2", "tf-apply", 1, StepStatus.SUCCEEDED, "1 added.", finished_at=b.NOW),
            "(1 added)",
        ),
        (StepRun("tf-apply-2", "tf-apply", 1, StepStatus.FAILED, finished_at=b.NOW), "may be half applied"),
        (StepRun("tf-apply-2", "tf-apply", 1, StepStatus.RUNNING), "its outcome is unknown"),
        (
            StepRun("tf-apply-2", "tf-apply", 0, StepStatus.SUCCEEDED, finished_at=b.NOW),
            "nothing was applied",
        ),
    ],
    ids=["not begun", "applied", "failed", "unknown", "applied for a preview before"],
)
def test_what_was_applied_is_told_from_the_journal(run: StepRun | None, says: str) -> None:
    runs = {run.alias: run} if run is not None else {}
    assert says in describe_done(previewed(2, *RELEASE), runs, 1)


# -- rollback: {infra: Keep} ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("promotion", "infra", "keeps"),
    [
        (b.promotion(rollback=True), "Keep", True),
        (b.promotion(rollback=True), "WithFreight", False),
        (b.promotion(), "Keep", False),
    ],
    ids=["a rollback that keeps", "a rollback with its Freight", "no rollback"],
)
def test_only_a_rollback_keeps_the_infrastructure(promotion: Promotion, infra: str, keeps: bool) -> None:
    assert keeps_infra(promotion, ReviewPolicy(rollback_infra=infra)) is keeps


def test_what_every_kept_directory_reads_is_left_as_it_is() -> None:
    planned = b.report("tf-plan", StepClass.INFRA, record=KeptRecord("src/net", frozenset({"src/net/a.tf"})))
    steps = b.steps(b.apply(ApplyKind.KEPT), planned, b.apply(ApplyKind.UNCHANGED, inputs=("src/other.tf",)))
    assert kept_paths(steps) == {"src/tf/env.auto.tfvars", "src/net/a.tf"}
