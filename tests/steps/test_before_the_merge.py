"""git-push before the merge goes onto the promotion branch, and Terraform stands still for a rollback that keeps it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.files import CommitId
from bot.domain.keeping import KEPT, kept_paths
from bot.domain.promotion import StepStatus
from bot.domain.review import ApplyKind, ApplyRecord, KeptRecord
from bot.domain.review_policy import ReviewPolicy
from bot.domain.values import Value
from bot.steps.contract import Config, Onto, StepResult
from bot.steps.git_clone import GitClone
from bot.steps.git_commit import GitCommit
from bot.steps.git_push import GitPush
from bot.steps.hcl_update import HclUpdate
from bot.steps.tf_apply import TfApply
from bot.steps.tf_output import TfOutput
from bot.steps.tf_plan import TfPlan
from bot.steps.yaml_update import YamlUpdate
from tests.adapters.git_server import commit_files, git
from tests.steps.bench import Bench

BRANCH = "lockstep/acme/dev"
TFVARS = "src/env/dev/terraform/main.auto.tfvars"
UPDATE: Config = {"path": "src/env/dev/values.yaml", "updates": [{"key": "image.tag", "value": "1.2.3"}]}
TERRAFORM: Config = {"dir": "./src/env/dev/terraform"}


@pytest.fixture
def head(bench: Bench, repository: Path) -> CommitId:
    """The approved head of the promotion branch, which the walk stands on and pushes onto."""
    git(repository, "branch", BRANCH, "main")
    made = CommitId(
        commit_files(repository, BRANCH, {TFVARS.removeprefix("src/"): 'fn__image = "app:1.2.3"\n'})
    )
    bench.onto = Onto(BRANCH, (made,))
    return made


async def checked_out(bench: Bench, branch: str = "main", commit: CommitId | None = None) -> None:
    await bench.git.fetch(bench.url)
    where: Value = {"path": "./src", "branch": branch}
    await bench.fulfil(GitClone(bench.git), {"repoURL": bench.url, "checkout": [where]})
    if commit is not None:
        checkout = bench.tree.checkout_at("src")
        checkout.pin = replace(checkout.pin, commit=commit)
        checkout.head, checkout.files = commit, await bench.git.list_files(bench.url, commit)


async def pushed(bench: Bench, head: CommitId) -> StepResult:
    await checked_out(bench, commit=head)
    await bench.fulfil(YamlUpdate(), UPDATE)
    await bench.fulfil(GitCommit(bench.git), {"path": "./src", "message": "Release 1.2.3"})
    return await bench.fulfil(GitPush(bench.git), {"path": "src", "targetBranch": "main"})


def tip(repository: Path, branch: str = BRANCH) -> str:
    return git(repository, "rev-parse", f"refs/heads/{branch}")


async def test_what_is_pushed_to_the_target_goes_onto_the_approved_head(
    bench: Bench, repository: Path, head: CommitId
) -> None:
    main = tip(repository, "main")
    result = await pushed(bench, head)
    assert (result.output["commit"], result.output["branch"]) == (tip(repository), "main")
    assert (git(repository, "rev-parse", f"{BRANCH}^"), tip(repository, "main")) == (head, main)


async def test_a_second_run_finds_it_there(bench: Bench, repository: Path, head: CommitId) -> None:
    await pushed(bench, head)
    there = tip(repository)
    bench.again()
    result = await pushed(bench, head)
    assert result.output["commit"] == tip(repository) == there


async def test_commits_of_people_stop_it_and_stay(bench: Bench, repository: Path, head: CommitId) -> None:
    theirs = commit_files(repository, BRANCH, {"README.md": "read me first\n"})
    result = await pushed(bench, head)
    assert result.stop is not None
    assert "the head moved" in result.stop.reason
    assert theirs[:7] in result.stop.reason
    assert tip(repository) == theirs


async def test_a_copy_of_our_commit_on_top_of_theirs_is_not_ours(
    bench: Bench, repository: Path, head: CommitId
) -> None:
    await pushed(bench, head)
    message = git(repository, "log", "-1", "--format=%B", BRANCH)
    values = git(repository, "show", f"{BRANCH}:env/dev/values.yaml") + "\n"
    git(repository, "update-ref", f"refs/heads/{BRANCH}", head)
    commit_files(repository, BRANCH, {"env/dev/terraform/main.tf": "# theirs\n"})
    copied = commit_files(repository, BRANCH, {"env/dev/values.yaml": values}, message)
    bench.again()
    result = await pushed(bench, head)
    assert result.stop is not None
    assert tip(repository) == copied


async def test_a_deleted_branch_stops_it(bench: Bench, repository: Path, head: CommitId) -> None:
    await bench.git.fetch(bench.url)
    await bench.git.list_files(bench.url, head)
    git(repository, "update-ref", "-d", f"refs/heads/{BRANCH}")
    result = await pushed(bench, head)
    assert result.stop is not None
    assert "it is gone" in result.stop.reason


async def test_another_branchs_checkout_never_reaches_the_target_before_the_merge(
    bench: Bench, repository: Path, head: CommitId
) -> None:
    git(repository, "branch", "next", "main")
    await checked_out(bench, "next")
    await bench.fulfil(YamlUpdate(), UPDATE)
    await bench.fulfil(GitCommit(bench.git), {"path": "./src", "message": "Release 1.2.3"})
    main = tip(repository, "main")
    result = await bench.fulfil(GitPush(bench.git), {"path": "src", "targetBranch": "main"})
    assert result.status is StepStatus.FAILED
    assert "before the pull request is merged" in result.message
    assert (tip(repository), tip(repository, "main")) == (head, main)


# -- rollback: {infra: Keep} ---------------------------------------------------------------------------------------


@pytest.fixture
def keeping(bench: Bench) -> Bench:
    """A rollback whose policy keeps the infrastructure."""
    bench.policy = ReviewPolicy(rollback_infra="Keep")
    bench.promotion = replace(bench.promotion, rollback=True)
    return bench


async def edited(bench: Bench) -> None:
    where: Value = {"path": "./src", "branch": "main"}
    await bench.preview(GitClone(bench.git), {"repoURL": bench.url, "checkout": [where]})
    await bench.preview(HclUpdate(), {"path": TFVARS, "updates": [{"key": "fn__image", "value": "app:0.9"}]})


async def test_nothing_is_planned_or_applied_and_the_inputs_are_named(keeping: Bench) -> None:
    apply = TfApply(keeping.git, keeping.terraform, keeping.vault, keeping.plans)
    plan = TfPlan(keeping.git, keeping.terraform, keeping.vault, keeping.plans)
    await edited(keeping)
    planned = await keeping.preview(plan, TERRAFORM)
    applied = await keeping.preview(apply, TERRAFORM)
    assert (planned.status, applied.status) == (StepStatus.SKIPPED, StepStatus.SKIPPED)
    assert (planned.message, applied.output) == (KEPT, {"result": KEPT})
    assert isinstance(planned.record, KeptRecord)
    assert isinstance(applied.record, ApplyRecord)
    assert applied.record.kind is ApplyKind.KEPT
    assert kept_paths(keeping.reports) == {TFVARS, "src/env/dev/terraform/main.tf"}
    # After the merge the policy may be another; what was approved is what is left alone.
    keeping.again(policy=ReviewPolicy())
    await edited(keeping)
    assert (await keeping.fulfil(plan, TERRAFORM)).status is StepStatus.SKIPPED
    assert (await keeping.fulfil(apply, TERRAFORM)).status is StepStatus.SKIPPED
    assert keeping.terraform.ran == []


async def test_the_outputs_are_those_that_the_state_has(keeping: Bench) -> None:
    await edited(keeping)
    await keeping.preview(TfApply(keeping.git, keeping.terraform, keeping.vault, keeping.plans), TERRAFORM)
    output = TfOutput(keeping.git, keeping.terraform, keeping.vault, keeping.plans)
    result = await keeping.preview(output, TERRAFORM)
    assert result.status is StepStatus.SUCCEEDED
    assert [what for what, _ in keeping.terraform.ran] == ["output"]


async def test_what_an_edit_wrote_is_taken_back_as_if_it_had_not(bench: Bench) -> None:
    await edited(bench)
    bench.tree.begin()
    await bench.tree.write(TFVARS, b"other\n")
    await bench.tree.write("src/new.tf", b"new\n")
    await bench.tree.write("src/README.md", b"kept\n")
    before = await bench.tree.staged("src")
    assert bench.tree.undo([TFVARS, "src/new.tf", "src/main.tf"]) == (TFVARS, "src/new.tf")
    access = await bench.tree.end()
    assert [change.path for change in access.changes] == ["src/README.md"]
    assert access.wrote == {"src/README.md"}
    assert not bench.tree.exists("src/new.tf")
    assert len(before) == len(await bench.tree.staged("src")) + 1
