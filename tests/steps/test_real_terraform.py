"""The Terraform steps with the real binary and a state server: plan, apply, outputs, and a restart in between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.adapters.terraform.runner import TerraformRunner
from bot.adapters.terraform.tool import Tool
from bot.domain.promotion import StepStatus
from bot.domain.review import ApplyKind, ApplyRecord, CommitRecord
from bot.domain.review_policy import ReviewPolicy
from bot.domain.values import Unknown, Value
from bot.steps.contract import Config
from bot.steps.git_clone import GitClone
from bot.steps.git_commit import GitCommit
from bot.steps.hcl_update import HclUpdate
from bot.steps.tf_apply import TfApply
from bot.steps.tf_output import TfOutput
from tests.adapters.git_server import commit_files
from tests.adapters.state_server import StateServer, serve_states
from tests.steps.bench import Bench

DIRECTORY = "src/env/dev/terraform"
WHERE: Config = {"dir": DIRECTORY}
MODULE = 'variable "image_uri" {}\nresource "terraform_data" "fn" {\n  input = var.image_uri\n}\n' + (
    'output "id" {\n  value = terraform_data.fn.id\n}\n'
)
MAIN = """
variable "image_uri" {
  type = string
}

module "fn" {
  source    = "../../../modules/fn"
  image_uri = var.image_uri
}

output "url" {
  value = "https://${module.fn.id}.example"
}

output "image" {
  value = var.image_uri
}

output "notes" {
  value = trimspace(file("${path.module}/../../../notes.txt"))
}
"""


@pytest.fixture
async def states() -> AsyncIterator[StateServer]:
    async with serve_states() as server:
        yield server


@pytest.fixture
def real(bench: Bench, repository: Path, states: StateServer, tmp_path: Path) -> TerraformRunner:
    files = {
        "env/dev/terraform/main.tf": states.backend("dev") + MAIN,
        "env/dev/terraform/main.auto.tfvars": 'image_uri = "app:1.0.0"\n',
        "modules/fn/main.tf": MODULE,
        "notes.txt": "hello\n",
        "elsewhere/huge.txt": "not an input\n",
    }
    commit_files(repository, "main", files)
    return TerraformRunner(tmp_path / "runs", bench.vault, Tool())


async def walk(bench: Bench, terraform: TerraformRunner, image: str, *, preview: bool) -> dict[str, Value]:
    run = bench.preview if preview else bench.fulfil
    checkout: Value = {"path": "src", "branch": "main"}
    item: Value = {"key": "image_uri", "value": image}
    await run(GitClone(bench.git), {"repoURL": bench.url, "checkout": [checkout]})
    await run(HclUpdate(), {"path": f"{DIRECTORY}/main.auto.tfvars", "updates": [item]})
    applied = await run(TfApply(bench.git, terraform, bench.vault, bench.plans), WHERE)
    assert applied.status in (None, StepStatus.SUCCEEDED, StepStatus.SKIPPED), applied.message
    outputs = await run(TfOutput(bench.git, terraform, bench.vault, bench.plans), WHERE)
    return {name: value["value"] for name, value in outputs.output.items() if isinstance(value, dict)}


async def test_a_release_is_planned_applied_and_read(
    bench: Bench, real: TerraformRunner, states: StateServer
) -> None:
    planned = await walk(bench, real, "app:1.2.3", preview=True)
    assert planned == {"url": Unknown("known after apply: url"), "image": "app:1.2.3", "notes": "hello"}
    record = bench.reports[2].record
    assert isinstance(record, ApplyRecord)
    assert record.kind is ApplyKind.CHANGES
    assert record.input_paths == {
        f"{DIRECTORY}/main.tf",
        f"{DIRECTORY}/main.auto.tfvars",
        "src/modules/fn/main.tf",
        "src/notes.txt",
    }
    assert not any(line.startswith("POST") for line in states.asked)
    bench.again()
    applied = await walk(bench, real, "app:1.2.3", preview=False)
    assert str(applied["url"]).startswith("https://")
    assert applied["image"] == "app:1.2.3"
    result = bench.journal["tf-apply"].output["result"]
    assert "1 added" in str(result)
    # The next release changes no input, so nobody is asked.
    bench.again()
    bench.approved.clear()
    bench.journal.clear()
    asked = len(states.asked)
    assert await walk(bench, real, "app:1.2.3", preview=True) == applied
    assert len(states.asked) == asked
    # An image alone is an update in place: the URL stays known.
    bench.again()
    bench.approved.clear()
    third = await walk(bench, real, "app:2.0.0", preview=True)
    assert third == {**applied, "image": "app:2.0.0"}


async def test_a_plan_made_before_somebody_else_applied_is_made_again(
    bench: Bench, real: TerraformRunner, states: StateServer
) -> None:
    await walk(bench, real, "app:1.2.3", preview=True)
    bench.again()
    other = Bench(bench.git, bench.url)
    await walk(other, real, "app:1.2.3", preview=True)
    other.again()
    await walk(other, real, "app:1.2.3", preview=False)
    done = await walk(bench, real, "app:1.2.3", preview=False)
    assert str(done["url"]).startswith("https://")
    assert "No changes" in str(bench.journal["tf-apply"].output["result"])


async def test_a_state_in_git_is_committed_and_survives_a_restart(
    bench: Bench, real: TerraformRunner, repository: Path
) -> None:
    commit_files(repository, "main", {"env/dev/terraform/main.tf": MAIN})
    bench.policy = ReviewPolicy(state_in_git=True)
    planned = await walk(bench, real, "app:1.2.3", preview=True)
    assert planned["image"] == "app:1.2.3"
    record = bench.reports[2].record
    assert isinstance(record, ApplyRecord)
    assert record.state_files == {f"{DIRECTORY}/terraform.tfstate"} <= bench.reports[2].wrote
    bench.again()
    await walk(bench, real, "app:1.2.3", preview=False)
    state = await bench.tree.read(f"{DIRECTORY}/terraform.tfstate")
    bench.again()
    again = await walk(bench, real, "app:1.2.3", preview=False)
    assert await bench.tree.read(f"{DIRECTORY}/terraform.tfstate") == state
    assert str(again["url"]).startswith("https://")
    committed = await bench.fulfil(GitCommit(bench.git), {"path": "src", "message": "state"})
    assert isinstance(committed.record, CommitRecord)
    assert "env/dev/terraform/terraform.tfstate" in {change.path for change in committed.record.changes}
