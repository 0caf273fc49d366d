"""Finders for tests of discovery: real mirrors of a real git server, and registries that hold what the test says."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bot.adapters.clock import SystemClock
from bot.adapters.git import GitMirror, RepositoriesOfProjects
from bot.domain.files import CommitId
from bot.domain.github import PullNumber, PullRequest, Repository
from bot.ports import Charts, Git, ImageFacts, Registry, WatchedGit
from bot.workflow.chart_discovery import ChartFinder
from bot.workflow.discovery import Finders
from bot.workflow.git_discovery import CommitFinder
from bot.workflow.image_discovery import ImageFinder
from bot.workflow.own_commits import OwnCommits
from tests.domain import reviews

OUR_EMAIL = "1+lockstep[bot]@users.noreply.github.com"


def keyed(data: bytes) -> str:
    """The keyed hash of these tests."""
    return hmac.new(b"key of the tests", data, hashlib.sha256).hexdigest()


@dataclass(slots=True)
class Images:
    """A registry in memory: facts by repository and tag. It counts what it was asked."""

    held: dict[str, dict[str, ImageFacts]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def push(self, repository: str, tag: str, *platforms: str) -> None:
        """Put an image there; a tag that exists is moved."""
        digest = hashlib.sha256(f"{repository}:{tag}".encode()).hexdigest()
        facts = ImageFacts(tag, f"sha256:{digest}", platforms=platforms or ("linux/amd64",))
        self.held.setdefault(repository, {})[tag] = facts

    async def list_tags(self, repository: str, *, insecure: bool = False) -> Sequence[str]:
        return tuple(self.held.get(repository, {}))

    async def find_image(
        self, repository: str, tag: str, *, insecure: bool = False, cache_by_tag: bool = False
    ) -> ImageFacts | None:
        self.asked.append(tag)
        return self.held.get(repository, {}).get(tag)


@dataclass(frozen=True, slots=True)
class ForAll:
    """The same registry for every project."""

    registry: Registry

    async def of(self, project: str) -> Registry:
        return self.registry


@dataclass(slots=True)
class ChartVersions:
    """Chart repositories in memory: versions by address and chart."""

    held: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)

    async def list_versions(
        self, project: str, repository: str, chart: str, *, insecure: bool = False
    ) -> Sequence[str]:
        return self.held.get((repository, chart), ())


class NoRepositories:
    """Nobody watches a git repository in this test."""

    async def open(self, project: str, url: str, *, insecure: bool = False, blobless: bool = False) -> Git:
        raise AssertionError(f"{url} was not to be read")


async def anonymous(*_: str) -> None:
    """No login for anything."""


async def no_login(project: str, url: str, *, write: bool) -> None:
    """No login for anything."""


def no_advice(*_: str) -> str:
    """Nothing to say where access is refused."""
    return ""


def watched_below(directory: Path) -> WatchedGit:
    """Real mirrors, fetched without a login."""
    shared = GitMirror(directory / "mirrors", anonymous, network_timeout=20)
    return RepositoriesOfProjects(shared, directory / "watched", anonymous, no_login, no_advice)


@dataclass(slots=True)
class Merged:
    """A store and a GitHub in one that know of promotions' pull requests: by number the commit that each became."""

    recorded: dict[int, str] = field(default_factory=dict)
    """What the store knows of them."""
    on_github: dict[int, str] = field(default_factory=dict)

    async def find_merge_of_pull(self, url: str, pull: int) -> str | None:
        assert url == "https://github.example/acme/app.git"
        return self.recorded.get(pull)

    def repository_of(self, url: str) -> Repository | None:
        return Repository("acme", "app")

    def clone_url(self, repository: Repository) -> str:
        return f"https://github.example/{repository}.git"

    async def get_pull_request(self, repository: Repository, number: PullNumber) -> PullRequest:
        merge = self.on_github.get(number)
        return reviews.pull(merged=merge is not None, merge_commit=CommitId(merge) if merge else None)


def finders(
    registry: Registry | None = None,
    charts: Charts | None = None,
    watched: WatchedGit | None = None,
    merged: Merged | None = None,
) -> Finders:
    """Finders over these parts; what is left out is empty."""
    known = merged or Merged()
    return Finders(
        CommitFinder(
            watched or NoRepositories(), OwnCommits(keyed, lambda: {OUR_EMAIL}, known, known), SystemClock()
        ),
        ImageFinder(ForAll(registry or Images())),
        ChartFinder(charts or ChartVersions()),
    )
