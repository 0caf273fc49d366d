"""git-clone, git-commit and git-push on a real server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.files import CommitId
from bot.domain.promotion import StepStatus
from bot.domain.review import CommitRecord, Pin, PinRecord, PublishRecord
from bot.domain.values import Sensitive, Text, Unknown, Value
from bot.ports import TerminalError
from bot.steps.contract import Config
from bot.steps.git_clone import GitClone
from bot.steps.git_commit import GitCommit
from bot.steps.git_push import GitPush
from bot.steps.yaml_update import YamlUpdate
from tests.adapters.git_server import commit_files, git
from tests.steps.bench import Bench


def clone(bench: Bench, **checkout: Value) -> dict[str, Value]:
    one: Value = {"path": "./src", "branch": "main", **checkout}
    return {"repoURL": bench.url, "checkout": [one]}


UPDATE: Config = {"path": "src/env/dev/values.yaml", "updates": [{"key": "image.tag", "value": "1.2.3"}]}
COMMIT: Config = {"path": "./src", "message": "Release 1.2.3"}
PUSH: Config = {"path": "src", "targetBranch": "main"}


async def release(bench: Bench, *, only_preview: bool = False) -> None:
    run = bench.preview if only_preview else bench.fulfil
    await run(GitClone(bench.git), clone(bench))
    await run(YamlUpdate(), UPDATE)


def tip(repository: Path, branch: str = "main") -> str:
    return git(repository, "rev-parse", f"refs/heads/{branch}")


async def test_a_preview_pins_checkouts_and_pushes_nothing(bench: Bench, repository: Path) -> None:
    before = tip(repository)
    result = await bench.preview(GitClone(bench.git), clone(bench))
    assert result.output == {"commits": {"./src": before}}
    assert result.record == PinRecord((Pin("src", bench.url, "main", CommitId(before)),))
    await bench.preview(YamlUpdate(), UPDATE)
    committed = await bench.preview(GitCommit(bench.git), COMMIT)
    assert committed.output == {"commit": Unknown("known after merge: commit")}
    assert isinstance(committed.record, CommitRecord)
    assert [change.path for change in committed.record.changes] == ["env/dev/values.yaml"]
    pushed = await bench.preview(GitPush(bench.git), PUSH)
    assert pushed.record == PublishRecord("src", bench.url, "main", commits=1)
    assert pushed.output["branch"] == "main"
    assert tip(repository) == before


async def test_a_release_is_committed_and_pushed_with_its_trailers(bench: Bench, repository: Path) -> None:
    before = tip(repository)
    await release(bench)
    committed = await bench.fulfil(GitCommit(bench.git), COMMIT)
    pushed = await bench.fulfil(GitPush(bench.git), PUSH)
    assert pushed.output["commit"] == committed.output["commit"] == tip(repository)
    assert pushed.output["commitURL"] == f"{bench.url.removesuffix('.git')}/commit/{tip(repository)}"
    assert git(repository, "rev-parse", "main^") == before
    message = git(repository, "log", "-1", "--format=%B", "main")
    assert message.startswith("Release 1.2.3\n\nLockstep-Freight: " + "f" * 40)
    assert (
        "Lockstep-Stage: acme/dev\nLockstep-Promotion: dev.01abc.fffffff\nLockstep-Step: git-commit"
        in message
    )
    diff = git(repository, "diff", "main^", "main")
    assert "+  tag: 1.2.3 # the version" in diff
    assert diff.count("\n+") == 2


async def test_a_second_run_makes_the_same_commit_and_finds_it_there(bench: Bench, repository: Path) -> None:
    start = Pin("src", bench.url, "main", CommitId(tip(repository)))
    await release(bench)
    first = await bench.fulfil(GitCommit(bench.git), COMMIT)
    await bench.fulfil(GitPush(bench.git), PUSH)
    del bench.journal["git-push"]
    bench.again(pins={"src": start})
    bench.wait(100)
    await release(bench)
    second = await bench.fulfil(GitCommit(bench.git), COMMIT)
    pushed = await bench.fulfil(GitPush(bench.git), PUSH)
    assert second.output == first.output
    assert pushed.output["commit"] == tip(repository) == first.output["commit"]
    assert git(repository, "rev-list", "--count", "main") == "2"


async def test_nothing_staged_is_skipped_with_the_head(bench: Bench, repository: Path) -> None:
    await bench.fulfil(GitClone(bench.git), clone(bench))
    result = await bench.fulfil(GitCommit(bench.git), COMMIT)
    assert (result.status, result.output) == (StepStatus.SKIPPED, {"commit": tip(repository)})
    pushed = await bench.fulfil(GitPush(bench.git), PUSH)
    assert (pushed.status, pushed.output["commit"]) == (StepStatus.SUCCEEDED, tip(repository))


async def test_what_the_pull_request_carried_is_committed_by_the_merge(
    bench: Bench, repository: Path
) -> None:
    await release(bench, only_preview=True)
    await bench.preview(GitCommit(bench.git), COMMIT)
    merged = CommitId(
        commit_files(
            repository, "main", {"env/dev/values.yaml": "image:\n  tag: 1.2.3\nenv:\n  LAMBDA_URL: x\n"}
        )
    )
    await bench.git.fetch(bench.url)
    bench.again(merge=merged, pins={"src": Pin("src", bench.url, "main", merged)})
    await release(bench)
    result = await bench.fulfil(GitCommit(bench.git), COMMIT)
    assert (result.status, result.output) == (StepStatus.SUCCEEDED, {"commit": merged})


async def test_a_branch_that_moved_begins_the_walk_again(bench: Bench, repository: Path) -> None:
    await release(bench)
    await bench.fulfil(GitCommit(bench.git), COMMIT)
    other = commit_files(repository, "main", {"other.txt": "somebody else\n"})
    result = await bench.fulfil(GitPush(bench.git), PUSH)
    assert result.rebase_on == other
    assert tip(repository) == other


async def test_our_commit_on_another_base_counts_as_pushed(bench: Bench, repository: Path) -> None:
    start = Pin("src", bench.url, "main", CommitId(tip(repository)))
    commit_files(repository, "main", {"other.txt": "somebody else\n"})
    await release(bench)
    await bench.fulfil(GitCommit(bench.git), COMMIT)
    await bench.fulfil(GitPush(bench.git), PUSH)
    published = tip(repository)
    commit_files(repository, "main", {"third.txt": "a third one\n"})
    bench.again(pins={"src": start})
    await release(bench)
    await bench.fulfil(GitCommit(bench.git), COMMIT)
    result = await bench.fulfil(GitPush(bench.git), PUSH)
    assert result.output["commit"] == published
    assert git(repository, "rev-list", "--count", "main") == "4"


async def test_a_commit_with_our_trailers_and_another_change_is_not_ours(
    bench: Bench, repository: Path
) -> None:
    await release(bench)
    await bench.fulfil(GitCommit(bench.git), COMMIT)
    checkout = bench.tree.checkout_at("src")
    message = (await bench.git.read_commit(bench.url, CommitId(checkout.head or ""))).message
    forged = commit_files(repository, "main", {"env/dev/values.yaml": "image:\n  tag: evil\n"}, message)
    result = await bench.fulfil(GitPush(bench.git), PUSH)
    assert result.rebase_on == forged
    assert "commit" not in result.output


async def test_a_protected_branch_is_refused_with_advice(bench: Bench, repository: Path) -> None:
    hook = repository / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho 'GH013: Repository rule violations found' >&2\nexit 1\n")
    hook.chmod(0o755)
    await release(bench)
    await bench.fulfil(GitCommit(bench.git), COMMIT)
    result = await bench.fulfil(GitPush(bench.git), PUSH)
    assert result.status is StepStatus.FAILED
    assert "GH013" in result.message
    assert "writeBack: PullRequest" in result.message


async def test_commits_for_another_branch_are_carried_over(bench: Bench, repository: Path) -> None:
    git(repository, "branch", "env/dev", "main")
    commit_files(repository, "env/dev", {"there.txt": "only there\n"})
    await release(bench)
    await bench.fulfil(GitCommit(bench.git), COMMIT)
    result = await bench.fulfil(GitPush(bench.git), {"path": "src", "targetBranch": "env/dev"})
    assert result.output["commit"] == tip(repository, "env/dev")
    listed = git(repository, "ls-tree", "-r", "--name-only", "env/dev")
    assert "there.txt" in listed
    assert "tag: 1.2.3" in git(repository, "show", "env/dev:env/dev/values.yaml")


async def test_another_branch_that_moved_meanwhile_takes_the_commits(bench: Bench, repository: Path) -> None:
    git(repository, "branch", "env/dev", "main")
    await bench.fulfil(GitClone(bench.git), clone(bench, branch="env/dev"))
    await bench.fulfil(YamlUpdate(), UPDATE)
    await bench.fulfil(GitCommit(bench.git), COMMIT)
    moved = commit_files(repository, "env/dev", {"there.txt": "meanwhile\n"})
    result = await bench.fulfil(GitPush(bench.git), {"path": "src"})
    assert result.output["commit"] == tip(repository, "env/dev")
    assert git(repository, "rev-parse", "env/dev^") == moved
    assert "tag: 1.2.3" in git(repository, "show", "env/dev:env/dev/values.yaml")


async def test_a_branch_is_moved_forward_without_commits_but_never_back(
    bench: Bench, repository: Path
) -> None:
    git(repository, "branch", "env/dev", "main")
    ahead = commit_files(repository, "main", {"new.txt": "new\n"})
    config: Config = {"path": "src", "targetBranch": "env/dev"}
    await bench.fulfil(GitClone(bench.git), clone(bench))
    await bench.fulfil(GitPush(bench.git), config)
    assert tip(repository, "env/dev") == ahead
    other = commit_files(repository, "env/dev", {"only.txt": "there\n"})
    result = await bench.fulfil(GitPush(bench.git), config)
    assert (result.status, tip(repository, "env/dev")) == (StepStatus.FAILED, other)


async def test_a_deleted_branch_is_not_made_again(bench: Bench, repository: Path) -> None:
    git(repository, "branch", "env/dev", "main")
    await bench.fulfil(GitClone(bench.git), clone(bench, branch="env/dev"))
    await bench.fulfil(YamlUpdate(), UPDATE)
    await bench.fulfil(GitCommit(bench.git), COMMIT)
    git(repository, "branch", "-D", "env/dev")
    result = await bench.fulfil(GitPush(bench.git), {"path": "src"})
    assert result.status is StepStatus.FAILED
    assert "was deleted meanwhile" in result.message


async def test_commits_that_clash_with_another_branch_fail_in_the_preview(
    bench: Bench, repository: Path
) -> None:
    git(repository, "branch", "env/dev", "main")
    commit_files(repository, "env/dev", {"env/dev/values.yaml": "image:\n  tag: 9\n"})
    await release(bench, only_preview=True)
    await bench.preview(GitCommit(bench.git), COMMIT)
    result = await bench.preview(GitPush(bench.git), {"path": "src", "targetBranch": "env/dev"})
    assert result.status is StepStatus.FAILED
    assert "env/dev/values.yaml" in result.message


async def test_a_generated_branch_is_forced(bench: Bench, repository: Path) -> None:
    git(repository, "branch", "kargo/promotion/dev.01abc.fffffff", "main")
    commit_files(repository, "kargo/promotion/dev.01abc.fffffff", {"stale.txt": "from before\n"})
    await release(bench)
    await bench.fulfil(GitCommit(bench.git), COMMIT)
    result = await bench.fulfil(GitPush(bench.git), {"path": "src", "generateTargetBranch": True})
    assert result.output["branch"] == "kargo/promotion/dev.01abc.fffffff"
    assert result.output["commit"] == tip(repository, "kargo/promotion/dev.01abc.fffffff")


async def test_a_missing_branch_is_created_by_the_push(bench: Bench, repository: Path) -> None:
    config = clone(bench, branch="env/new", create=True)
    cloned = await bench.fulfil(GitClone(bench.git), config)
    assert cloned.output == {"commits": {"./src": ""}}
    await bench.tree.write("src/a.txt", b"first\n")
    await bench.fulfil(GitCommit(bench.git), COMMIT)
    await bench.fulfil(GitPush(bench.git), {"path": "src"})
    assert git(repository, "ls-tree", "-r", "--name-only", "env/new") == "a.txt"
    assert git(repository, "rev-list", "--count", "env/new") == "1"


async def test_tags_are_pushed_once_and_never_moved(bench: Bench, repository: Path) -> None:
    await release(bench)
    await bench.fulfil(GitCommit(bench.git), COMMIT)
    first = await bench.fulfil(GitPush(bench.git), {"path": "src", "tag": "v1"})
    assert git(repository, "rev-parse", "v1") == first.output["commit"]
    again = await bench.fulfil(GitPush(bench.git), {"path": "src", "tag": "v1"})
    assert again.status is StepStatus.SUCCEEDED
    git(repository, "update-ref", "refs/tags/v1", tip(repository))
    moved = await bench.fulfil(GitPush(bench.git), {"path": "src", "tag": "v1"})
    assert moved.status is StepStatus.FAILED


@pytest.mark.parametrize(
    ("checkout", "said"),
    [
        ({"branch": "nope"}, "there is no branch 'nope'"),
        ({"branch": None, "tag": "v9"}, "there is no tag 'v9'"),
        ({"branch": None, "commit": "f" * 40}, "there is no commit"),
    ],
)
async def test_what_does_not_exist_fails_by_name(bench: Bench, checkout: dict[str, Value], said: str) -> None:
    result = await bench.preview(GitClone(bench.git), clone(bench, **checkout))
    assert result.status is StepStatus.FAILED
    assert said in result.message


async def test_sparse_checkouts_hide_the_rest(bench: Bench) -> None:
    config = clone(bench, sparse=["env/dev/terraform"])
    await bench.preview(GitClone(bench.git), config)
    assert bench.tree.list("src") == [
        "src/README.md",
        "src/env/dev/terraform/main.auto.tfvars",
        "src/env/dev/terraform/main.tf",
        "src/env/dev/values.yaml",
    ]


async def test_an_unknown_address_is_refused(bench: Bench) -> None:
    config = clone(bench, branch=Text(("env/", Unknown("known after apply: name"))))
    with pytest.raises(TerminalError, match="where this writes is known only after apply: name"):
        await bench.preview(GitClone(bench.git), config)


async def test_secrets_are_masked_and_unknown_values_refused_in_a_message(
    bench: Bench, repository: Path
) -> None:
    await release(bench)
    secret: Config = {"path": "src", "message": Text(("Token ", Sensitive("token", "hunter2")))}
    await bench.fulfil(GitCommit(bench.git), secret)
    await bench.fulfil(GitPush(bench.git), PUSH)
    assert git(repository, "log", "-1", "--format=%s", "main") == "Token <sensitive: token>"
    await bench.tree.write("src/README.md", b"more\n")
    with pytest.raises(TerminalError, match="not known"):
        await bench.fulfil(GitCommit(bench.git), {"path": "src", "message": Unknown("known after apply: x")})


async def test_a_stand_in_is_never_committed(bench: Bench) -> None:
    await bench.fulfil(GitClone(bench.git), clone(bench))
    await bench.tree.write("src/a.txt", b"url: lockstep-unknown-1-abcd1234\n")
    with pytest.raises(TerminalError, match="stand-in"):
        await bench.fulfil(GitCommit(bench.git), COMMIT)


async def test_an_author_of_git_clone_makes_the_commits(bench: Bench, repository: Path) -> None:
    config: Config = {**clone(bench), "author": {"name": "Releases", "email": "releases@example.com"}}
    await bench.fulfil(GitClone(bench.git), config)
    await bench.fulfil(YamlUpdate(), UPDATE)
    await bench.fulfil(GitCommit(bench.git), COMMIT)
    await bench.fulfil(GitPush(bench.git), PUSH)
    assert git(repository, "log", "-1", "--format=%an %ae", "main") == "Releases releases@example.com"


async def test_a_commit_before_an_approved_empty_one_is_not_the_merge(bench: Bench, repository: Path) -> None:
    await bench.preview(GitClone(bench.git), clone(bench))
    await bench.preview(GitCommit(bench.git), COMMIT)
    bench.again(merge=CommitId(tip(repository)))
    bench.promotion = replace(bench.promotion)
    await bench.fulfil(GitClone(bench.git), clone(bench))
    result = await bench.fulfil(GitCommit(bench.git), COMMIT)
    assert result.status is StepStatus.SKIPPED
