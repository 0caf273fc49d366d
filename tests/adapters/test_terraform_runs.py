"""The Terraform adapter with the real binary: plans, applies, outputs and how they fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.files import File
from bot.domain.plan_digest import find_differences
from bot.domain.terraform import (
    Action,
    Applied,
    Failed,
    Interrupted,
    Outputs,
    StalePlan,
    StateLocked,
    count,
)
from bot.domain.values import Sensitive, Unknown
from bot.ports import TerminalError, TerraformRun
from tests.adapters.state_server import StateServer, serve_states
from tests.adapters.terraform_bed import LOCK_FILE, make_run, make_runner, planned, until

MAIN = """
variable "tag" {
  type    = string
  default = "1"
}
resource "terraform_data" "app" {
  input = var.tag
}
output "url" { value = "https://${terraform_data.app.id}.example.com" }
output "tag" { value = terraform_data.app.input }
"""


@pytest.fixture
async def states() -> AsyncIterator[StateServer]:
    async with serve_states() as server:
        yield server


async def test_a_release_is_planned_applied_and_read(tmp_path: Path, states: StateServer) -> None:
    lines: list[tuple[str, str]] = []
    runner = make_runner(tmp_path, lines=lines)
    run = make_run({"main.tf": MAIN, "backend.tf": states.backend("dev")}, variables=(("tag", "1.2"),))
    made = planned(await runner.plan(run))
    assert made.plan.result == "Plan: 1 to add, 0 to change, 0 to destroy."
    assert made.plan.version == await runner.version()
    assert made.plan.backend == "http"
    assert not made.plan.state_in_tree
    assert count(made.plan).create == 1
    (url, tag) = (next(o for o in made.plan.outputs if o.name == name) for name in ("url", "tag"))
    assert url.after == Unknown("known after apply: url")
    assert tag.after == "1.2"
    assert "terraform_data.app will be created" in made.text
    assert made.plan.resource_lines == {"terraform_data.app": ("main.tf", 6)}
    assert "dev" not in states.states, "a plan writes no state"
    assert not states.locks
    applied = await runner.apply(run, made.bundle)
    assert isinstance(applied, Applied)
    assert applied.result == "Apply complete! Resources: 1 added, 0 changed, 0 destroyed."
    assert applied.state_files == {}
    outputs = await runner.output(run)
    assert isinstance(outputs, Outputs)
    assert outputs.values["tag"].value == "1.2"
    assert str(outputs.values["url"].value).endswith(".example.com")
    assert ("demo/dev", applied.result) in lines
    again = planned(await runner.plan(run))
    assert again.plan.is_empty
    assert again.plan.result == "No changes. Your infrastructure matches the configuration."
    assert again.plan.unchanged_outputs["tag"] == "1.2"


async def test_an_update_in_place_keeps_the_url_known(tmp_path: Path, states: StateServer) -> None:
    runner = make_runner(tmp_path)
    run = make_run({"main.tf": MAIN, "backend.tf": states.backend("dev")})
    await runner.apply(run, planned(await runner.plan(run)).bundle)
    made = planned(await runner.plan(replace(run, variables=(("tag", "2"),))))
    (change,) = made.plan.changes
    assert change.action is Action.UPDATE
    assert [(a.path, a.before, a.after) for a in change.attributes] == [
        ("input", "1", "2"),
        ("output", "1", Unknown("known after apply")),
    ]
    assert isinstance(made.plan.unchanged_outputs["url"], str)
    assert [o.name for o in made.plan.outputs] == ["tag"]


async def test_only_outputs_change(tmp_path: Path, states: StateServer) -> None:
    runner = make_runner(tmp_path)
    run = make_run({"main.tf": 'output "a" { value = "x" }', "backend.tf": states.backend("dev")})
    made = planned(await runner.plan(run))
    assert not made.plan.changes
    assert not made.plan.is_empty
    assert made.plan.result.startswith("You can apply this plan to save these new output values")
    applied = await runner.apply(run, made.bundle)
    assert isinstance(applied, Applied)
    assert applied.result == "Apply complete! Resources: 0 added, 0 changed, 0 destroyed."


async def test_the_digest_is_the_same_for_the_same_plan_and_another_for_another(
    tmp_path: Path, states: StateServer
) -> None:
    runner = make_runner(tmp_path)
    run = make_run({"main.tf": MAIN, "backend.tf": states.backend("dev")})
    first = planned(await runner.plan(run)).plan
    assert planned(await runner.plan(run)).plan.digest == first.digest
    other = planned(await runner.plan(replace(run, variables=(("tag", "2"),)))).plan
    assert other.digest != first.digest
    elsewhere = replace(run, files={**run.files, "infra/backend.tf": File(states.backend("prod").encode())})
    assert planned(await runner.plan(elsewhere)).plan.digest != first.digest
    workspace = replace(run, environment={"TF_VAR_tag": "1", "TF_VAR_unrelated": "x"})
    assert planned(await runner.plan(workspace)).plan.digest == first.digest


async def test_a_configuration_error_has_its_place(tmp_path: Path) -> None:
    runner = make_runner(tmp_path)
    failed = await runner.plan(make_run({"main.tf": MAIN + '\noutput "x" { value = nowhere.at_all }\n'}))
    assert isinstance(failed, Failed)
    assert failed.summary.startswith("Reference to undeclared resource (main.tf:")
    assert not failed.partial
    assert "Reference to undeclared resource" in failed.text


async def test_a_syntax_error_fails_init_and_nothing_goes_on_after_it(tmp_path: Path) -> None:
    lines: list[tuple[str, str]] = []
    failed = await make_runner(tmp_path, lines=lines).plan(make_run({"main.tf": "resource {"}))
    assert isinstance(failed, Failed)
    assert any(d.path == "main.tf" and d.line == 1 for d in failed.diagnostics)
    assert len([line for _, line in lines if line.startswith("Terraform 1.")]) == 1


async def test_a_failing_apply_is_partial_and_its_state_is_saved(tmp_path: Path, states: StateServer) -> None:
    bad = """
resource "terraform_data" "first" {}
resource "terraform_data" "bad" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" {
    command = "echo trying; exit 3"
  }
}
"""
    runner = make_runner(tmp_path)
    run = make_run({"main.tf": bad, "backend.tf": states.backend("dev")})
    made = planned(await runner.plan(run))
    failed = await runner.apply(run, made.bundle)
    assert isinstance(failed, Failed)
    assert failed.partial
    assert failed.summary.startswith("local-exec provisioner error (main.tf:5): Error running command")
    assert "trying" in failed.text
    assert b'"first"' in states.states["dev"]
    rest = planned(await runner.plan(run))
    assert [(c.address, c.action, c.reason) for c in rest.plan.changes] == [
        ("terraform_data.bad", Action.REPLACE, "replace_because_tainted")
    ]
    stale = await runner.apply(run, made.bundle)
    assert stale == StalePlan("Saved plan is stale"), "an old plan is never applied to a newer state"


async def test_a_locked_state_names_its_holder(tmp_path: Path, states: StateServer) -> None:
    runner = make_runner(tmp_path)
    run = make_run({"main.tf": MAIN, "backend.tf": states.backend("dev")})
    made = planned(await runner.plan(run))
    states.locks["dev"] = {"ID": "1234-holder", "Who": "somebody@host"}
    locked = await runner.plan(run)
    assert isinstance(locked, StateLocked)
    assert locked.lock.id == "1234-holder"
    assert locked.lock.who == "", "the lock info that the http backend prints is our own"
    assert "already locked" in locked.lock.message
    applying = await runner.apply(run, made.bundle)
    assert isinstance(applying, StateLocked)
    assert states.locks["dev"]["ID"] == "1234-holder", "a lock is never taken from its holder"
    unlocked = planned(await runner.plan(replace(run, lock=False)))
    assert unlocked.plan.digest == made.plan.digest


async def test_a_lock_that_is_given_back_is_waited_for(tmp_path: Path, states: StateServer) -> None:
    runner = make_runner(tmp_path)
    run = make_run({"main.tf": MAIN, "backend.tf": states.backend("dev")}, lock_timeout=30.0)
    states.locks["dev"] = {"ID": "1234-holder"}
    waiting = asyncio.create_task(runner.plan(run))
    await until(lambda: states.asked.count("LOCK /dev") >= 1)
    del states.locks["dev"]
    planned(await waiting)


async def test_a_plan_made_before_the_state_moved_is_stale(tmp_path: Path, states: StateServer) -> None:
    runner = make_runner(tmp_path)
    run = make_run({"main.tf": MAIN, "backend.tf": states.backend("dev")})
    first, second = planned(await runner.plan(run)), planned(await runner.plan(run))
    assert isinstance(await runner.apply(run, first.bundle), Applied)
    before = states.states["dev"]
    assert isinstance(await runner.apply(run, second.bundle), StalePlan)
    assert states.states["dev"] == before


async def test_a_bundle_is_of_its_key_and_version_and_whole(tmp_path: Path, states: StateServer) -> None:
    runner = make_runner(tmp_path)
    run = make_run({"main.tf": MAIN, "backend.tf": states.backend("dev")})
    bundle = planned(await runner.plan(run)).bundle
    assert b"terraform_data" not in bundle
    with pytest.raises(TerminalError, match="cannot be opened"):
        await runner.apply(replace(run, key="demo/prod"), bundle)
    with pytest.raises(TerminalError, match="cannot be opened"):
        await runner.apply(run, bundle[:-1] + bytes([bundle[-1] ^ 1]))
    with pytest.raises(TerminalError, match="not sealed"):
        await runner.apply(run, b"PK")
    assert "dev" not in states.states


async def test_files_that_planning_made_are_there_at_the_apply(tmp_path: Path, states: StateServer) -> None:
    # A data source cannot make a file without a provider, so the tree itself shows it by the lock file of a builtin
    # provider's absence and by an absolute path, which must be the same in both runs.
    text = """
resource "terraform_data" "app" {
  input = abspath(path.module)
  provisioner "local-exec" {
    command = "test -d '${abspath(path.module)}' && test -f main.tf"
  }
}
"""
    runner = make_runner(tmp_path)
    run = make_run({"main.tf": text, "backend.tf": states.backend("dev")})
    applied = await runner.apply(run, planned(await runner.plan(run)).bundle)
    assert isinstance(applied, Applied), applied


async def test_the_directories_are_cleared_after_every_run(tmp_path: Path, states: StateServer) -> None:
    runner = make_runner(tmp_path)
    run = make_run(
        {"main.tf": MAIN, "backend.tf": states.backend("dev")}, secrets={"TF_VAR_tag": "a-secret-tag"}
    )
    made = planned(await runner.plan(run))
    await runner.apply(run, made.bundle)
    left = [p for p in (tmp_path / "data").rglob("*") if p.is_file()]
    assert sorted(p.name for p in left) == ["lock"]


async def test_a_run_ends_at_its_time_limit(tmp_path: Path, states: StateServer) -> None:
    text = """
resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "sleep 600"
  }
}
"""
    runner = make_runner(tmp_path)
    run = make_run({"main.tf": text, "backend.tf": states.backend("dev")})
    made = planned(await runner.plan(run))
    outcome = await runner.apply(replace(run, timeout=3.0), made.bundle)
    assert isinstance(outcome, Interrupted)
    assert outcome.partial
    assert outcome.reason == "the time limit was reached"
    assert not states.locks, "it was interrupted in good order"


async def test_a_run_is_interrupted_from_outside_and_saves_its_state(
    tmp_path: Path, states: StateServer
) -> None:
    text = """
resource "terraform_data" "first" {}
resource "terraform_data" "slow" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" {
    command = "sleep 600"
  }
}
"""
    lines: list[tuple[str, str]] = []
    runner = make_runner(tmp_path, lines=lines)
    run = make_run({"main.tf": text, "backend.tf": states.backend("dev")})
    made = planned(await runner.plan(run))
    applying = asyncio.create_task(runner.apply(run, made.bundle))
    await until(lambda: any("terraform_data.slow: Provisioning" in line for _, line in lines))
    assert not runner.interrupt("demo/other", "no")
    assert runner.interrupt("demo/dev", "/cancel by ada")
    outcome = await applying
    assert outcome == Interrupted("/cancel by ada", partial=True)
    assert b'"first"' in states.states["dev"]
    assert not states.locks
    assert runner.interrupt_all("nothing runs") == 0


async def test_a_cancelled_task_interrupts_in_good_order(tmp_path: Path, states: StateServer) -> None:
    text = 'resource "terraform_data" "slow" {\n  provisioner "local-exec" {\n    command = "sleep 600"\n  }\n}\n'
    lines: list[tuple[str, str]] = []
    runner = make_runner(tmp_path, lines=lines)
    run = make_run({"main.tf": text, "backend.tf": states.backend("dev")})
    made = planned(await runner.plan(run))
    applying = asyncio.create_task(runner.apply(run, made.bundle))
    await until(lambda: any("Provisioning" in line for _, line in lines))
    applying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await applying
    assert not states.locks
    assert "dev" in states.states


async def test_runs_of_one_key_follow_each_other(tmp_path: Path, states: StateServer) -> None:
    one, two = make_runner(tmp_path), make_runner(tmp_path)
    run = make_run({"main.tf": MAIN, "backend.tf": states.backend("dev")})
    outcomes = await asyncio.gather(one.plan(run), two.plan(run), one.plan(run))
    assert len({planned(outcome).plan.digest for outcome in outcomes}) == 1


async def test_variable_files_and_single_values(tmp_path: Path, states: StateServer) -> None:
    runner = make_runner(tmp_path)
    run = make_run(
        {"main.tf": MAIN, "backend.tf": states.backend("dev"), "env/dev.tfvars": 'tag = "from-file"\n'},
        variable_files=("infra/env/dev.tfvars",),
    )
    made = planned(await runner.plan(run)).plan
    assert next(o.after for o in made.outputs if o.name == "tag") == "from-file"
    both = planned(await runner.plan(replace(run, variables=(("tag", "single"),)))).plan
    assert next(o.after for o in both.outputs if o.name == "tag") == "single"
    with pytest.raises(TerminalError, match="not in the tree"):
        await runner.plan(replace(run, variable_files=("infra/env/none.tfvars",)))
    with pytest.raises(TerminalError, match="not a path inside"):
        await runner.plan(replace(run, variable_files=("../../etc/passwd",)))
    with pytest.raises(TerminalError, match="not the name"):
        await runner.plan(replace(run, variables=(("-out=x", "y"),)))
    with pytest.raises(TerminalError, match="not in the tree"):
        await runner.plan(replace(run, directory="elsewhere"))


async def test_an_ephemeral_variable_is_given_again_and_binds_nothing(
    tmp_path: Path, states: StateServer
) -> None:
    text = MAIN + '\nvariable "session" {\n  type      = string\n  ephemeral = true\n}\n'
    runner = make_runner(tmp_path)
    run = make_run({"main.tf": text, "backend.tf": states.backend("dev")}, variables=(("session", "one"),))
    made = planned(await runner.plan(run))
    other = planned(await runner.plan(replace(run, variables=(("session", "two"),))))
    assert made.plan.digest == other.plan.digest
    assert isinstance(await runner.apply(run, made.bundle), Applied)


async def test_a_workspace_passes_through(tmp_path: Path) -> None:
    runner = make_runner(tmp_path)
    run = make_run(
        {"main.tf": 'output "w" { value = terraform.workspace }'}, environment={"TF_WORKSPACE": "blue"}
    )
    made = planned(await runner.plan(run))
    assert made.plan.outputs[0].after == "blue"
    assert made.plan.state_in_tree
    applied = await runner.apply(run, made.bundle)
    assert isinstance(applied, Applied)
    assert list(applied.state_files) == ["infra/terraform.tfstate.d/blue/terraform.tfstate"]


async def test_a_state_in_the_tree_is_given_back(tmp_path: Path) -> None:
    runner = make_runner(tmp_path)
    backend = 'terraform {\n  backend "local" {\n    path = "state/dev.json"\n  }\n}\n'
    run = make_run({"main.tf": MAIN, "backend.tf": backend})
    made = planned(await runner.plan(run))
    assert (made.plan.backend, made.plan.state_in_tree) == ("local", True)
    applied = await runner.apply(run, made.bundle)
    assert isinstance(applied, Applied)
    assert list(applied.state_files) == ["infra/state/dev.json"]
    committed = replace(run, files={**run.files, **applied.state_files})
    assert planned(await runner.plan(committed)).plan.is_empty


async def test_a_state_that_the_backend_does_not_take_is_kept(tmp_path: Path, states: StateServer) -> None:
    runner = make_runner(tmp_path)
    run = make_run({"main.tf": MAIN, "backend.tf": states.backend("dev")})
    made = planned(await runner.plan(run))
    states.refuse_writes = True
    failed = await runner.apply(run, made.bundle)
    assert isinstance(failed, Failed)
    assert failed.partial
    assert failed.diagnostics[-1].summary == "The new state could not be saved to the backend"
    (kept,) = (tmp_path / "data/rescued").iterdir()
    assert b"terraform_data" not in kept.read_bytes()
    assert b'"terraform_data"' in runner.read_rescued("demo/dev", kept)
    with pytest.raises(TerminalError):
        runner.read_rescued("demo/prod", kept)
    states.refuse_writes = False
    with pytest.raises(TerminalError, match="kept in"):
        await runner.plan(run)
    kept.unlink()
    planned(await runner.plan(run))


async def test_secrets_reach_the_process_but_no_text(tmp_path: Path, states: StateServer) -> None:
    text = """
variable "password" { type = string }
variable "other" {
  type      = string
  sensitive = true
  default   = "marked-by-terraform"
}
resource "terraform_data" "app" {
  input = "user:${var.password}@host"
  provisioner "local-exec" {
    command = "echo $TOKEN; echo $TOKEN | base64"
  }
}
output "plain" { value = var.password }
output "encoded" { value = base64encode("x${var.password}") }
output "leak" { value = nonsensitive(var.other) }
output "marked" {
  value     = var.other
  sensitive = true
}
"""
    lines: list[tuple[str, str]] = []
    runner = make_runner(tmp_path, lines=lines)
    run = make_run(
        {"main.tf": text, "backend.tf": states.backend("dev")},
        secrets={"TF_VAR_password": "hunter2-hunter2", "TOKEN": "ghs_abcdefgh"},
    )
    made = planned(await runner.plan(run))
    after = {o.name: o.after for o in made.plan.outputs}
    assert after["plain"] == Sensitive("TF_VAR_password", "hunter2-hunter2")
    assert isinstance(after["encoded"], Sensitive)
    assert after["marked"] == Sensitive("marked", "marked-by-terraform")
    assert "hunter2" not in made.text
    assert "aHVudGVyMi" not in made.text
    assert "marked-by-terraform" not in made.text
    resources = repr(made.plan.resources)
    assert "hunter2" not in resources
    applied = await runner.apply(run, made.bundle)
    assert isinstance(applied, Applied)
    log = applied.text + "\n".join(line for _, line in lines)
    assert "hunter2" not in log
    assert "ghs_" not in log
    assert "Z2hzX2FiY2RlZm" not in log
    assert "<sensitive: TOKEN>" in log
    outputs = await runner.output(run)
    assert isinstance(outputs, Outputs)
    assert {n: o.sensitive for n, o in outputs.values.items()} == {
        "plain": True,
        "encoded": True,
        "leak": False,
        "marked": True,
    }


async def test_a_mask_that_is_not_valid_leaves_only_counts(tmp_path: Path, states: StateServer) -> None:
    lines: list[tuple[str, str]] = []
    runner = make_runner(tmp_path, lines=lines)
    run = make_run({"main.tf": MAIN, "backend.tf": states.backend("dev")}, masks=("(",))
    made = planned(await runner.plan(run))
    assert "withheld" in made.text
    assert "terraform_data" not in made.text
    assert count(made.plan).create == 1
    assert all(not change.attributes for change in made.plan.resources)
    assert not lines
    failed = await runner.plan(make_run({"main.tf": "nonsense secretword"}, masks=("(",)))
    assert isinstance(failed, Failed)
    assert "secretword" not in repr(failed)


async def test_masks_are_patterns_or_attribute_paths(tmp_path: Path, states: StateServer) -> None:
    runner = make_runner(tmp_path)
    run = make_run(
        {"main.tf": MAIN, "backend.tf": states.backend("dev")},
        variables=(("tag", "10.1.2.3-internal"),),
        masks=(r"10\.\d+\.\d+\.\d+",),
    )
    made = planned(await runner.plan(run))
    assert "10.1.2.3" not in made.text
    assert all(isinstance(o.after, Sensitive | Unknown) for o in made.plan.outputs)
    named = planned(await runner.plan(replace(run, masks=("terraform_data.*.input",))))
    (change,) = named.plan.changes
    values = {a.path: a.after for a in change.attributes}
    assert values["input"] == Sensitive("terraform_data.app.input", None)
    assert "10.1.2.3" not in named.text


@pytest.mark.parametrize("block", ['backend "remote" {', "cloud {"])
async def test_a_backend_that_runs_elsewhere_is_refused(tmp_path: Path, block: str) -> None:
    text = f'terraform {{\n  {block}\n    organization = "x"\n  }}\n}}\n'
    with pytest.raises(TerminalError, match="another machine"):
        await make_runner(tmp_path).plan(make_run({"main.tf": MAIN, "backend.tf": text}))


async def test_a_lock_file_binds_the_plan(tmp_path: Path, states: StateServer) -> None:
    runner = make_runner(tmp_path)
    files = {"main.tf": MAIN, "backend.tf": states.backend("dev")}
    bound = planned(await runner.plan(make_run({**files, LOCK_FILE: "# made by terraform init\n"}))).plan
    free = planned(await runner.plan(make_run(files))).plan
    assert bound.digest != free.digest
    assert find_differences(bound, free) == ("lock file",)


async def test_a_lock_file_is_not_rewritten(tmp_path: Path, states: StateServer) -> None:
    lock = 'provider "registry.terraform.io/hashicorp/null" {\n  version = "3.2.4"\n}\n'
    failed = await make_runner(tmp_path).plan(
        make_run({"main.tf": MAIN, "backend.tf": states.backend("dev"), LOCK_FILE: lock})
    )
    assert isinstance(failed, Failed)
    assert failed.summary.startswith("Provider dependency changes detected")


async def test_secrets_in_keys_and_addresses_are_masked(tmp_path: Path, states: StateServer) -> None:
    text = """
variable "names" { type = set(string) }
resource "terraform_data" "each" {
  for_each = var.names
  input    = { (each.key) = 1 }
}
"""
    runner = make_runner(tmp_path)
    run = make_run(
        {"main.tf": text, "backend.tf": states.backend("dev")},
        secrets={"TF_VAR_names": '["hunter2-hunter2"]', "NAME": "hunter2-hunter2"},
    )
    made = planned(await runner.plan(run))
    assert "hunter2" not in made.text
    assert "hunter2" not in repr(made.plan)
    assert made.plan.changes[0].address.startswith("terraform_data.each")
    assert made.plan.digest == planned(await runner.plan(run)).plan.digest


@pytest.mark.parametrize("directory", [".", "", "./"])
async def test_the_root_of_the_checkout(tmp_path: Path, states: StateServer, directory: str) -> None:
    text = MAIN + states.backend("dev")
    run = TerraformRun("demo/dev", {"main.tf": File(text.encode())}, directory)
    made = planned(await make_runner(tmp_path).plan(run))
    assert made.plan.resource_lines == {"terraform_data.app": ("main.tf", 6)}
    assert isinstance(await make_runner(tmp_path).apply(run, made.bundle), Applied)
