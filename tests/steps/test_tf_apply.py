"""tf-apply and tf-plan: what is planned when, and that nothing is applied that nobody approved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.files import CommitId
from bot.domain.promotion import StepRun, StepStatus
from bot.domain.review import ApplyKind, ApplyRecord
from bot.domain.review_policy import ReviewPolicy
from bot.domain.terraform import Lock, Output
from bot.domain.values import Sensitive, Text, Unknown, Value
from bot.ports import TerminalError, TransientError
from bot.steps.contract import Config, StepResult
from bot.steps.git_clone import GitClone
from bot.steps.hcl_update import HclUpdate
from bot.steps.tf_apply import TfApply
from bot.steps.tf_plan import TfPlan
from tests.steps.bench import Bench
from tests.steps.fakes import CloudState

DIRECTORY = "src/env/dev/terraform"
APPLY: Config = {"dir": f"./{DIRECTORY}"}
RESULT = Unknown("known after apply: result")


def apply_step(bench: Bench) -> TfApply:
    return TfApply(bench.git, bench.terraform, bench.vault, bench.plans)


def plan_step(bench: Bench) -> TfPlan:
    return TfPlan(bench.git, bench.terraform, bench.vault, bench.plans)


def update(value: Value, key: str = "fn__image") -> Config:
    item: Value = {"key": key, "value": value}
    return {"path": f"{DIRECTORY}/main.auto.tfvars", "updates": [item]}


async def prepare(bench: Bench, value: Value = "app:1.2.3", *, preview: bool = True) -> None:
    run = bench.preview if preview else bench.fulfil
    checkout: Value = {"path": "./src", "branch": "main"}
    await run(GitClone(bench.git), {"repoURL": bench.url, "checkout": [checkout]})
    if value is not None:
        await run(HclUpdate(), update(value))


async def previewed(bench: Bench, value: Value = "app:1.2.3") -> ApplyRecord:
    await prepare(bench, value)
    result = await bench.preview(apply_step(bench), APPLY)
    assert isinstance(result.record, ApplyRecord)
    return result.record


async def fulfilled(bench: Bench, value: Value = "app:1.2.3") -> StepResult:
    await prepare(bench, value, preview=False)
    return await bench.fulfil(apply_step(bench), APPLY)


async def released(bench: Bench, value: str = "app:1.0.0") -> None:
    """A promotion before this one brought the state where the files are."""
    await previewed(bench, value)
    bench.again()
    result = await fulfilled(bench, value)
    assert result.status is StepStatus.SUCCEEDED
    bench.again()
    bench.approved.clear()
    bench.journal.clear()
    bench.terraform.ran.clear()


# -- preview ---------------------------------------------------------------------------------------------------


async def test_changes_are_planned_without_lock_and_kept(bench: Bench) -> None:
    await prepare(bench)
    result = await bench.preview(apply_step(bench), APPLY)
    record = result.record
    assert isinstance(record, ApplyRecord)
    assert (result.status, result.output) == (None, {"result": RESULT})
    assert record.kind is ApplyKind.CHANGES
    assert record.state.endswith("/acme/ops#env/dev/terraform@default")
    assert record.input_paths == {f"{DIRECTORY}/main.tf", f"{DIRECTORY}/main.auto.tfvars"}
    assert record.pending == frozenset()
    assert await bench.plans.get_bundle(bench.promotion.id, record.bundle) is not None
    assert bench.terraform.ran == [("plan", "env/dev/terraform")]
    assert not bench.terraform.runs[0].lock


async def test_equal_inputs_are_not_planned_even_with_the_backend_down(bench: Bench) -> None:
    await released(bench)
    bench.terraform.dead = True
    await prepare(bench, None)
    result = await bench.preview(apply_step(bench), APPLY)
    assert result.status is StepStatus.SKIPPED
    assert "Inputs equal those applied at" in str(result.output["result"])
    assert isinstance(result.record, ApplyRecord)
    assert result.record.kind is ApplyKind.UNCHANGED
    bench.again()
    assert (await fulfilled(bench, None)).status is StepStatus.SKIPPED
    assert bench.terraform.ran == []


async def test_the_policy_may_ask_for_a_plan_every_time(bench: Bench) -> None:
    await released(bench)
    bench.policy = ReviewPolicy(unchanged_inputs="Plan")
    record = await previewed(bench, None)
    assert record.kind is ApplyKind.EMPTY


async def test_a_failed_apply_counts_as_never_applied(bench: Bench) -> None:
    await released(bench)
    (state,) = bench.plans.applied
    bench.plans.applied[state] = replace(bench.plans.applied[state], succeeded=False)
    record = await previewed(bench, None)
    assert (record.kind, record.previous_failed) == (ApplyKind.EMPTY, True)


async def test_changes_that_the_base_has_already_are_pending(bench: Bench) -> None:
    record = await previewed(bench, None)
    assert record.pending == {"fn"}


async def test_an_empty_plan_is_recorded_as_applied_at_the_merge(bench: Bench) -> None:
    await released(bench)
    bench.plans.applied.clear()
    record = await previewed(bench, None)
    assert record.kind is ApplyKind.EMPTY
    bench.again(merge=CommitId("c" * 40))
    result = await fulfilled(bench, None)
    assert (result.status, result.output) == (
        StepStatus.SKIPPED,
        {"result": "No changes. Your infrastructure matches."},
    )
    (applied,) = bench.plans.applied.values()
    assert (applied.succeeded, applied.commit, applied.inputs) == (True, "c" * 40, record.inputs)


async def test_known_output_changes_alone_are_no_barrier(bench: Bench) -> None:
    await released(bench)
    await prepare(bench, None)
    await bench.preview(HclUpdate(), update("collector", "output_name"))
    result = await bench.preview(apply_step(bench), APPLY)
    assert isinstance(result.record, ApplyRecord)
    assert result.record.kind is ApplyKind.OUTPUTS_ONLY
    assert not result.record.kind.is_barrier
    bench.again()
    await prepare(bench, None, preview=False)
    await bench.fulfil(HclUpdate(), update("collector", "output_name"))
    assert (await bench.fulfil(apply_step(bench), APPLY)).status is StepStatus.SUCCEEDED
    assert bench.terraform.ran[-1][0] == "apply"


async def test_an_apply_behind_one_with_changes_is_provisional(bench: Bench) -> None:
    await prepare(bench)
    first = await bench.preview(apply_step(bench), APPLY, "net")
    assert isinstance(first.record, ApplyRecord)
    await bench.tree.write("src/app/main.tf", b'terraform {\n  backend "http" {}\n}\n')
    await bench.tree.write("src/app/main.auto.tfvars", b"")
    result = await bench.preview(apply_step(bench), {"dir": "src/app"}, "app")
    assert isinstance(result.record, ApplyRecord)
    assert result.record.kind is ApplyKind.PROVISIONAL
    assert result.record.plan is not None
    assert result.record.plan.is_empty


async def test_the_same_state_twice_is_unknowable(bench: Bench) -> None:
    await prepare(bench)
    await bench.preview(apply_step(bench), APPLY, "one")
    result = await bench.preview(apply_step(bench), APPLY, "two")
    assert isinstance(result.record, ApplyRecord)
    assert (result.record.kind, result.record.plan) == (ApplyKind.UNKNOWABLE, None)


@pytest.mark.parametrize("where", ["a file", "a variable", "the environment"])
async def test_an_unknown_input_is_not_given_to_terraform(bench: Bench, where: str) -> None:
    mark = Text(("app:", Unknown("known after apply: tag")))
    await prepare(bench, mark if where == "a file" else None)
    extra: dict[str, Value] = {}
    if where == "a variable":
        extra["vars"] = [{"name": "tag", "value": mark}]
    if where == "the environment":
        extra["env"] = [{"name": "TAG", "value": mark}]
    result = await bench.preview(apply_step(bench), {**APPLY, **extra})
    assert isinstance(result.record, ApplyRecord)
    assert result.record.kind is ApplyKind.UNKNOWABLE
    assert bench.terraform.ran == []


async def test_a_failing_plan_names_file_and_line(bench: Bench) -> None:
    await prepare(bench, "!broken")
    result = await bench.preview(apply_step(bench), APPLY)
    assert result.status is StepStatus.FAILED
    assert result.problem is not None
    assert (result.problem.path, result.problem.line) == ("env/dev/terraform/main.auto.tfvars", 1)
    assert "Invalid value (main.auto.tfvars:1)" in result.message


async def test_resources_that_deploy_into_the_cluster_are_pointed_out(bench: Bench) -> None:
    await prepare(bench)
    text = 'kube__image = "x"\n'
    await bench.tree.write(f"{DIRECTORY}/main.auto.tfvars", text.encode())
    result = await bench.preview(apply_step(bench), APPLY)
    assert isinstance(result.record, ApplyRecord)
    assert result.record.boundary == (f"kube ({DIRECTORY}/main.tf:3)",)


async def test_secrets_enter_the_inputs_by_name_and_the_run_by_value(bench: Bench) -> None:
    await prepare(bench)
    digests = []
    for password in ("one", "two"):
        item: Value = {"name": "AWS_SECRET_ACCESS_KEY", "value": Sensitive("aws.key", password)}
        result = await bench.preview(apply_step(bench), {**APPLY, "env": [item]}, password)
        assert isinstance(result.record, ApplyRecord)
        digests.append(result.record.inputs)
        bench.reports.pop()
    assert digests[0] == digests[1]
    assert bench.terraform.runs[-1].secrets == {"AWS_SECRET_ACCESS_KEY": "two"}
    assert bench.terraform.runs[-1].environment == {}


@pytest.mark.parametrize(
    "main", ['resource "x" "y" {}\n', 'terraform {\n  backend "local" {}\n}\n'], ids=["no backend", "local"]
)
async def test_state_in_the_repository_is_refused_with_advice(bench: Bench, main: str) -> None:
    await prepare(bench)
    await bench.tree.write(f"{DIRECTORY}/main.tf", main.encode())
    with pytest.raises(TerminalError, match="stateInGit: true"):
        await bench.preview(apply_step(bench), APPLY)


# -- fulfil ----------------------------------------------------------------------------------------------------


async def test_the_saved_plan_is_applied_without_planning_again(bench: Bench) -> None:
    record = await previewed(bench)
    bench.again(merge=CommitId("c" * 40))
    result = await fulfilled(bench)
    assert (result.status, result.output) == (
        StepStatus.SUCCEEDED,
        {"result": "Apply complete! Resources: 1 changed."},
    )
    assert [what for what, _ in bench.terraform.ran] == ["plan", "apply"]
    applied = bench.plans.applied[record.state]
    assert (applied.inputs, applied.commit, applied.succeeded) == (record.inputs, "c" * 40, True)


async def test_a_stale_plan_is_made_again_and_applied_if_it_is_the_same(bench: Bench) -> None:
    record = await previewed(bench)
    bench.again()
    bench.terraform.states.setdefault(run_key_of(bench), CloudState()).serial += 1
    result = await fulfilled(bench)
    assert result.status is StepStatus.SUCCEEDED
    assert [what for what, _ in bench.terraform.ran] == ["plan", "apply", "plan", "apply"]
    assert bench.plans.applied[record.state].succeeded


def run_key_of(bench: Bench) -> str:
    return bench.terraform.runs[0].key


async def test_a_stale_plan_that_became_another_stops_until_it_is_accepted(bench: Bench) -> None:
    await released(bench)
    await previewed(bench)
    bench.again()
    state = bench.terraform.states[run_key_of(bench)]
    state.resources["other"] = {"id": "id-other"}
    state.serial += 1
    stopped = await fulfilled(bench)
    assert stopped.stop is not None
    assert stopped.stop.details == ("other: not approved, would be deleted",)
    assert [what for what, _ in bench.terraform.ran][-1] == "plan"
    bench.again()
    still = await fulfilled(bench)
    assert still.stop == stopped.stop
    accepted = replace(bench.promotion, accepted=(stopped.stop.digest,))
    bench.again(promotion=accepted)
    assert (await fulfilled(bench)).status is StepStatus.SUCCEEDED
    assert "other" not in state.resources


async def test_a_lock_is_waited_for_and_the_saved_plan_used_then(bench: Bench) -> None:
    await previewed(bench)
    bench.again()
    bench.terraform.locked = Lock("1", who="ada@laptop", created="today")
    waiting = await fulfilled(bench)
    assert (waiting.status, waiting.retry_after) == (StepStatus.RUNNING, 30.0)
    assert "locked by ada@laptop since today" in waiting.message
    bench.again()
    bench.terraform.locked = None
    assert (await fulfilled(bench)).status is StepStatus.SUCCEEDED
    assert [what for what, _ in bench.terraform.ran] == ["plan", "apply", "apply"]


async def crash_during_apply(bench: Bench) -> None:
    bench.terraform.interrupt = True
    with pytest.raises(KeyboardInterrupt):
        await fulfilled(bench)
    bench.terraform.interrupt = False
    assert bench.journal["tf-apply"].finished_at is None


async def test_a_crash_before_terraform_was_asked_is_no_unknown_outcome(bench: Bench) -> None:
    await previewed(bench)
    bench.again()
    # The pass began, and the process died before Terraform was started.
    bench.journal["tf-apply"] = StepRun("tf-apply", "tf-apply", 1, StepStatus.RUNNING, begun_at=bench.now)
    assert (await fulfilled(bench)).status is StepStatus.SUCCEEDED
    assert [what for what, _ in bench.terraform.ran] == ["plan", "apply"]


async def test_after_a_crash_an_empty_plan_proves_the_apply(bench: Bench) -> None:
    record = await previewed(bench)
    bench.again()
    await crash_during_apply(bench)
    state = bench.terraform.states[run_key_of(bench)]
    # The resource is there; Terraform lost only the outputs, and somebody wrote them since.
    url = Output(state.resources["fn"]["id"], type="string")
    state.outputs = {"lambda_url": url, "name": Output("otel", type="string")}
    bench.again()
    result = await fulfilled(bench)
    assert result.status is StepStatus.SUCCEEDED
    assert bench.plans.applied[record.state].succeeded
    assert [what for what, _ in bench.terraform.ran].count("apply") == 1


async def test_after_a_crash_whatever_is_left_waits_for_a_person(bench: Bench) -> None:
    record = await previewed(bench)
    bench.again()
    await crash_during_apply(bench)
    bench.again()
    unknown = await fulfilled(bench)
    assert unknown.status is StepStatus.ERRORED
    assert "outcome unknown" in unknown.message
    assert not bench.plans.applied[record.state].succeeded
    bench.again()
    assert (await fulfilled(bench)).status is StepStatus.ERRORED
    assert [what for what, _ in bench.terraform.ran].count("apply") == 1
    bench.again(attempt=2)
    retried = await fulfilled(bench)
    assert retried.status is StepStatus.SUCCEEDED
    assert bench.plans.applied[record.state].succeeded


async def test_an_unknown_outcome_is_not_forgotten_while_the_backend_is_down(bench: Bench) -> None:
    await previewed(bench)
    bench.again()
    await crash_during_apply(bench)
    bench.again()
    bench.terraform.dead = True
    assert (await fulfilled(bench)).status is StepStatus.RUNNING
    bench.again()
    bench.terraform.dead = False
    assert (await fulfilled(bench)).status is StepStatus.ERRORED
    assert [what for what, _ in bench.terraform.ran].count("apply") == 1


async def test_a_retry_applies_the_rest_of_a_failed_apply_unasked(bench: Bench) -> None:
    await prepare(bench)
    two = b'fn__image = "a"\ngw__image = "b"\noutput_lambda_url = id(fn)\n'
    await bench.tree.write(f"{DIRECTORY}/main.auto.tfvars", two)
    await bench.preview(apply_step(bench), APPLY)

    async def again() -> StepResult:
        bench.again()
        await prepare(bench, preview=False)
        await bench.tree.write(f"{DIRECTORY}/main.auto.tfvars", two)
        return await bench.fulfil(apply_step(bench), APPLY)

    bench.terraform.fail_after = 1
    failed = await again()
    assert failed.status is StepStatus.FAILED
    assert "the cloud said no (main.tf:7)" in failed.message
    assert "/retry" in failed.message
    bench.terraform.fail_after = None
    bench.attempt = 2
    retried = await again()
    assert retried.status is StepStatus.SUCCEEDED
    state = bench.terraform.states[run_key_of(bench)]
    assert set(state.resources) == {"fn", "gw"}
    assert state.tainted == set()


async def test_a_retry_whose_plan_does_more_stops(bench: Bench) -> None:
    await previewed(bench)
    bench.again()
    bench.terraform.fail_after = 1
    await fulfilled(bench)
    bench.terraform.fail_after = None
    bench.terraform.states[run_key_of(bench)].resources["other"] = {"id": "x"}
    bench.again(attempt=2)
    result = await fulfilled(bench)
    assert result.stop is not None
    assert "other: not approved, would be deleted" in result.stop.details


async def test_other_inputs_than_the_approved_ones_are_never_applied_blindly(bench: Bench) -> None:
    await previewed(bench, "app:1.2.3")
    bench.again()
    result = await fulfilled(bench, "app:6.6.6")
    assert result.stop is not None
    assert bench.terraform.states == {} or not bench.terraform.states[run_key_of(bench)].resources


async def test_a_missing_bundle_is_planned_anew(bench: Bench) -> None:
    await previewed(bench)
    await bench.plans.drop_bundles(bench.promotion.id)
    bench.again()
    assert (await fulfilled(bench)).status is StepStatus.SUCCEEDED
    assert [what for what, _ in bench.terraform.ran] == ["plan", "plan", "apply"]


async def test_an_unknowable_apply_is_asked_for_and_then_done(bench: Bench) -> None:
    mark = Text(("app:", Unknown("known after apply: tag")))
    await previewed(bench, mark)
    bench.again()
    asked = await fulfilled(bench)
    assert asked.stop is not None
    assert "could be made only now" in asked.stop.reason
    bench.again(promotion=replace(bench.promotion, accepted=(asked.stop.digest,)))
    assert (await fulfilled(bench)).status is StepStatus.SUCCEEDED


async def test_a_provisional_apply_that_turns_out_empty_is_skipped(bench: Bench) -> None:
    await released(bench)
    (state,) = bench.plans.applied
    await prepare(bench, None)
    await bench.tree.write("src/net/main.tf", b'terraform {\n  backend "http" {}\n}\n')
    await bench.tree.write("src/net/main.auto.tfvars", b'net__cidr = "10.0.0.0/8"\n')
    await bench.preview(apply_step(bench), {"dir": "src/net"}, "net")
    second = await bench.preview(apply_step(bench), APPLY, "app")
    assert isinstance(second.record, ApplyRecord)
    assert second.record.kind is ApplyKind.PROVISIONAL
    bench.again()
    await prepare(bench, None, preview=False)
    result = await bench.fulfil(apply_step(bench), APPLY, "app")
    assert result.status is StepStatus.SKIPPED
    assert bench.plans.applied[state].succeeded


async def test_drift_of_unchanged_inputs_behind_a_changing_apply_is_left_alone(bench: Bench) -> None:
    await released(bench)
    cloud_state = bench.terraform.states[run_key_of(bench)]
    cloud_state.resources["fn"]["image"] = "somebody changed it"
    await prepare(bench, None)
    await bench.tree.write("src/net/main.tf", b'terraform {\n  backend "http" {}\n}\n')
    await bench.tree.write("src/net/main.auto.tfvars", b'net__cidr = "10.0.0.0/8"\n')
    await bench.preview(apply_step(bench), {"dir": "src/net"}, "net")
    await bench.preview(apply_step(bench), APPLY, "app")
    bench.again()
    await prepare(bench, None, preview=False)
    result = await bench.fulfil(apply_step(bench), APPLY, "app")
    assert result.status is StepStatus.SKIPPED
    assert "drift" in str(result.output["result"])
    assert cloud_state.resources["fn"]["image"] == "somebody changed it"


async def test_a_backend_that_does_not_answer_is_the_engines_to_retry(bench: Bench) -> None:
    bench.terraform.dead = True
    await prepare(bench)
    with pytest.raises(TransientError):
        await bench.preview(apply_step(bench), APPLY)


# -- tf-plan -----------------------------------------------------------------------------------------------------


async def test_tf_plan_tells_changes_by_its_status(bench: Bench) -> None:
    await prepare(bench)
    result = await bench.preview(plan_step(bench), {**APPLY, "out": "tfplan"})
    assert (result.status, result.output) == (StepStatus.SUCCEEDED, {"plan": "text of Plan: 1 to change."})
    assert bench.tree.list(DIRECTORY) == [f"{DIRECTORY}/main.auto.tfvars", f"{DIRECTORY}/main.tf"]


async def test_tf_plan_of_applied_inputs_is_skipped_unasked(bench: Bench) -> None:
    await released(bench)
    await prepare(bench, None)
    result = await bench.preview(plan_step(bench), APPLY)
    assert result.status is StepStatus.SKIPPED
    assert bench.terraform.ran == []


async def test_an_apply_of_a_named_plan_uses_its_variables(bench: Bench) -> None:
    await prepare(bench, "app:$tag")
    variables: Value = [{"name": "tag", "value": "1.2.3"}]
    await bench.preview(plan_step(bench), {**APPLY, "out": "tfplan", "vars": variables})
    result = await bench.preview(apply_step(bench), {**APPLY, "plan": "tfplan"})
    assert isinstance(result.record, ApplyRecord)
    assert result.record.kind is ApplyKind.CHANGES
    assert bench.terraform.runs[-1].variables == (("tag", "1.2.3"),)


async def test_an_apply_of_a_plan_that_nobody_made_is_refused(bench: Bench) -> None:
    await prepare(bench)
    with pytest.raises(TerminalError, match="no earlier tf-plan"):
        await bench.preview(apply_step(bench), {**APPLY, "plan": "tfplan"})
