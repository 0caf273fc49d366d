"""What a look at a person's pull request says of which head, on a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from bot.adapters.config import DirectorySource
from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.app import load
from bot.domain.files import CommitId
from bot.domain.github import PullNumber, PullRequest, Repository
from bot.domain.model import Metadata, Stage
from bot.domain.tasks import TaskError
from bot.ports import TerminalError
from bot.workflow.bystanders import Bystanders
from bot.workflow.configuration import Configuration
from bot.workflow.peoples_pulls import PeoplesPulls, Site
from bot.workflow.pull_reports import PullReports
from bot.workflow.reporting import Reporter
from bot.workflow.snapshots import Gatherer
from tests.adapters.store.rows import SOON
from tests.domain import reviews as r
from tests.web.site import Hands

OTHER = CommitId("9" * 40)


@dataclass
class Toggling:
    """A GitHub with one pull request, whose files are those of its head just now; `meanwhile` comes first."""

    pull: PullRequest
    meanwhile: list[CommitId] = field(default_factory=list)

    def clone_url(self, repository: Repository) -> str:
        return r.URL

    async def get_pull_request(self, repository: Repository, number: PullNumber) -> PullRequest:
        return self.pull

    async def list_pull_request_files(self, repository: Repository, number: PullNumber) -> list[str]:
        if self.meanwhile:
            self.pull = replace(self.pull, head=self.meanwhile.pop())
        return ["README.md"]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[DatabaseStore]:
    opened = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", KeyFileVault(tmp_path / "vault.key"))
    yield opened
    opened.close()


async def looked(store: DatabaseStore, github: Toggling, folder: Path) -> list[object]:
    """The heads on which a look at the pull request, as it was when that began, shows checks."""
    (folder / "config").mkdir()
    clock, hub, nothing = Hands(r.NOW), cast(Any, github), cast(Any, None)
    configuration = Configuration(DirectorySource(folder / "config"), store, load)
    gatherer = Gatherer(store, nothing, hub, clock, configuration)
    bystanders = Bystanders(gatherer)
    reporter = Reporter(store, hub, KeyFileVault(folder / "vault.key"), clock, configuration, "")
    people = PeoplesPulls(gatherer, bystanders, nothing, PullReports(bystanders, reporter), nothing)
    await people.look(github.pull)
    return [cast(Any, due.post.payload["check"])["head"] for due in await store.list_due_posts(SOON)]


async def test_what_touches_no_stage_is_green_at_once(store: DatabaseStore, tmp_path: Path) -> None:
    assert await looked(store, Toggling(r.pull()), tmp_path) == [r.HEAD]


async def test_files_of_another_head_make_no_head_green(store: DatabaseStore, tmp_path: Path) -> None:
    assert await looked(store, Toggling(r.pull(), [OTHER]), tmp_path) == []


async def test_a_task_that_is_wrong_is_told_by_its_name() -> None:
    class Wrong:
        def draft(self, stage: Stage, freight: object) -> None:
            raise TaskError("there is no PromotionTask promote")

    nothing = cast(Any, None)
    people = PeoplesPulls(cast(Any, Wrong()), nothing, nothing, nothing, nothing)
    site = Site(Stage(Metadata(name="dev", namespace="acme"), ()), nothing, nothing, ())
    with pytest.raises(TerminalError, match="the task of dev is wrong: there is no PromotionTask promote"):
        people.draft(site)
