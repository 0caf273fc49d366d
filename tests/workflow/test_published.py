"""Several pushes to the target behind a barrier, walked with real steps on real git, in as many passes as they need."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bot.adapters.clock import SystemClock
from bot.adapters.git import GitMirror
from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.domain.codec import decode_value
from bot.domain.files import CommitId
from bot.domain.model import Step, Variable
from bot.domain.promotion import Promotion, State, StepStatus, Target
from bot.domain.review_policy import ReviewPolicy
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Json, Unknown, Value
from bot.ports import Git
from bot.steps.contract import Config, StepContext, StepResult
from bot.steps.contract import Step as StepRunner
from bot.steps.git_clone import GitClone
from bot.steps.git_commit import GitCommit
from bot.steps.git_push import GitPush
from bot.steps.yaml_update import YamlUpdate
from bot.workflow.benches import Bench
from bot.workflow.evaluation import Progress
from bot.workflow.fulfil import Fulfiller, Task
from bot.workflow.outcomes import Finished, Waiting
from bot.workflow.preview import Previewer
from tests.adapters.git_server import GitServer, commit_files, git, serve_git
from tests.steps.bench import promotion

VALUES = "image:\n  tag: 1.0.0\nurl: none\n# nothing\nreplicas: 1\n"


@dataclass
class Act:
    """A barrier whose output is known once it is done; it waits as often as it is told to, in every attempt."""

    waits: int = 0
    seen: list[Value] = field(default_factory=list)

    @property
    def kind(self) -> StepKind:
        return StepKind("act", StepClass.ACT)

    async def preview(self, config: Config, context: StepContext) -> StepResult:
        return StepResult(status=None, output={"url": Unknown("known after apply: url")})

    async def fulfil(self, config: Config, context: StepContext) -> StepResult:
        self.seen.append(config.get("sees"))
        if self.waits:
            self.waits -= 1
            return StepResult(StepStatus.RUNNING, message="waits", retry_after=60.0)
        return StepResult(output={"url": "https://fn.example"})


class Plain:
    """An evaluator of configs in which `$alias.output` stands for an output of an earlier step."""

    def condition(self, step: Step, progress: Progress) -> bool | Unknown:
        return True

    def config(self, step: Step, progress: Progress) -> Value:
        return {key: _evaluate(decode_value(item), progress) for key, item in step.config.items()}

    def environment(self, variables: Sequence[Variable]) -> Mapping[str, Value]:
        return {}


def _evaluate(value: Value, progress: Progress) -> Value:
    match value:
        case str() if value.startswith("$"):
            alias, _, name = value[1:].partition(".")
            outputs = progress.outputs[alias]
            assert isinstance(outputs, dict)
            return outputs[name]
        case dict():
            return {key: _evaluate(item, progress) for key, item in value.items()}
        case list():
            return [_evaluate(item, progress) for item in value]
        case _:
            return value


@dataclass
class Bed:
    """A task on a repository; `first` and `last` are its barriers."""

    git: Git
    store: DatabaseStore
    path: Path
    url: str
    vault: KeyFileVault
    first: Act = field(default_factory=Act)
    last: Act = field(default_factory=Act)

    def runners(self) -> Mapping[str, StepRunner]:
        return {
            "git-clone": GitClone(self.git),
            "yaml-update": YamlUpdate(),
            "git-commit": GitCommit(self.git),
            "git-push": GitPush(self.git),
            "act": self.first,
            "last": self.last,
        }

    async def previewed(self) -> Task:
        steps = tuple(Step(uses=uses, alias=alias, config=config) for alias, uses, config in self._steps())
        made = replace(promotion(self.url), steps=steps, state=State.FULFILLING, effects_begun=True)
        await self.store.create_promotion(made)
        previewer = Previewer(lambda project: Bench(self.git, self.runners()), self.vault, SystemClock())
        preview = await previewer.preview(made, ReviewPolicy(), Plain())
        assert not preview.problems
        merge = CommitId(commit_files(self.path, "main", {"merged.txt": "by a pull request\n"}))
        await self.git.fetch(self.url)
        merged: Promotion = replace(made, merge_commit=merge, target=Target(self.url, "main"))
        return Task(merged, ReviewPolicy(), preview, merge, ("lockstep", "bot@example.com"))

    def _steps(self) -> list[tuple[str, str, dict[str, Json]]]:
        def update(key: str, value: str) -> dict[str, Json]:
            return {"path": "src/values.yaml", "updates": [{"key": key, "value": value}]}

        def commit(message: str) -> dict[str, Json]:
            return {"path": "src", "message": message}

        checkout: Json = {"path": "src", "branch": "main"}
        return [
            ("clone", "git-clone", {"repoURL": self.url, "checkout": [checkout]}),
            ("act", "act", {}),
            ("tag", "yaml-update", update("image.tag", "1.1.0")),
            ("one", "git-commit", commit("One")),
            ("push-one", "git-push", {"path": "src"}),
            ("address", "yaml-update", update("url", "$act.url")),
            ("two", "git-commit", commit("Two")),
            ("push-two", "git-push", {"path": "src"}),
            ("sync", "last", {"sees": ["$one.commit", "$two.commit", "$push-two.commit"]}),
        ]

    async def walk(self, task: Task) -> Finished | Waiting:
        fulfiller = Fulfiller(
            lambda project: Bench(self.git, self.runners()), self.store, self.vault, SystemClock()
        )
        outcome = await fulfiller.fulfil(task, Plain())
        assert isinstance(outcome, Finished | Waiting), outcome
        return outcome

    def log(self, since: str) -> list[str]:
        return git(self.path, "log", "--reverse", "--format=%H", f"{since}..main").splitlines()

    def values(self) -> str:
        return git(self.path, "show", "main:values.yaml")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[GitServer]:
    async with serve_git(tmp_path / "server") as running:
        yield running


async def _no_token(url: str) -> str | None:
    return None


@pytest.fixture
def bed(tmp_path: Path, server: GitServer) -> Iterator[Bed]:
    path = server.repository("acme/ops")
    commit_files(path, "main", {"values.yaml": VALUES})
    vault = KeyFileVault(tmp_path / "vault.key")
    store = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", vault)
    mirror = GitMirror(tmp_path / "mirrors", _no_token, network_timeout=20)
    yield Bed(mirror, store, path, server.address("acme/ops"), vault)
    store.close()


async def test_each_push_is_one_commit_on_the_one_before(bed: Bed) -> None:
    task = await bed.previewed()
    done = await bed.walk(task)
    assert isinstance(done, Finished)
    assert done.state is State.SUCCEEDED, done.reason
    one, two = bed.log(str(task.merge))
    assert bed.last.seen == [[one, two, two]]
    assert done.release_commit == two
    assert "tag: 1.1.0" in bed.values()
    assert "url: https://fn.example" in bed.values()


async def test_later_passes_know_what_was_published_on_a_branch_that_moved(bed: Bed) -> None:
    task = await bed.previewed()
    # Somebody is quicker, so the commits are made on theirs, and the last step waits for two passes more.
    moved = VALUES.replace("replicas: 1", "replicas: 2")
    theirs = commit_files(bed.path, "main", {"values.yaml": moved})
    bed.last.waits = 2
    assert isinstance(await bed.walk(task), Waiting)
    one, two = bed.log(theirs)
    commit_files(bed.path, "main", {"other.txt": "and again\n"})
    assert isinstance(await bed.walk(task), Waiting)
    done = await bed.walk(task)
    assert isinstance(done, Finished)
    assert done.state is State.SUCCEEDED, done.reason
    assert done.release_commit == two
    assert bed.last.seen == [[one, two, two]] * 3
    assert len(bed.log(theirs)) == 3
    assert "replicas: 2" in bed.values()


async def test_a_branch_that_moves_between_two_pushes_is_walked_again(bed: Bed) -> None:
    task = await bed.previewed()
    hook = bed.path / "hooks" / "post-receive"
    theirs = commit_files(bed.path, "aside", {"other.txt": "between\n"})
    # Right behind our first push somebody's commit arrives, once.
    script = "#!/bin/sh\nrm hooks/post-receive\nexec >/dev/null 2>&1\n"
    script += f"tree=$(git merge-tree --write-tree --allow-unrelated-histories main {theirs})\n"
    script += "new=$(git -c user.name=a -c user.email=a@b.c commit-tree $tree -p main -m between)\n"
    script += "git update-ref refs/heads/main $new\n"
    hook.write_text(script)
    hook.chmod(0o755)
    done = await bed.walk(task)
    assert isinstance(done, Finished)
    assert done.state is State.SUCCEEDED, done.reason
    one, between, two = bed.log(str(task.merge))
    assert git(bed.path, "log", "-1", "--format=%s", between) == "between"
    assert bed.last.seen == [[one, two, two]]
    assert "url: https://fn.example" in bed.values()
