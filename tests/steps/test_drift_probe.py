"""Looking for drift: what is planned, with which credentials, and what is said where nothing can be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.drift import Finding, StateLook
from bot.domain.promotion import StepStatus
from bot.domain.review import ApplyKind, ApplyRecord
from bot.domain.terraform import Action
from bot.domain.values import Sensitive, Value
from bot.ports import TerminalError
from bot.steps.contract import Config, StepResult
from bot.steps.drift_probe import DriftProbe, ReadOnly, find_withheld, read_only
from bot.steps.git_clone import GitClone
from bot.steps.hcl_update import HclUpdate
from bot.steps.tf_apply import TfApply
from bot.steps.tf_output import TfOutput
from tests.steps.bench import Bench

DIRECTORY = "src/env/dev/terraform"
KEY = Sensitive("secret('aws').key", "write-everything")
PLAN_ENV: dict[str, Value] = {
    "AWS_KEY": Sensitive("secret('ro').key", "read-only"),
    "AWS_REGION": "eu-west-1",
}


def config(**env: Value) -> Config:
    given: list[Value] = [{"name": name, "value": value} for name, value in env.items()]
    return {"dir": f"./{DIRECTORY}", "env": given}


APPLY = config(AWS_REGION="eu-central-1", AWS_KEY=KEY)


async def clone(bench: Bench, tag: str = "", *, preview: bool = True) -> None:
    run = bench.preview if preview else bench.fulfil
    checkout: Value = {"path": "./src", "branch": "main"}
    await run(GitClone(bench.git), {"repoURL": bench.url, "checkout": [checkout]})
    if tag:
        item: Value = {"key": "fn__image", "value": tag}
        await run(HclUpdate(), {"path": f"{DIRECTORY}/main.auto.tfvars", "updates": [item]})


async def released(bench: Bench, given: Config = APPLY) -> None:
    """A promotion has applied what is there now."""
    step = TfApply(bench.git, bench.terraform, bench.vault, bench.plans)
    await clone(bench)
    await bench.preview(step, given)
    bench.again()
    await clone(bench, preview=False)
    assert (await bench.fulfil(step, given)).status is StepStatus.SUCCEEDED
    bench.again()
    bench.approved.clear()
    bench.journal.clear()
    bench.terraform.ran.clear()
    bench.terraform.runs.clear()


def tamper(bench: Bench) -> None:
    """Somebody changes a resource in the cloud."""
    (state,) = bench.terraform.states.values()
    state.resources["fn"]["image"] = "app:by-hand"


async def probe(bench: Bench, given: Config = APPLY, tag: str = "") -> tuple[StateLook, StepResult]:
    await clone(bench, tag)
    looking = DriftProbe(bench.git, bench.terraform, bench.vault, bench.plans)
    bench.tree.begin()
    context = replace(bench.context("tf-apply"), plan_environment=PLAN_ENV)
    result = await looking.preview(given, context)
    await bench.tree.end()
    (found,) = looking.found
    return found, result


async def test_unchanged_inputs_are_planned_and_an_empty_plan_is_no_drift(bench: Bench) -> None:
    await released(bench)
    found, result = await probe(bench)
    assert (found.finding, found.directory) == (Finding.NONE, DIRECTORY)
    assert bench.terraform.ran == [("plan", "env/dev/terraform")]
    assert isinstance(result.record, ApplyRecord)
    # To the steps behind it this is an apply without anything to do.
    assert (result.status, result.record.kind) == (StepStatus.SKIPPED, ApplyKind.UNCHANGED)


async def test_what_somebody_changed_is_drift(bench: Bench) -> None:
    await released(bench)
    tamper(bench)
    found, _ = await probe(bench)
    assert found.finding is Finding.DRIFT
    assert [(change.address, change.action) for change in found.changes] == [("fn", Action.UPDATE)]
    assert found.digest
    assert (await probe(_again(bench)))[0].digest == found.digest


def _again(bench: Bench) -> Bench:
    bench.again()
    return bench


async def test_a_look_takes_no_lock_and_no_secret_of_the_apply(bench: Bench) -> None:
    await released(bench)
    await probe(bench)
    (run,) = bench.terraform.runs
    assert not run.lock
    assert run.secrets == {"AWS_KEY": "read-only"}
    assert run.environment == {"AWS_REGION": "eu-west-1"}


async def test_inputs_that_differ_are_a_change_of_our_own(bench: Bench) -> None:
    await released(bench)
    found, _ = await probe(bench, tag="app:9.9.9")
    assert found.finding is Finding.PENDING
    assert "no longer those that were applied at" in found.reason
    assert bench.terraform.ran == []


async def test_a_state_that_was_never_applied_or_half_applied_is_not_planned(bench: Bench) -> None:
    found, _ = await probe(bench)
    assert (found.finding, found.reason) == (Finding.PENDING, f"Lockstep has not applied {DIRECTORY} yet")
    bench.again()
    await released(bench)
    (state,) = bench.plans.applied
    bench.plans.applied[state] = replace(bench.plans.applied[state], succeeded=False)
    found, _ = await probe(bench)
    assert (found.finding, "did not succeed" in found.reason) == (Finding.PENDING, True)
    assert bench.terraform.ran == []


async def test_a_variable_from_a_secret_is_an_input_that_only_plan_env_can_give(bench: Bench) -> None:
    given = config(TF_VAR_password=Sensitive("secret('db').password", "hush"))
    await released(bench, given)
    found, _ = await probe(bench, given)
    assert found.finding is Finding.UNSEEN
    assert "TF_VAR_password" in found.reason
    assert bench.terraform.ran == []


async def test_a_backend_that_is_down_is_told_and_is_not_no_drift(bench: Bench) -> None:
    await released(bench)
    bench.terraform.dead = True
    found, _ = await probe(bench)
    assert found.finding is Finding.UNSEEN
    assert found.reason


async def test_a_refused_plan_names_the_secrets_that_plan_env_does_not_give(bench: Bench) -> None:
    given = config(OTHER_TOKEN=KEY)
    await released(bench, given)
    bench.terraform.refuse_without = "OTHER_TOKEN"
    found, _ = await probe(bench, given)
    assert found.finding is Finding.UNSEEN
    assert "planEnv of the ReviewPolicy does not give OTHER_TOKEN" in found.reason


async def test_a_correction_is_planned_although_nothing_changed_and_owns_its_changes(bench: Bench) -> None:
    await released(bench)
    tamper(bench)
    bench.promotion = replace(bench.promotion, corrects=True)
    await clone(bench)
    step = TfApply(bench.git, bench.terraform, bench.vault, bench.plans)
    result = await bench.preview(step, APPLY)
    assert isinstance(result.record, ApplyRecord)
    assert (result.record.kind, result.record.pending) == (ApplyKind.CHANGES, frozenset())
    bench.again()
    await clone(bench, preview=False)
    assert (await bench.fulfil(step, APPLY)).status is StepStatus.SUCCEEDED
    (state,) = bench.terraform.states.values()
    assert state.resources["fn"]["image"] != "app:by-hand"


async def test_outputs_are_read_with_read_only_credentials_in_the_same_workspace(bench: Bench) -> None:
    await clone(bench)
    step = ReadOnly(TfOutput(bench.git, bench.terraform, bench.vault, bench.plans))
    context = replace(bench.context("tf-output"), plan_environment=PLAN_ENV)
    bench.tree.begin()
    await step.preview({**config(AWS_KEY=KEY, TF_WORKSPACE="blue")}, context)
    (run,) = bench.terraform.runs
    assert run.secrets == {"AWS_KEY": "read-only"}
    assert run.environment == {"AWS_REGION": "eu-west-1", "TF_WORKSPACE": "blue"}


async def test_nothing_is_ever_carried_out(bench: Bench) -> None:
    looking = DriftProbe(bench.git, bench.terraform, bench.vault, bench.plans)
    with pytest.raises(TerminalError, match="applies nothing"):
        await looking.fulfil(APPLY, bench.context("tf-apply"))
    step = ReadOnly(TfOutput(bench.git, bench.terraform, bench.vault, bench.plans))
    with pytest.raises(TerminalError, match="carries nothing out"):
        await step.fulfil(APPLY, bench.context("tf-output"))


def test_plan_env_overrules_credentials_and_never_inputs() -> None:
    given: dict[str, Value] = {"AWS_REGION": "a", "TF_VAR_size": "3", "TF_WORKSPACE": "blue", "AWS_KEY": KEY}
    allowed: dict[str, Value] = {"AWS_REGION": "b", "TF_VAR_size": "4", "TF_WORKSPACE": "green"}
    assert read_only(given, allowed) == {"AWS_REGION": "b", "TF_VAR_size": "3", "TF_WORKSPACE": "blue"}
    secret: dict[str, Value] = {"TF_VAR_password": KEY, "AWS_KEY": KEY}
    assert find_withheld(secret, {}) == ("TF_VAR_password",)
    assert find_withheld(secret, {"TF_VAR_password": "x"}) == ()
