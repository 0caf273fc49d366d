"""A task's own pull-request steps: what they ask of the gate, and what they give once it is done."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from bot.domain.files import CommitId, File
from bot.domain.github import PullNumber, PullRequest, Repository, User
from bot.domain.model import Step
from bot.domain.promotion import StepStatus, Target
from bot.domain.review import MergeRecord, Pin, PinRecord, RequestRecord
from bot.domain.values import Text, Unknown, Value
from bot.ports import GitHub, TerminalError
from bot.steps.contract import Config, MergedBranch, StepResult
from bot.steps.git_clone import GitClone
from bot.steps.git_commit import GitCommit
from bot.steps.git_merge_pr import GitMergePr
from bot.steps.git_open_pr import GitOpenPr
from bot.steps.git_push import GitPush
from bot.steps.git_wait_for_pr import GitWaitForPr
from tests.adapters.git_server import commit_files, git
from tests.steps.bench import Bench

OPS = Repository("acme", "ops")
NUMBER = Unknown("known after step: git-open-pr.pr.id")
LATER = Unknown("known after merge: commit")
PULL = PullRequest(
    repository=OPS,
    number=PullNumber(7),
    title="t",
    body="",
    open=True,
    merged=False,
    head=CommitId("a" * 40),
    head_branch="feature",
    base_branch="main",
    author=User("lockstep[bot]", 3, bot=True),
    url="https://github.example/acme/ops/pull/7",
)
MERGED = replace(PULL, open=False, merged=True, merge_commit=CommitId("c" * 40))


@dataclass
class Pulls:
    """The pull requests of one repository; none can be opened or merged by a step."""

    url: str
    pulls: dict[int, PullRequest] = field(default_factory=dict)

    def repository_of(self, url: str) -> Repository | None:
        return OPS if url == self.url else None

    async def get_pull_request(self, repository: Repository, number: PullNumber) -> PullRequest:
        return self.pulls[number]


@pytest.fixture
def hub(bench: Bench) -> Pulls:
    return Pulls(bench.url)


def port(hub: Pulls) -> GitHub:
    return cast(GitHub, hub)


def opening(bench: Bench, **more: Value) -> Config:
    return {"repoURL": bench.url, "sourceBranch": "feature", "targetBranch": "main", **more}


async def push(bench: Bench, *, message: Value = "Add a\n\nBecause.", text: bytes = b"a") -> None:
    """Everything before the pull request, previewed; an empty text changes nothing."""
    checkout: Value = {"path": "src", "branch": "main"}
    await bench.preview(GitClone(bench.git), {"repoURL": bench.url, "checkout": [checkout]})
    if text:
        await bench.tree.write("src/a.txt", text)
    await bench.preview(GitCommit(bench.git), {"path": "src", "message": message})
    await bench.preview(GitPush(bench.git), {"path": "src", "targetBranch": "feature"})


async def open_pull(bench: Bench, hub: Pulls, **more: Value) -> StepResult:
    return await bench.preview(GitOpenPr(bench.git, port(hub)), opening(bench, **more))


def asked(result: StepResult) -> RequestRecord:
    assert isinstance(result.record, RequestRecord)
    return result.record


async def test_a_preview_says_what_the_pull_request_shall_be(bench: Bench, hub: Pulls) -> None:
    await push(bench)
    result = await open_pull(bench, hub, labels=["promotion"])
    assert result.status is None
    assert result.record == RequestRecord(
        "src", bench.url, "feature", "main", "Add a", "Because.", ("promotion",)
    )
    assert result.output["prNumber"] == Unknown("known after step: git-open-pr.prNumber")


async def test_the_tasks_own_texts_come_before_those_of_the_commit(bench: Bench, hub: Pulls) -> None:
    await push(bench)
    record = asked(await open_pull(bench, hub, title="Release", description=Text(("see ", LATER))))
    assert (record.title, record.description) == ("Release", Text(("see ", LATER)))


async def test_what_a_commit_message_does_not_know_yet_is_shown(bench: Bench, hub: Pulls) -> None:
    await push(bench, message=Text(("Add ", LATER, "\n\nLong.")))
    record = asked(await open_pull(bench, hub))
    assert (record.title, record.description) == ("Add <known after merge: commit>", "Long.")


async def test_nothing_to_review_is_skipped_until_the_pull_request_is_there(bench: Bench, hub: Pulls) -> None:
    await push(bench, text=b"")
    skipped = await open_pull(bench, hub)
    assert (skipped.status, asked(skipped).source) == (StepStatus.SKIPPED, "feature")
    bench.again(promotion=replace(bench.promotion, pull=PullNumber(7), source="feature"))
    await push(bench, text=b"")
    assert (await open_pull(bench, hub)).status is None


async def test_commits_that_cancel_each_other_out_are_nothing_to_review(bench: Bench, hub: Pulls) -> None:
    await push(bench)
    await bench.tree.delete("src/a.txt")
    await bench.preview(GitCommit(bench.git), {"path": "src", "message": "Take it back"}, alias="back")
    await bench.preview(GitPush(bench.git), {"path": "src", "targetBranch": "feature"}, alias="again")
    assert (await open_pull(bench, hub)).status is StepStatus.SKIPPED


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sourceBranch": "other"}, "no step before it pushes the branch 'other'"),
        ({"targetBranch": "release"}, "is a checkout of 'main', but the pull request goes from"),
    ],
    ids=["a branch that the task does not push", "a change made on another branch"],
)
async def test_what_cannot_be_guarded_fails(
    bench: Bench, hub: Pulls, change: dict[str, Value], says: str
) -> None:
    await push(bench)
    result = await open_pull(bench, hub, **change)
    assert result.status is StepStatus.FAILED
    assert says in result.message


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("Work of a person", StepStatus.FAILED),
        ("Another Stage's\n\nLockstep-Stage: acme/prod", StepStatus.FAILED),
        ("Promote\n\nLockstep-Stage: acme/dev", None),
    ],
    ids=[
        "commits of people are never overwritten",
        "nor those of another Stage",
        "an earlier promotion's are",
    ],
)
async def test_a_branch_that_is_there_already(
    bench: Bench, hub: Pulls, repository: Path, message: str, status: StepStatus | None
) -> None:
    git(repository, "branch", "feature", "main")
    commit_files(repository, "feature", {"b.txt": "b"}, message)
    bench.promotion = replace(bench.promotion, steps=(Step(), Step(), Step(), Step(uses="git-open-pr")))
    await push(bench)
    assert (await open_pull(bench, hub)).status is status


async def test_a_branch_that_is_merged_already_is_used_again(
    bench: Bench, hub: Pulls, repository: Path
) -> None:
    git(repository, "branch", "feature", "main")
    commit_files(repository, "main", {"b.txt": "b"}, "Later")
    await push(bench)
    assert (await open_pull(bench, hub)).status is None


async def test_another_server_is_refused(bench: Bench, hub: Pulls) -> None:
    with pytest.raises(TerminalError, match=r"https://gitlab\.example/acme/ops is no repository"):
        await open_pull(bench, hub, repoURL="https://gitlab.example/acme/ops")


@pytest.mark.parametrize("kind", [GitWaitForPr, GitMergePr], ids=["waiting", "merging"])
@pytest.mark.parametrize(
    "number",
    [3, Unknown("known after step: http.number")],
    ids=["a number", "what another step will give"],
)
async def test_only_the_tasks_own_pull_request_is_awaited(
    bench: Bench, hub: Pulls, kind: type[GitWaitForPr | GitMergePr], number: Value
) -> None:
    await push(bench)
    await open_pull(bench, hub)
    step = kind(port(hub))
    with pytest.raises(TerminalError, match="of the same task"):
        await bench.preview(step, {"repoURL": bench.url, "prNumber": number})
    found = await bench.preview(step, {"repoURL": bench.url, "prNumber": NUMBER})
    assert found.output["commit"] == LATER


async def test_a_merge_says_its_method(bench: Bench, hub: Pulls) -> None:
    await push(bench)
    await open_pull(bench, hub)
    config: Config = {"repoURL": bench.url, "prNumber": NUMBER}
    step = GitMergePr(port(hub))
    assert (await bench.preview(step, config)).record == MergeRecord("merge")
    assert (await bench.preview(step, {**config, "mergeMethod": "Squash"})).record == MergeRecord("squash")
    assert (await bench.preview(step, {**config, "mergeMethod": "octopus"})).status is StepStatus.FAILED


async def test_after_the_merge_the_steps_give_what_kargos_would(bench: Bench, hub: Pulls) -> None:
    hub.pulls[7] = MERGED
    bench.promotion = replace(bench.promotion, pull=PullNumber(7))
    config: Config = {"repoURL": bench.url, "prNumber": 7}
    opened = await bench.fulfil(GitOpenPr(bench.git, port(hub)), opening(bench))
    assert opened.output == {"pr": {"id": 7, "url": PULL.url}, "prNumber": 7}
    waited = await bench.fulfil(GitWaitForPr(port(hub)), config)
    shown = {"id": 7, "url": PULL.url, "open": False, "merged": True}
    assert waited.output == {"pr": shown, "commit": "c" * 40}
    assert (await bench.fulfil(GitMergePr(port(hub)), config)).output == {"commit": "c" * 40}


@pytest.mark.parametrize("kind", [GitWaitForPr, GitMergePr], ids=["waiting", "merging"])
async def test_nothing_passes_for_a_merge_that_is_none(
    bench: Bench, hub: Pulls, kind: type[GitWaitForPr | GitMergePr]
) -> None:
    hub.pulls[7] = PULL
    bench.promotion = replace(bench.promotion, pull=PullNumber(7))
    step = kind(port(hub))
    result = await bench.fulfil(step, {"repoURL": bench.url, "prNumber": 7})
    assert (result.status, "is not merged" in result.message) == (StepStatus.FAILED, True)
    with pytest.raises(TerminalError, match="pull request is 7, no other is supported"):
        await bench.fulfil(step, {"repoURL": bench.url, "prNumber": 8})


async def test_a_checkout_behind_the_merge_stands_on_what_it_will_leave(
    bench: Bench, repository: Path
) -> None:
    base = CommitId(git(repository, "rev-parse", "main"))
    commit_files(repository, "main", {"late.txt": "late"}, "Pushed while the preview was made")
    changed: dict[str, File | None] = {"README.md": File(b"merged\n"), "env/dev/values.yaml": None}
    bench.merged = MergedBranch(Target(bench.url.removesuffix(".git"), "main"), base, changed)
    checkout: Value = {"path": "out", "branch": "main"}
    cloned = await bench.preview(GitClone(bench.git), {"repoURL": bench.url, "checkout": [checkout]})
    assert cloned.output == {"commits": {"out": LATER}}
    assert cloned.record == PinRecord((Pin("out", bench.url, "main", base),))
    assert await bench.tree.read("out/README.md") == b"merged\n"
    assert not bench.tree.exists("out/env/dev/values.yaml")
    assert not bench.tree.exists("out/late.txt")
    nothing = await bench.preview(GitCommit(bench.git), {"path": "out", "message": "m"})
    assert (nothing.status, nothing.output) == (StepStatus.SKIPPED, {"commit": LATER})
    pushed = await bench.preview(GitPush(bench.git), {"path": "out", "targetBranch": "main"})
    assert pushed.output["commit"] == LATER
