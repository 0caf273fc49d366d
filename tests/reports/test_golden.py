"""Whole reports, read by a person: `--update-golden` rewrites them, the diff is what is reviewed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.actions import Gate
from bot.domain.approvals import Tally
from bot.domain.files import Change, File
from bot.domain.github import CheckRun
from bot.domain.promotion import EarlyApply, State, StepStatus, Stop
from bot.domain.review import ApplyKind, Lane, Patch, PreparedCommit, Problem, Split
from bot.domain.terraform import Action, AttributeChange, ResourceChange
from bot.domain.view import PromotionView, StageLine
from bot.reports.answers import render_explain, render_status
from bot.reports.body import render_body, render_title
from bot.reports.checks import render_gate_check, render_outcome_check, render_plan_check
from bot.reports.comments import render_outcome_comment, render_plan_comment
from tests.reports.views import (
    BASE,
    EXCLUDED,
    HEAD,
    MAIN,
    MERGE,
    NEW,
    NOW,
    OLD,
    STRICT,
    TFVARS,
    VALUES,
    apply,
    create,
    outcome,
    plan,
    preview,
    promotion,
    run,
    steps,
    view,
)

Golden = Callable[[str, str], None]


def first_release() -> PromotionView:
    return view(
        current=None,
        stages=(
            StageLine("dev", NEW, NOW - timedelta(hours=2), verified=True),
            StageLine("staging", None, here=True),
            StageLine("prod", None),
        ),
    )


def image_only() -> PromotionView:
    values = Change(VALUES, File(b'tag: "1.0.0"\n'), File(b'tag: "1.1.0"\n'))
    unchanged = apply(None, ApplyKind.UNCHANGED, applied_at="a" * 40)
    complete = preview(
        steps=steps(unchanged, deferred=False, holes=False),
        split=Split(cut=7, prepared=(PreparedCommit("Promote", (values,)),), deferred=Patch(MAIN, ())),
        lane=Lane.COMPLETE,
        lane_reason="The diff holds the whole change; nothing is applied.",
        origins={},
    )
    lambda_stays = replace(NEW, images=(NEW.images[0], OLD.images[1]))
    return view(
        preview=complete,
        promotion=promotion(freight=lambda_stays),
        gates=(Gate("freeze", True, "no freeze"), Gate("approvals", True, "the policy dev approves")),
        tally=Tally(0, 0, by_policy="dev"),
        auto_merge=True,
    )


def red_plan() -> PromotionView:
    failed = apply(None, ApplyKind.CHANGES)
    problem = Problem(
        "promote::apply-network",
        "terraform plan in env/staging/terraform failed: Reference to undeclared resource (main.tf:12)",
        log="\nError: Reference to undeclared resource\n\n  on main.tf line 12:\n  12:   role = aws_iam_role.ap.arn\n",
        path="src/env/staging/terraform/main.tf",
        line=12,
    )
    return view(preview=preview(failed, problems=(problem,)), waiting=problem.message)


def destroying() -> PromotionView:
    database = ResourceChange(
        "aws_db_instance.orders",
        "aws_db_instance",
        Action.REPLACE,
        (AttributeChange("engine_version", "14.9", "16.2", forces_replacement=True),),
    )
    rule = ResourceChange(
        "aws_security_group_rule.old",
        "aws_security_group_rule",
        Action.DELETE,
        reason="delete_because_no_resource_config",
    )
    function = ResourceChange(
        "aws_lambda_function.app",
        "aws_lambda_function",
        Action.UPDATE,
        (AttributeChange("memory_size", 128, 256),),
    )
    left = create("aws_s3_bucket.left_over")
    found = plan(
        rule,
        database,
        function,
        left,
        drift=(function,),
        resource_lines={"aws_db_instance.orders": ("db.tf", 3)},
    )
    record = apply(found, pending=frozenset({left.address}), previous_failed=True)
    warned = preview(record, warnings=("Terraform deploys into the cluster: helm_release.otel (main.tf:40)",))
    return view(preview=warned)


def waiting_for_approvals() -> PromotionView:
    gates = (
        Gate("window", False, "closed on Thursdays after 17:00", opens_at=NOW + timedelta(hours=17)),
        Gate("freeze", True, "no freeze"),
        Gate("approvals", False, "1 of 2 approvals"),
    )
    return view(
        gates=gates, tally=EXCLUDED, approvals=STRICT, promotion=promotion(actor="olivia", actor_id=4)
    )


def rollback() -> PromotionView:
    until = Gate("window", True, "promotions are allowed now", opens_at=NOW + timedelta(hours=2))
    return view(
        promotion=promotion(freight=OLD, rollback=True, actor="dana", actor_id=5),
        current=NEW,
        tally=replace(EXCLUDED, destroy_needed=0),
        gates=(until, Gate("approvals", False, "1 of 2 approvals")),
    )


def after(state: State, **changes: object) -> PromotionView:
    runs = outcome(
        run(
            "promote::apply-network",
            StepStatus.SUCCEEDED,
            "Apply complete! Resources: 4 added, 0 changed, 0 destroyed.",
        ),
        run("promote::step-4", StepStatus.SUCCEEDED, "2 outputs"),
    )
    moved = promotion(state=state, merge_commit=MERGE, effects_begun=True, **changes)
    return view(promotion=moved, outcome=runs, gates=(), waiting="")


def stopped() -> PromotionView:
    details = ('env/staging/helm/values.yaml:7: approved LAMBDA_URL: "", now LAMBDA_URL: null',)
    stop = Stop("promote::commit would commit something else than was approved", "5b1e0c93d8f2a764", details)
    return after(State.STOPPED, stop=stop, reason=stop.reason)


def failed_apply() -> PromotionView:
    seen = after(
        State.FAILED,
        blocked=True,
        finished_at=NOW,
        reason="promote::apply-network: terraform apply failed: quota",
    )
    log = "aws_iam_role.app: Creating...\naws_iam_role.app: Creation complete after 1s\n\nError: LimitExceeded: quota"
    failed = run(
        "promote::apply-network",
        StepStatus.FAILED,
        "terraform apply failed: LimitExceeded: quota",
        detail={"log": log},
    )
    return replace(seen, outcome=outcome(failed, run("promote::step-4", StepStatus.SKIPPED)))


def done() -> PromotionView:
    seen = after(
        State.SUCCEEDED, finished_at=NOW, release_commit="f" * 40, reason="coordinated: every step is done"
    )
    rest = ("promote::step-5", "promote::commit", "promote::step-7", "promote::step-8")
    return replace(
        seen,
        outcome=outcome(*seen.outcome.runs.values(), *(run(alias, StepStatus.SUCCEEDED) for alias in rest)),
    )


def held() -> PromotionView:
    seen = after(State.HELD, reason="merged although: 0 of 1 approvals")
    return replace(seen, outcome=outcome(), gates=view().gates)


def under_way() -> PromotionView:
    seen = after(
        State.FULFILLING, reason="promote::step-8: otel-app-staging is Progressing; asked again in 10 s"
    )
    running = run(
        "promote::step-8", StepStatus.RUNNING, "otel-app-staging is Progressing", finished_at=None,
        begun_at=NOW - timedelta(minutes=3),
    )  # fmt: skip
    return replace(seen, outcome=outcome(*seen.outcome.runs.values(), running))


def superseded() -> PromotionView:
    return view(promotion=promotion(state=State.ABORTED, reason="superseded by keen-lynx", finished_at=NOW))


def waiting_for_apply() -> PromotionView:
    gates = (
        Gate("approvals", True, "approved by dana"),
        Gate("apply", False, "waits for `/apply` by an approver"),
    )
    return view(
        gates=gates,
        tally=Tally(1, 1),
        waiting="ready to be applied: an approver types `/apply`",
        auto_merge=True,
        early=True,
    )


def failed_before_merge() -> PromotionView:
    seen = waiting_for_apply()
    stop = Stop("promote::apply-network: terraform apply failed", "", failed=True)
    early = EarlyApply(seen.promotion.digest, "dana", head=HEAD, base=BASE, commit=HEAD)
    failed = promotion(
        state=State.STOPPED, stop=stop, reason=stop.reason, early=early, effects_begun=True, attempt=1
    )
    gates = (
        Gate("approvals", True, "approved by dana"),
        Gate("apply", False, "stopped before the merge"),
    )
    ran = run(
        "promote::apply-network", StepStatus.FAILED, "terraform apply failed", detail={"log": "Error: no"}
    )
    return replace(seen, promotion=failed, gates=gates, waiting=stop.reason, outcome=outcome(ran))


def rollback_that_keeps() -> PromotionView:
    kept = apply(None, ApplyKind.KEPT)
    found = preview(kept, lane=Lane.COMPLETE, origins={})
    edit = replace(found.steps[1], left_out=(f"src/{TFVARS}",))
    return view(
        promotion=promotion(rollback=True, freight=OLD, actor="olivia"),
        preview=replace(found, steps=(found.steps[0], edit, *found.steps[2:])),
        current=NEW,
    )


BEFORE = [
    first_release,
    image_only,
    red_plan,
    destroying,
    waiting_for_approvals,
    rollback,
    waiting_for_apply,
    failed_before_merge,
    rollback_that_keeps,
]
AFTER = [stopped, failed_apply, done, held, under_way, superseded]


def shown_check(check: CheckRun) -> str:
    lines = [f"title: {check.title}", f"conclusion: {check.conclusion}"]
    lines += [f"button: {b.label} ({b.identifier}): {b.description}" for b in check.buttons]
    lines += [f"annotation: {a.path}:{a.line} {a.level} {a.title}: {a.message}" for a in check.annotations]
    return "\n".join([f"== check {check.name}", *lines])


@pytest.mark.parametrize("case", BEFORE, ids=lambda case: case.__name__)
def test_before_the_merge(case: Callable[[], PromotionView], golden: Golden) -> None:
    seen = case()
    parts = [
        f"== title\n{render_title(seen)}",
        f"== body\n{render_body(seen)}",
        f"== plan comment\n{render_plan_comment(seen)}",
        f"== explain\n{render_explain(seen)}",
        shown_check(render_gate_check(seen)),
        shown_check(render_plan_check(seen)),
    ]
    golden(f"{case.__name__}.md", "\n\n".join(parts) + "\n")


@pytest.mark.parametrize("case", AFTER, ids=lambda case: case.__name__)
def test_after_the_merge(case: Callable[[], PromotionView], golden: Golden) -> None:
    seen = case()
    parts = [
        f"== outcome comment\n{render_outcome_comment(seen)}",
        f"== body\n{render_body(seen)}",
        f"== explain\n{render_explain(seen)}",
        shown_check(render_outcome_check(seen)),
    ]
    golden(f"{case.__name__}.md", "\n\n".join(parts) + "\n")


def test_status(golden: Golden) -> None:
    golden("status.md", render_status(view()) + "\n")
