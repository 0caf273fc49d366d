"""Words for a plan whose delivery never came, on people's own pull requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.domain.events import Commented, Event
from bot.domain.github import Comment, CommentId, PullNumber, Repository, User
from bot.domain.peoples_pulls import PeoplesPull
from bot.domain.pipeline import Pipeline
from bot.domain.problems import ConfigProblem
from bot.ports import ConfigSource, GitHub
from bot.workflow.configuration import Configuration
from bot.workflow.lost_comments import LostComments
from tests.domain import reviews as r

REPOSITORY = Repository("acme", "ops")
RAFAEL = User("rafael", 3)


class Clock:
    def now(self) -> datetime:
        return r.NOW


class Comments:
    """A GitHub that has comments on one pull request."""

    def __init__(self, *comments: Comment) -> None:
        self.comments = comments

    def repository_of(self, url: str) -> Repository | None:
        return REPOSITORY if url == r.URL else None

    async def list_comments(self, repository: Repository, number: PullNumber) -> Sequence[Comment]:
        assert (repository, number) == (REPOSITORY, 9)
        return self.comments


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DatabaseStore]:
    opened = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", KeyFileVault(tmp_path / "vault.key"))
    yield opened
    opened.close()


def comment(number: int, body: str, *, minutes: float = 10, edited: bool = False) -> Comment:
    at = r.NOW - timedelta(minutes=minutes)
    return Comment(CommentId(number), RAFAEL, body, at, edited=edited)


def nothing(files: Mapping[str, str], revision: str) -> tuple[Pipeline, tuple[ConfigProblem, ...]]:
    """A configuration without Stages."""
    return Pipeline(revision=revision), ()


async def test_a_lost_word_for_a_plan_is_found_and_nothing_else_is_obeyed(store: DatabaseStore) -> None:
    github = Comments(
        comment(1, f"/plan {r.HEAD}"),
        comment(2, "/promote dev"),
        comment(3, f"/plan {r.HEAD}", edited=True),
        comment(4, f"/plan {r.HEAD}", minutes=0.5),
        comment(5, f"/plan {r.HEAD}", minutes=60 * 24 * 9),
    )
    obeyed: list[int] = []

    async def obey(event: Event) -> None:
        assert isinstance(event, Commented)
        obeyed.append(event.comment)

    await store.change_peoples_pull(PeoplesPull(r.URL, PullNumber(9), "main", pushers=(1,)), lambda row: row)
    configuration = Configuration(cast("ConfigSource", None), store, nothing)
    lost = LostComments(store, cast("GitHub", github), Clock(), configuration, obey)
    await lost.find(60)
    assert obeyed == [1]
