"""The configuration in force, with several replicas on one database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.domain.model import Metadata, ProjectConfig
from bot.domain.pipeline import Pipeline
from bot.domain.problems import ConfigProblem
from bot.ports import Git, GitHub
from bot.workflow.configuration import Configuration
from bot.workflow.publish import Publisher


@dataclass(slots=True)
class Source:
    """A source whose revision the test sets; the text of its one file is the revision."""

    revision: str

    async def read(self) -> tuple[str, Mapping[str, str]]:
        return self.revision, {"pipeline.yaml": self.revision}


def load(files: Mapping[str, str], revision: str) -> tuple[Pipeline, tuple[ConfigProblem, ...]]:
    """A pipeline without anything; the text `broken` is a problem of it all, `odd` one of a Stage."""
    (text,) = files.values()
    if text.startswith("broken"):
        return Pipeline(), (ConfigProblem("pipeline.yaml", 1, "", text),)
    if text.startswith("odd"):
        return Pipeline(), (ConfigProblem("pipeline.yaml", 1, "", text, stage="dev", project="shop"),)
    return Pipeline(), ()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DatabaseStore]:
    opened = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", KeyFileVault(tmp_path / "vault.key"))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("git_author", "signs_as"),
    [
        (("", ""), ("lockstep[bot]", "bot@lockstep.example")),
        (("Releases", ""), ("Releases", "bot@lockstep.example")),
        (("Releases", "releases@acme.example"), ("Releases", "releases@acme.example")),
    ],
    ids=["without a gitClient the App", "a name alone", "name and address"],
)
def test_who_commits(store: DatabaseStore, git_author: tuple[str, str], signs_as: tuple[str, str]) -> None:
    configuration = Configuration(Source("1"), store, load)
    author = ("lockstep[bot]", "bot@lockstep.example")
    publisher = Publisher(cast(Git, None), cast(GitHub, None), author, configuration.committer)
    assert publisher.signs_as == author
    cluster = ProjectConfig(Metadata("cluster"), cluster=True, git_author=git_author)
    configuration.pipeline = Pipeline(cluster_config=cluster)
    assert publisher.signs_as == signs_as


async def test_what_one_replica_puts_in_force_is_in_force_at_all(store: DatabaseStore) -> None:
    here, there = Source("odd 1"), Source("odd 1")
    one, two = Configuration(here, store, load), Configuration(there, store, load)
    await one.follow()
    assert one.pipeline.revision == ""
    await one.start()
    await two.start()
    here.revision = "odd 2"
    assert await one.refresh()
    await two.follow()
    assert (two.pipeline.revision, two.problem_of("shop", "dev")) == ("odd 2", "pipeline.yaml:1: odd 2")
    # Its own source says the same a moment later, which is nothing new.
    there.revision = "odd 2"
    assert not await two.refresh()


async def test_a_broken_one_leaves_the_last_good_one_in_force_everywhere(store: DatabaseStore) -> None:
    source = Source("good 1")
    one, two = Configuration(source, store, load), Configuration(source, store, load)
    await one.start()
    await two.start()
    source.revision = "broken 2"
    assert not await one.refresh()
    await one.follow()
    await two.follow()
    assert one.pipeline.revision == two.pipeline.revision == "good 1"
    assert [problem.message for problem in one.problems] == ["broken 2"]
    source.revision = "good 3"
    assert await two.refresh()
    await one.follow()
    assert (one.pipeline.revision, one.problems) == ("good 3", ())


async def test_an_older_one_that_is_saved_late_is_replaced_at_the_next_look(store: DatabaseStore) -> None:
    new, old = Source("good 2"), Source("good 1")
    one, two = Configuration(new, store, load), Configuration(old, store, load)
    await one.refresh()
    await two.refresh()
    await one.follow()
    assert one.pipeline.revision == "good 1"
    assert await one.refresh()
    assert await store.get_pipeline_revision() == "good 2"
