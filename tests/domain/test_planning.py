"""What is done next for a Stage, as a table: what was seen, and the answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.actions import (
    Action,
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
)
from bot.domain.approvals import Tally
from bot.domain.files import CommitId
from bot.domain.freight import FreightOrigin
from bot.domain.planning import plan
from bot.domain.promotion import State, Stop
from bot.domain.review import GateRecord, MergeRecord, Patch, Problem, Split
from bot.domain.review_policy import ReviewPolicy
from bot.domain.step_kinds import StepClass
from tests.domain import reviews as b

MERGE = CommitId("f" * 40)
CLOSED = Gate("approvals", False, "0 of 1 approvals")
FROZEN = Gate("freeze", False, "frozen: incident")
NEWER = b.freight("d", "swift-heron", discovered_at=b.NOW + timedelta(minutes=5))
AUTO = ReviewPolicy(auto_merge=True)
RED = b.preview(problems=(Problem("yaml-update", "env.LAMBDA_URL was not found"),))
BUSY = b.preview(problems=(Problem("tf-apply", "state locked by uma", transient=True),))
LATER = b.NOW + timedelta(seconds=30)


def waiting_preview() -> object:
    wait = b.report("http", StepClass.WAIT, record=GateRecord("http", open=False))
    return b.preview(steps=b.steps(wait), split=Split(cut=1, prepared=(), deferred=Patch(b.MAIN, ())))


@pytest.mark.parametrize(
    ("seen", "action"),
    [
        pytest.param(b.snapshot(candidate=b.freight()), StartPromotion, id="Freight is available"),
        pytest.param(b.snapshot(), Wait, id="nothing is available"),
        pytest.param(b.snapshot(candidate=b.freight(), frozen="incident"), Wait, id="the Stage is frozen"),
        pytest.param(b.snapshot(back=b.freight(), candidate=NEWER), StartRollback, id="its release failed"),
        pytest.param(
            b.snapshot(back=b.freight(), frozen="incident"), Wait, id="its release failed, but frozen"
        ),
        pytest.param(
            b.snapshot(back=b.freight(), last=b.promotion(state=State.FAILED, blocked=True)),
            StartRollback,
            id="its promotion failed, and the policy goes back",
        ),
        pytest.param(
            b.snapshot(candidate=b.freight(), problem="x.yaml:3: bad"), Wait, id="its configuration is wrong"
        ),
        pytest.param(
            b.snapshot(candidate=b.freight(), verifying="waits for verification: 2 of 5 measurements"),
            Wait,
            id="what it has is being verified",
        ),
        pytest.param(
            b.snapshot(candidate=b.freight(), last=b.promotion(state=State.FAILED, blocked=True)),
            Wait,
            id="the last promotion failed after its merge",
        ),
        pytest.param(b.snapshot(promotion=b.promotion()), MakePreview, id="a promotion is new"),
        pytest.param(
            b.snapshot(promotion=b.promotion(running="preview")), EnsureSegment, id="work is under way"
        ),
        pytest.param(b.snapshot(promotion=b.promotion(), preview=RED), Wait, id="the prepared zone failed"),
        pytest.param(
            b.snapshot(promotion=b.promotion(), preview=RED, base_changed=("a",)),
            MakePreview,
            id="and the base changed",
        ),
        pytest.param(
            b.snapshot(promotion=b.promotion(), preview=RED, steps_changed=True),
            MakePreview,
            id="and the steps changed",
        ),
        pytest.param(
            b.snapshot(promotion=b.promotion(cancel_requested=True)), End, id="cancelled before its preview"
        ),
        pytest.param(b.reviewed(), Wait, id="ready, but a person merges"),
        pytest.param(b.reviewed(policy=AUTO), Wait, id="ready, but the check is not green yet"),
        pytest.param(b.reviewed(policy=AUTO, check_green=True), Merge, id="ready, and the policy merges"),
        pytest.param(b.reviewed(policy=AUTO, check_green=True, gates=(CLOSED,)), Wait, id="a gate is closed"),
        pytest.param(b.reviewed(policy=AUTO, check_green=True, preview=RED), Wait, id="the preview is red"),
        pytest.param(b.reviewed(pull=None), MakePreview, id="its pull request is not to be found"),
        pytest.param(b.reviewed(pull=b.pull(open=False, closed_by="uma")), End, id="closed without a merge"),
        pytest.param(b.reviewed(pull=b.pull(head=MERGE)), MakePreview, id="somebody pushed"),
        pytest.param(
            b.reviewed(base_changed=("tf/main.tf",)), MakePreview, id="the base changed a touched path"
        ),
        pytest.param(b.reviewed(steps_changed=True), MakePreview, id="the pipeline changed"),
        pytest.param(
            b.reviewed(promotion=b.in_review(preview_wanted="asked for")),
            MakePreview,
            id="somebody typed /plan",
        ),
        pytest.param(b.reviewed(preview=BUSY, retry_preview_at=LATER), Wait, id="a passing trouble waits"),
        pytest.param(
            b.reviewed(preview=BUSY, retry_preview_at=b.NOW), MakePreview, id="a passing trouble is retried"
        ),
        pytest.param(
            b.reviewed(preview=waiting_preview(), retry_preview_at=b.NOW),
            MakePreview,
            id="a wait is asked again",
        ),
        pytest.param(
            b.reviewed(promotion=b.in_review(wake_at=LATER), pull=b.pull(head=MERGE)),
            Wait,
            id="a pause after an error",
        ),
        pytest.param(
            b.reviewed(pull=b.pull(open=False, merged=True, merge_commit=MERGE)),
            BeginFulfil,
            id="merged, gates open",
        ),
        pytest.param(
            b.reviewed(pull=b.pull(open=False, merged=True, merge_commit=MERGE), gates=(CLOSED,)),
            Hold,
            id="merged although a gate was closed",
        ),
        pytest.param(
            b.reviewed(pull=b.pull(open=False, merged=True, merge_commit=MERGE), preview=RED),
            Hold,
            id="merged while red",
        ),
        pytest.param(
            b.reviewed(
                promotion=b.in_review(state=State.HELD, merge_commit=MERGE, accepted=("d1",)), gates=(FROZEN,)
            ),
            Wait,
            id="merged, accepted by an approver, but frozen",
        ),
        pytest.param(
            b.reviewed(
                promotion=b.in_review(state=State.HELD, merge_commit=MERGE, accepted=("d1",)), gates=(CLOSED,)
            ),
            BeginFulfil,
            id="merged without approvals, accepted by an approver",
        ),
        pytest.param(
            b.reviewed(promotion=b.in_review(state=State.HELD, merge_commit=MERGE)),
            BeginFulfil,
            id="held, open now",
        ),
        pytest.param(
            b.reviewed(promotion=b.in_review(state=State.HELD, merge_commit=MERGE), gates=(CLOSED,)),
            Wait,
            id="held still",
        ),
        pytest.param(
            b.reviewed(
                promotion=b.in_review(state=State.HELD, merge_commit=MERGE),
                preview=waiting_preview(),
                gates=(Gate("wait", False, "http"),),
            ),
            BeginFulfil,
            id="held by what a step waits for, which the walk asks again",
        ),
        pytest.param(
            b.reviewed(
                promotion=b.in_review(state=State.HELD, merge_commit=MERGE),
                preview=waiting_preview(),
                gates=(Gate("wait", False, "http"), CLOSED),
            ),
            Wait,
            id="held by that and by something else",
        ),
        pytest.param(
            b.reviewed(promotion=b.in_review(state=State.HELD, merge_commit=MERGE), lost="values.yaml"),
            End,
            id="held, and the merge was reverted",
        ),
        pytest.param(
            b.reviewed(promotion=b.in_review(state=State.STOPPED, stop=Stop("differs", "d2"))),
            Wait,
            id="stopped",
        ),
        pytest.param(
            b.reviewed(promotion=b.in_review(state=State.STOPPED, stop=Stop("differs", "d2")), lost="x"),
            End,
            id="stopped before any effect, and the merge was reverted",
        ),
        pytest.param(
            b.reviewed(
                promotion=b.in_review(state=State.STOPPED, stop=Stop("differs", "d2")), lost="x", applied=True
            ),
            Wait,
            id="stopped after the apply, and the merge was reverted",
        ),
        pytest.param(
            b.reviewed(promotion=b.in_review(state=State.FULFILLING), lost="x"),
            End,
            id="nothing begun, and the merge was reverted",
        ),
        pytest.param(
            b.reviewed(
                promotion=b.in_review(state=State.STOPPED, stop=Stop("differs", "d2"), accepted=("d2",))
            ),
            ContinueFulfil,
            id="stopped and accepted",
        ),
        pytest.param(
            b.reviewed(
                promotion=b.in_review(state=State.STOPPED, stop=Stop("differs", "d2"), accepted=("d1",))
            ),
            Wait,
            id="stopped, and something else was accepted",
        ),
        pytest.param(
            b.reviewed(promotion=b.in_review(state=State.FULFILLING)), ContinueFulfil, id="fulfilling, due"
        ),
        pytest.param(
            b.reviewed(promotion=b.in_review(state=State.FULFILLING, wake_at=LATER)),
            Wait,
            id="fulfilling, not due",
        ),
        pytest.param(
            b.reviewed(promotion=b.in_review(state=State.FULFILLING), gates=(CLOSED,)),
            Wait,
            id="nothing begun, and a gate closed",
        ),
        pytest.param(
            b.reviewed(promotion=b.in_review(state=State.FULFILLING, effects_begun=True), gates=(CLOSED,)),
            ContinueFulfil,
            id="what was begun goes on although a gate closed",
        ),
    ],
)
def test_the_next_action(seen: Snapshot, action: type[Action]) -> None:
    found = plan(seen)
    assert type(found) is action


def test_a_failed_stage_says_what_to_do() -> None:
    found = plan(
        b.snapshot(candidate=b.freight(), last=b.promotion(state=State.FAILED, blocked=True, reason="boom"))
    )
    assert isinstance(found, Wait)
    assert "boom" in found.reason
    assert "/retry" in found.reason


def test_a_plan_too_old_for_the_policy_is_made_again() -> None:
    applying = b.preview(steps=b.steps(b.apply()))
    seen = b.reviewed(preview=applying, policy=ReviewPolicy(plan_max_age=60))
    assert isinstance(plan(seen), Wait)
    assert isinstance(plan(replace(seen, now=b.NOW + timedelta(seconds=60))), MakePreview)


def test_the_soonest_gate_says_when_to_look_again() -> None:
    gates = (replace(CLOSED, opens_at=LATER), replace(CLOSED, opens_at=LATER + timedelta(hours=1)))
    found = plan(b.reviewed(gates=gates))
    assert isinstance(found, Wait)
    assert found.until == LATER


def test_what_a_step_waits_for_is_asked_again_whatever_else_is_closed() -> None:
    seen = b.reviewed(preview=waiting_preview(), gates=(CLOSED,), retry_preview_at=LATER)
    found = plan(seen)
    assert isinstance(found, Wait)
    assert found.until == LATER


@pytest.mark.parametrize(
    ("changes", "superseded"),
    [
        pytest.param({}, True, id="newer Freight of the same origin"),
        pytest.param({"people_commits": (MERGE,)}, False, id="people's commits are not thrown away"),
        pytest.param({"tally": Tally(1, 1)}, False, id="somebody approved"),
        pytest.param(
            {"tally": Tally(1, 1), "policy": ReviewPolicy(supersede="Always")},
            True,
            id="the policy says always",
        ),
        pytest.param({"policy": ReviewPolicy(supersede="Never")}, False, id="the policy says never"),
        pytest.param({"promotion": b.in_review(actor="olivia")}, False, id="a person asked for it"),
        pytest.param({"promotion": b.in_review(rollback=True)}, False, id="it is a rollback"),
        pytest.param(
            {"candidate": replace(NEWER, origin=FreightOrigin("other"))},
            False,
            id="Freight of another origin waits",
        ),
        pytest.param(
            {"candidate": replace(NEWER, discovered_at=b.NOW - timedelta(days=1))}, False, id="older Freight"
        ),
    ],
)
def test_newer_freight_takes_over(changes: dict[str, object], superseded: bool) -> None:
    found = plan(b.reviewed(**({"candidate": NEWER, "gates": (CLOSED,)} | changes)))
    assert isinstance(found, End) is superseded
    if isinstance(found, End):
        assert found.superseded_by == NEWER


@pytest.mark.parametrize(
    ("changes", "merge"),
    [
        pytest.param(
            {}, Merge(b.HEAD, "git-merge-pr merges it: every gate is open", "squash"), id="all is open"
        ),
        pytest.param({"check_green": False}, None, id="the check is not green yet"),
        pytest.param({"gates": (CLOSED,)}, None, id="approvals are missing"),
    ],
)
def test_a_task_with_git_merge_pr_has_the_app_merge(changes: dict[str, object], merge: Merge | None) -> None:
    asked = b.report("git-merge-pr", StepClass.REVIEW, record=MergeRecord("squash"))
    seen = b.reviewed(**({"preview": b.preview(steps=b.steps(asked)), "check_green": True} | changes))
    found = plan(seen)
    assert found == merge if merge is not None else isinstance(found, Wait)


def test_a_merged_pull_request_is_fulfilled_even_if_newer_freight_is_there() -> None:
    merged = b.pull(open=False, merged=True, merge_commit=MERGE)
    assert plan(b.reviewed(candidate=NEWER, pull=merged)) == BeginFulfil(MERGE, "merged with every gate open")
