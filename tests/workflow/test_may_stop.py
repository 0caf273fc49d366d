"""A `fail` step in a preview: it stops what is certain to be stopped, and is announced where nobody knows yet."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bot.adapters.clock import SystemClock
from bot.adapters.git import GitMirror
from bot.domain.model import Step, Variable
from bot.domain.review import Presence, Preview
from bot.domain.review_policy import ReviewPolicy
from bot.domain.values import Unknown, Value
from bot.reports.body import render_body
from bot.steps.contract import Step as StepRunner
from bot.steps.fail import Fail
from bot.steps.file_write import FileWrite
from bot.steps.git_clone import GitClone
from bot.steps.git_commit import GitCommit
from bot.steps.git_push import GitPush
from bot.workflow.benches import Bench
from bot.workflow.evaluation import Progress
from bot.workflow.preview import Previewer
from tests.adapters.git_server import commit_files, serve_git
from tests.reports.views import view
from tests.steps.bench import promotion
from tests.steps.fakes import FakeVault

STEPS = (
    Step(uses="git-clone", alias="clone"),
    Step(uses="file-write", alias="write"),
    Step(uses="git-commit", alias="commit"),
    Step(uses="git-push", alias="push"),
    Step(uses="fail", alias="guard", condition="${{ outputs.probe.bad }}"),
    Step(uses="file-write", alias="more"),
)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The configs of these steps, and what is known of the condition of `fail`."""

    url: str
    verdict: bool | Unknown

    def condition(self, step: Step, progress: Progress) -> bool | Unknown:
        return self.verdict if step.uses == "fail" else True

    def config(self, step: Step, progress: Progress) -> Value:
        configs: dict[str, Value] = {
            "clone": {"repoURL": self.url, "checkout": [{"path": "src", "branch": "main"}]},
            "write": {"path": "src/b.txt", "contents": "2\n"},
            "commit": {"path": "src", "message": "add b"},
            "push": {"path": "src"},
            "guard": {"message": "the probe saw errors"},
            "more": {"path": "note.txt", "contents": "3\n"},
        }
        return configs[step.alias]

    def environment(self, variables: Sequence[Variable]) -> Mapping[str, Value]:
        return {}


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    async with serve_git(tmp_path / "server") as server:
        commit_files(server.repository(), "main", {"a.txt": "1\n"})
        yield server.address()


async def no_token(url: str) -> None:
    """Everybody may read here."""


async def preview(directory: Path, url: str, verdict: bool | Unknown) -> Preview:
    git = GitMirror(directory / "mirrors", no_token)
    runners: dict[str, StepRunner] = {
        "git-clone": GitClone(git),
        "file-write": FileWrite(),
        "git-commit": GitCommit(git),
        "git-push": GitPush(git),
        "fail": Fail(),
    }
    previewer = Previewer(lambda project: Bench(git, runners), FakeVault(), SystemClock())
    wanted = promotion(url, steps=STEPS, target=None)
    return await previewer.preview(wanted, ReviewPolicy(), Evaluated(url, verdict))


async def test_where_its_condition_is_not_known_it_is_announced(tmp_path: Path, url: str) -> None:
    found = await preview(tmp_path, url, Unknown("known after apply: healthy"))
    guard = found.steps[4]
    assert found.problems == ()
    assert (guard.presence, guard.status, guard.may_stop) == (Presence.CONDITIONAL, None, True)
    assert guard.condition == "known after apply: healthy"
    assert found.split.cut == guard.index
    assert found.steps[5].presence is Presence.CERTAIN
    shown = replace(view(), preview=found, promotion=replace(view().promotion, steps=STEPS))
    assert "may stop here: the probe saw errors, only if its condition holds then" in render_body(shown)


@pytest.mark.parametrize(
    ("verdict", "problems"),
    [(True, ["the probe saw errors"]), (False, [])],
    ids=["certain to be reached", "certain not to be"],
)
async def test_where_its_condition_is_known_nothing_is_left_open(
    tmp_path: Path, url: str, verdict: bool, problems: list[str]
) -> None:
    found = await preview(tmp_path, url, verdict)
    assert [problem.message for problem in found.problems] == problems
    assert not any(step.may_stop for step in found.steps)
