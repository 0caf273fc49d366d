"""A commit is dated by what the journal says, so that it has the same id in every walk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from bot.adapters.git import GitMirror
from bot.adapters.store.store import open_store
from bot.adapters.vault import KeyFileVault
from bot.domain.model import Step, Variable
from bot.domain.promotion import State, StepStatus
from bot.domain.review import Patch, Presence, Split, StepReport
from bot.domain.review_policy import ReviewPolicy
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Unknown, Value
from bot.steps.contract import Config, StepContext, StepResult
from bot.workflow.benches import Bench
from bot.workflow.evaluation import Progress
from bot.workflow.fulfil import Fulfiller, Task
from bot.workflow.outcomes import Finished
from tests.reports.views import MAIN, MERGE, NOW, preview, promotion


@dataclass
class HastyClock:
    """A clock on which a second passes with every look."""

    at: datetime = NOW

    def now(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at


@dataclass
class Dated:
    """A commit step that notes the date that it would give its commit."""

    dates: list[datetime] = field(default_factory=list)

    @property
    def kind(self) -> StepKind:
        return StepKind("git-commit", StepClass.COMMIT)

    async def preview(self, config: Config, context: StepContext) -> StepResult:
        return StepResult()

    async def fulfil(self, config: Config, context: StepContext) -> StepResult:
        run = context.run
        self.dates.append(context.now if run is None or run.begun_at is None else run.begun_at)
        return StepResult()


class Always:
    """An evaluator for steps without conditions and expressions."""

    def condition(self, step: Step, progress: Progress) -> bool | Unknown:
        return True

    def config(self, step: Step, progress: Progress) -> Value:
        return {}

    def environment(self, variables: Sequence[Variable]) -> Mapping[str, Value]:
        return {}


async def _no_token(url: str) -> str | None:
    return None


async def test_a_commit_has_the_same_date_in_every_walk(tmp_path: Path) -> None:
    vault = KeyFileVault(tmp_path / "vault.key")
    store = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", vault)
    try:
        step = Step(uses="git-commit", alias="commit")
        report = StepReport(
            0, "commit", "git-commit", StepClass.COMMIT, Presence.CERTAIN, StepStatus.SUCCEEDED
        )
        seen = preview(steps=(report,), split=Split(0, (), Patch(MAIN, ())))
        merged = promotion(steps=(step,), state=State.FULFILLING, merge_commit=MERGE)
        await store.create_promotion(merged)
        dated = Dated()
        git = GitMirror(tmp_path / "mirror", _no_token)
        fulfiller = Fulfiller(lambda project: Bench(git, {"git-commit": dated}), store, vault, HastyClock())
        task = Task(merged, ReviewPolicy(), seen, MERGE, ("lockstep", "lockstep@example.com"))
        for _ in range(3):
            assert isinstance(await fulfiller.fulfil(task, Always()), Finished)
        assert len(dated.dates) == 3
        assert len(set(dated.dates)) == 1
    finally:
        store.close()
