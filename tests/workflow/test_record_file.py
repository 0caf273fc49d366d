"""`recordFile`: a line in the diff of a pull request that would be empty without it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bot.adapters.clock import SystemClock
from bot.adapters.git import GitMirror
from bot.domain.files import CommitId
from bot.domain.model import Step, Variable
from bot.domain.promotion import StepStatus
from bot.domain.review import CommitRecord, Lane, Preview
from bot.domain.review_policy import ReviewPolicy
from bot.domain.step_kinds import StepClass
from bot.domain.values import Unknown, Value
from bot.steps.contract import Step as StepRunner
from bot.steps.file_write import FileWrite
from bot.steps.git_clone import GitClone
from bot.steps.git_commit import GitCommit
from bot.steps.git_push import GitPush
from bot.steps.git_tag import GitTag
from bot.workflow.benches import Bench
from bot.workflow.evaluation import Progress
from bot.workflow.merges import find_lost_change, is_merged
from bot.workflow.preview import Previewer
from tests.adapters.git_server import GitServer, commit_files, git, serve_git
from tests.domain import reviews as b
from tests.steps.bench import promotion
from tests.steps.fakes import FakeVault

TAG = Step(uses="git-tag", alias="tag")
STEPS = (Step(uses="git-clone", alias="clone"), TAG)
WRITING = (
    Step(uses="git-clone", alias="clone"),
    Step(uses="file-write", alias="write"),
    Step(uses="git-commit", alias="commit"),
    Step(uses="git-push", alias="push"),
    TAG,
)
RECORD = "deploy/last.txt"
LINE = "Lockstep: calm-otter (fffffff) to acme/dev, dev.01abc.fffffff\n"


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The configs of these steps."""

    url: str

    def condition(self, step: Step, progress: Progress) -> bool | Unknown:
        return True

    def config(self, step: Step, progress: Progress) -> Value:
        configs: dict[str, Value] = {
            "clone": {"repoURL": self.url, "checkout": [{"path": "src", "branch": "main"}]},
            "write": {"path": "src/b.txt", "contents": "2\n"},
            "commit": {"path": "src", "message": "add b"},
            "push": {"path": "src"},
            "tag": {"path": "src", "tag": "v1", "message": "one"},
        }
        return configs[step.alias]

    def environment(self, variables: Sequence[Variable]) -> Mapping[str, Value]:
        return {}


async def no_token(url: str) -> None:
    """Everybody may read here."""


@dataclass(frozen=True, slots=True)
class Desk:
    """A repository, a mirror of it, and previews of what a policy asks for there."""

    server: GitServer
    mirror: GitMirror
    repository: Path

    @property
    def url(self) -> str:
        return self.server.address()

    async def preview(self, steps: tuple[Step, ...] = STEPS, **policy: str) -> Preview:
        changes: dict[str, Any] = dict(policy)
        runners: dict[str, StepRunner] = {
            "git-clone": GitClone(self.mirror),
            "file-write": FileWrite(),
            "git-commit": GitCommit(self.mirror),
            "git-push": GitPush(self.mirror),
            "git-tag": GitTag(self.mirror),
        }
        previewer = Previewer(lambda project: Bench(self.mirror, runners), FakeVault(), SystemClock())
        wanted = promotion(self.url, steps=steps, target=None)
        said = ReviewPolicy(record_file=RECORD, review_in=f"{self.url}#main")
        return await previewer.preview(wanted, replace(said, **changes), Evaluated(self.url))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with serve_git(tmp_path / "server") as server:
        repository = server.repository()
        commit_files(repository, "main", {"a.txt": "1\n"})
        yield Desk(server, GitMirror(tmp_path / "mirrors", no_token), repository)


async def test_what_would_be_empty_holds_a_line(desk: Desk) -> None:
    found = await desk.preview()
    assert found.lane is Lane.EFFECTS
    assert found.problems == ()
    (commit,) = found.split.prepared
    assert commit.message == "promote calm-otter to dev"
    assert list(found.differences) == [RECORD]
    assert RECORD in found.touched
    read = await desk.mirror.read_files(desk.url, await desk.mirror.list_files(desk.url, found.tree))
    assert read[RECORD].data.decode() == LINE
    assert found.digest == (await desk.preview()).digest
    assert found.digest != (await desk.preview(record_file="")).digest


@pytest.mark.parametrize(
    ("steps", "policy"),
    [
        pytest.param(WRITING, {}, id="a task that writes something"),
        pytest.param(STEPS, {"review": "None"}, id="a policy that wants no review"),
        pytest.param(STEPS, {"record_file": ""}, id="a policy without a record file"),
        pytest.param(STEPS[:1], {}, id="a task that does nothing"),
    ],
)
async def test_nothing_is_added_where_none_is_needed(
    desk: Desk, steps: tuple[Step, ...], policy: dict[str, str]
) -> None:
    found = await desk.preview(steps, **policy)
    assert RECORD not in found.differences
    assert found.record_file == ""


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({RECORD: "# Notes\n"}, "is something else already"),
        ({f"{RECORD}/more": "x"}, "a file and a directory"),
        ({"deploy": "x"}, "a file and a directory"),
    ],
    ids=["a file of people's", "a directory", "below a file"],
)
async def test_what_stands_there_already_is_not_overwritten(
    desk: Desk, files: dict[str, str], why: str
) -> None:
    commit_files(desk.repository, "main", files)
    found = await desk.preview()
    assert found.differences == {}
    (problem,) = found.problems
    assert (problem.alias, problem.prepared) == ("recordFile", True)
    assert why in problem.message


async def test_the_line_of_another_stage_is_replaced_and_none_is_missed(desk: Desk) -> None:
    commit_files(desk.repository, "main", {RECORD: "Lockstep: old\n"})
    found = await desk.preview()
    assert list(found.differences) == [RECORD]
    commit_files(desk.repository, "main", {RECORD: "Lockstep: that of staging\n"})
    await desk.mirror.fetch(desk.url)
    tip = CommitId(git(desk.repository, "rev-parse", "main"))
    assert await find_lost_change(desk.mirror, found, tip) == ""


async def test_a_commit_that_had_nothing_to_do_is_not_taken_for_merged(desk: Desk) -> None:
    found = await desk.preview()
    nothing = b.report(
        "git-commit", StepClass.COMMIT, status=StepStatus.SKIPPED, record=CommitRecord("src", "m", ())
    )
    merge = CommitId("c" * 40)
    assert not is_merged(nothing, found, merge)
    assert is_merged(nothing, replace(found, record_file=""), merge)
