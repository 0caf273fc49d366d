"""Follow-up pull requests on a real git server, and a GitHub that keeps pull requests and merges them with git."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest

from bot.domain.files import CommitId
from bot.domain.github import (
    Conclusion,
    PullNumber,
)
from bot.domain.model import Step
from bot.domain.promotion import StepStatus, Target
from bot.domain.review import Pin
from bot.domain.review_policy import ReviewPolicy
from bot.domain.values import Value
from bot.ports import GitHub, TransientError
from bot.steps.contract import Config, StepResult
from bot.steps.follow_up import FollowUps
from bot.steps.git_clone import GitClone
from bot.steps.git_commit import GitCommit
from bot.steps.git_push import GitPush
from bot.steps.yaml_update import YamlUpdate
from tests.adapters.git_server import commit_files, git
from tests.steps.bench import Bench
from tests.steps.hub import Hub

VALUES = "env/dev/values.yaml"
UPDATE: Config = {"path": f"src/{VALUES}", "updates": [{"key": "image.tag", "value": "1.2.3"}]}
BRANCH = "lockstep/acme/_release/dev.01abc.fffffff/4"


@dataclass
class Scene:
    """A walk that is run again and again until its push is done; every pass begins on the merge."""

    bench: Bench
    hub: Hub
    repository: Path
    merge: CommitId

    async def walk(self, *, base: str = "", branch: str = "main") -> StepResult:
        """One pass, on a branch that moved again if the push asks for it."""
        bench, hub = self.bench, self.hub
        commit = CommitId(base) if base else self.merge
        await bench.git.fetch(bench.url)
        bench.again(merge=self.merge, pins={"src": Pin("src", bench.url, "main", commit)})
        checkout: Value = {"path": "./src", "branch": "main"}
        await bench.fulfil(GitClone(bench.git), {"repoURL": bench.url, "checkout": [checkout]})
        await bench.fulfil(YamlUpdate(), UPDATE)
        await bench.fulfil(
            GitCommit(bench.git), {"path": "./src", "message": "Release 1.2.3\n\nWhy: because"}
        )
        follow_ups = FollowUps(bench.git, cast("GitHub", hub), hub, hub)
        result = await bench.fulfil(
            GitPush(bench.git, follow_ups=follow_ups), {"path": "src", "targetBranch": branch}
        )
        if result.rebase_on is not None:
            assert result.rebase_on != commit, "the walk would begin again for ever"
            return await self.walk(base=result.rebase_on, branch=branch)
        return result

    async def until_opened(self) -> StepResult:
        """Walk until its check is green, GitHub refusing the merge."""
        self.hub.refusal = "a review is required"
        await self.walk()
        return await self.walk()

    def tip(self, branch: str = "main") -> str:
        return git(self.repository, "rev-parse", f"refs/heads/{branch}")

    def read(self, revision: str = "main") -> str:
        return git(self.repository, "show", f"{revision}:{VALUES}")


@pytest.fixture
def scene(bench: Bench, repository: Path) -> Scene:
    bench.policy = ReviewPolicy(write_back="PullRequest")
    step = Step(uses="git-push", alias="git-push")
    bench.promotion = replace(bench.promotion, pull=PullNumber(7), steps=(step,) * 4)
    return Scene(
        bench, Hub(bench.url, repository), repository, CommitId(git(repository, "rev-parse", "main"))
    )


async def test_a_release_goes_by_a_pull_request_that_is_green_before_it_is_merged(scene: Scene) -> None:
    first = await scene.walk()
    assert first.status is StepStatus.RUNNING
    assert first.message == "the follow-up pull request #12 turns green before it is merged"
    assert scene.tip() == scene.merge
    pull = scene.hub.pulls[12]
    assert (pull.head_branch, pull.base_branch) == (BRANCH, "main")
    assert "#7" in pull.body
    assert "tag: 1.2.3" in pull.body
    assert scene.hub.own == {12: ""}
    assert scene.hub.shown().conclusion is Conclusion.SUCCESS
    second = await scene.walk()
    merged = scene.hub.pulls[12].merge_commit
    assert second.status is StepStatus.SUCCEEDED
    assert second.output["commit"] == merged == scene.tip()
    assert second.output["branch"] == "main"
    assert scene.hub.own == {12: merged}
    assert git(scene.repository, "for-each-ref", "refs/heads/lockstep") == ""
    message = git(scene.repository, "log", "-1", "--format=%B", "main")
    assert message.startswith("Release 1.2.3 (#12)\n\nWhy: because\nLockstep-Freight: ")


async def test_a_second_run_finds_the_branch_the_pull_request_and_the_merge(scene: Scene) -> None:
    scene.hub.down = True
    with pytest.raises(TransientError):
        await scene.walk()
    assert scene.tip(BRANCH) != scene.merge
    scene.hub.down = False
    await scene.walk()
    # Each time the process dies before anything is journaled.
    scene.bench.journal.clear()
    scene.hub.refusal = "a review is required"
    await scene.walk()
    assert list(scene.hub.pulls) == [12]
    scene.hub.merge(12)
    scene.bench.journal.clear()
    done = await scene.walk()
    assert done.output["commit"] == scene.tip()
    assert list(scene.hub.pulls) == [12]


@pytest.mark.parametrize(
    ("methods", "used"),
    [
        pytest.param({"merge", "squash", "rebase"}, ["merge"], id="a merge commit where it is allowed"),
        pytest.param({"squash", "rebase"}, ["squash"], id="else squashed"),
        pytest.param({"rebase"}, ["rebase"], id="else rebased"),
        pytest.param(set(), [], id="not at all where nothing is allowed"),
    ],
)
async def test_it_is_merged_in_a_way_that_the_rules_allow(
    scene: Scene, methods: set[str], used: list[str]
) -> None:
    scene.hub.methods = frozenset(methods)
    await scene.walk()
    done = await scene.walk()
    assert scene.hub.merges == used
    assert done.status is (StepStatus.SUCCEEDED if used else StepStatus.RUNNING)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        pytest.param(
            {VALUES: "image:\n  tag: 6.6.6\n"}, f"{VALUES} is not what was approved", id="in our file"
        ),
        pytest.param({"evil.txt": "x\n"}, "evil.txt was not to change", id="in another file"),
    ],
)
async def test_a_commit_of_a_person_turns_it_red(scene: Scene, files: dict[str, str], said: str) -> None:
    await scene.until_opened()
    commit_files(scene.repository, BRANCH, files)
    scene.hub.refusal = ""
    result = await scene.walk()
    assert result.status is StepStatus.RUNNING
    assert said in result.message
    assert scene.hub.shown().conclusion is Conclusion.FAILURE
    assert said in scene.hub.shown().summary
    assert scene.hub.merges == []
    # It is theirs to take off again, and then it is merged.
    ours = git(scene.repository, "rev-parse", f"{BRANCH}^")
    git(scene.repository, "update-ref", f"refs/heads/{BRANCH}", ours)
    await scene.walk()
    assert (await scene.walk()).status is StepStatus.SUCCEEDED


async def test_a_commit_that_was_amended_by_a_person_is_theirs(scene: Scene) -> None:
    await scene.until_opened()
    message = git(scene.repository, "log", "-1", "--format=%B", BRANCH)
    git(scene.repository, "update-ref", f"refs/heads/{BRANCH}", scene.merge)
    theirs = commit_files(scene.repository, BRANCH, {VALUES: "image:\n  tag: 6.6.6\n"}, message)
    await scene.walk()
    assert scene.tip(BRANCH) == theirs
    assert scene.hub.shown().conclusion is Conclusion.FAILURE


@pytest.mark.parametrize("committer", ["noreply@github.com", "noreply@127.0.0.1"])
async def test_what_the_server_signed_for_us_is_ours_and_made_anew(scene: Scene, committer: str) -> None:
    await scene.until_opened()
    message = git(scene.repository, "log", "-1", "--format=%B", BRANCH)
    git(scene.repository, "update-ref", f"refs/heads/{BRANCH}", scene.merge)
    commit_files(scene.repository, BRANCH, {VALUES: "image:\n  tag: 6.6.6\n"}, message)
    raw = git(scene.repository, "cat-file", "commit", BRANCH)
    raw = re.sub(r"(?m)^committer .*>", f"committer GitHub <{committer}>", raw)
    signed = git(scene.repository, "hash-object", "-t", "commit", "-w", "--stdin", stdin=raw + "\n")
    git(scene.repository, "update-ref", f"refs/heads/{BRANCH}", signed)
    await scene.walk()
    assert scene.tip(BRANCH) != signed
    assert "tag: 1.2.3" in scene.read(BRANCH)


async def test_a_base_that_moved_elsewhere_changes_nothing(scene: Scene) -> None:
    await scene.until_opened()
    head = scene.tip(BRANCH)
    commit_files(scene.repository, "main", {"README.md": "other words\n"})
    scene.hub.refusal = ""
    assert (await scene.walk()).status is StepStatus.SUCCEEDED
    assert scene.hub.pulls[12].head == head
    assert git(scene.repository, "show", "main:README.md") == "other words"


async def test_a_base_that_moved_under_its_file_has_it_made_anew(scene: Scene) -> None:
    await scene.until_opened()
    head = scene.tip(BRANCH)
    # Next to our line, so that git alone would see a conflict.
    moved = scene.read().replace('tag: "1.0.0" # the version', 'tag: "1.0.1" # their version')
    commit_files(scene.repository, "main", {VALUES: moved + "\n"})
    result = await scene.walk()
    assert "has its branch made anew" in result.message
    assert scene.tip(BRANCH) != head
    scene.hub.refusal = ""
    await scene.walk()
    assert (await scene.walk()).status is StepStatus.SUCCEEDED
    assert "tag: 1.2.3 # their version" in scene.read()
    assert list(scene.hub.pulls) == [12]


async def test_a_person_who_updates_its_branch_leaves_it_exact(scene: Scene) -> None:
    await scene.until_opened()
    theirs = commit_files(scene.repository, "main", {"README.md": "other words\n"})
    tree = git(scene.repository, "merge-tree", "--write-tree", BRANCH, theirs).splitlines()[0]
    parents = ("-p", scene.tip(BRANCH), "-p", theirs)
    update = git(scene.repository, "commit-tree", tree, *parents, "-F", "-", stdin="Update branch")
    git(scene.repository, "update-ref", f"refs/heads/{BRANCH}", update)
    scene.hub.refusal = ""
    await scene.walk()
    assert (await scene.walk()).status is StepStatus.SUCCEEDED
    assert scene.hub.pulls[12].head == update


async def test_closed_unmerged_fails_and_the_next_attempt_opens_another(scene: Scene) -> None:
    await scene.until_opened()
    scene.hub.close(12)
    result = await scene.walk()
    assert result.status is StepStatus.FAILED
    assert "#12 was closed by rafael without a merge, so nothing later was done" in result.message
    assert scene.tip() == scene.merge
    # Also if the first look at it was lost with its process.
    scene.bench.journal.clear()
    assert (await scene.walk()).status is StepStatus.FAILED
    scene.bench.attempt, scene.hub.refusal = 2, ""
    await scene.walk()
    assert scene.hub.pulls[13].head_branch == f"{BRANCH}-2"
    assert (await scene.walk()).output["commit"] == scene.tip()


async def test_the_next_attempt_goes_on_with_one_that_is_open(scene: Scene) -> None:
    await scene.until_opened()
    scene.bench.attempt, scene.hub.refusal = 2, ""
    await scene.walk()
    assert (await scene.walk()).status is StepStatus.SUCCEEDED
    assert list(scene.hub.pulls) == [12]


async def test_what_was_merged_although_it_was_spoiled_stops_until_it_is_accepted(scene: Scene) -> None:
    await scene.until_opened()
    commit_files(scene.repository, BRANCH, {VALUES: scene.read(BRANCH).replace("1.2.3", "6.6.6") + "\n"})
    merged = scene.hub.merge(12)
    result = await scene.walk()
    assert result.stop is not None
    assert "#12 brought something else than was approved" in result.stop.reason
    assert result.stop.digest == merged[:16]
    assert any("6.6.6" in line for line in result.stop.details)
    scene.bench.promotion = replace(scene.bench.promotion, accepted=(result.stop.digest,))
    assert (await scene.walk()).output["commit"] == merged


async def test_the_same_line_at_another_place_of_a_file_that_changed_is_something_else(scene: Scene) -> None:
    await scene.until_opened()
    # Between our last look and the merge the target got the file in another form, and the branch was bent to it.
    other = 'other:\n  tag: "1.0.0" # the version\n' + scene.read() + "\n"
    commit_files(scene.repository, "main", {VALUES: other})
    theirs = git(scene.repository, "rev-parse", "main")
    git(scene.repository, "update-ref", f"refs/heads/{BRANCH}", theirs)
    bent = other.replace('"1.0.0"', "1.2.3", 1)
    commit_files(scene.repository, BRANCH, {VALUES: bent})
    scene.hub.merge(12)
    result = await scene.walk()
    assert result.stop is not None
    assert "brought something else than was approved" in result.stop.reason


async def test_one_that_was_merged_elsewhere_fails_and_is_opened_again(scene: Scene) -> None:
    await scene.until_opened()
    git(scene.repository, "branch", "prod", "main")
    scene.hub.pulls[12] = replace(scene.hub.pulls[12], base_branch="prod")
    scene.hub.merge(12)
    result = await scene.walk()
    assert result.status is StepStatus.FAILED
    assert "was merged into prod instead of main" in result.message
    assert scene.tip() == scene.merge
    scene.bench.attempt = 2
    await scene.walk()
    assert list(scene.hub.pulls) == [12, 13]


async def test_one_that_was_retargeted_is_red(scene: Scene) -> None:
    await scene.until_opened()
    scene.hub.pulls[12] = replace(scene.hub.pulls[12], base_branch="prod")
    scene.hub.refusal = ""
    result = await scene.walk()
    assert "goes to prod instead of main" in result.message
    assert scene.hub.merges == []


async def test_a_push_that_the_server_refuses_is_followed_by_a_pull_request(scene: Scene) -> None:
    scene.bench.policy = ReviewPolicy()
    hook = scene.repository / "hooks" / "update"
    hook.write_text("#!/bin/sh\ncase $1 in refs/heads/main) echo 'GH013: rules' >&2; exit 1;; esac\n")
    hook.chmod(0o755)
    first = await scene.walk()
    assert "the follow-up pull request #12" in first.message
    # From then on it is not pushed any more, even if it could be.
    hook.unlink()
    assert (await scene.walk()).status is StepStatus.SUCCEEDED
    assert scene.hub.merges == ["merge"]


async def test_a_server_that_refuses_every_branch_is_told_of(scene: Scene) -> None:
    hook = scene.repository / "hooks" / "update"
    hook.write_text("#!/bin/sh\necho 'GH013: no branches' >&2\nexit 1\n")
    hook.chmod(0o755)
    result = await scene.walk()
    assert result.status is StepStatus.FAILED
    assert "refuses the push to lockstep/acme/_release" in result.message
    assert "GH013: no branches" in result.message


async def test_a_branch_of_that_name_with_work_of_others_is_left_alone(scene: Scene) -> None:
    theirs = commit_files(scene.repository, BRANCH, {"theirs.txt": "x\n"})
    result = await scene.walk()
    assert result.status is StepStatus.FAILED
    assert "holds commits of somebody else" in result.message
    assert scene.tip(BRANCH) == theirs


async def test_a_checkout_of_another_branch_goes_by_a_pull_request_too(scene: Scene) -> None:
    git(scene.repository, "branch", "env/dev", "main")
    commit_files(scene.repository, "env/dev", {"there.txt": "only there\n"})
    target = Target(scene.bench.url, "env/dev")
    scene.bench.promotion = replace(scene.bench.promotion, target=target)
    first = await scene.walk(branch="env/dev")
    assert "#12 turns green" in first.message
    assert scene.hub.pulls[12].base_branch == "env/dev"
    commit_files(scene.repository, "env/dev", {"later.txt": "meanwhile\n"})
    done = await scene.walk(branch="env/dev")
    assert done.output["commit"] == scene.tip("env/dev")
    assert "tag: 1.2.3" in scene.read("env/dev")
    scene.bench.journal.clear()
    assert (await scene.walk(branch="env/dev")).output == done.output


async def test_what_was_pushed_before_the_policy_changed_is_not_asked_for_again(scene: Scene) -> None:
    scene.bench.policy = ReviewPolicy()
    await scene.walk()
    published = scene.tip()
    assert published != scene.merge
    scene.bench.journal.clear()
    scene.bench.policy = ReviewPolicy(write_back="PullRequest")
    done = await scene.walk()
    assert done.output["commit"] == published
    assert scene.hub.pulls == {}
