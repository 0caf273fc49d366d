"""Versions that a person names, resolved anew to what they stand for, and refused where they are not offered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.domain.freight import Chart, GitCommit, Image
from bot.domain.model import (
    ChartSubscription,
    CommitSelectionStrategy,
    GenericSubscription,
    GitSubscription,
    ImageSelectionStrategy,
    ImageSubscription,
)
from tests.adapters.git_server import GitServer, commit_files, git, serve_git
from tests.workflow.finding import ChartVersions, Images, finders, watched_below

APP = "registry.example.com/app"
CHARTS = "https://charts.example"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[GitServer]:
    async with serve_git(tmp_path / "server") as running:
        yield running


def registry(*tags: str) -> Images:
    images = Images()
    for tag in tags:
        images.push(APP, tag)
    return images


@pytest.mark.parametrize("tag", ["1.1.0", "1.0.0"])
async def test_an_image_is_taken_with_the_digest_that_its_tag_has_now(tag: str) -> None:
    images = registry("1.0.0", "1.1.0")
    taken = await finders(images).pick("acme", ImageSubscription(APP, "app"), tag)
    assert taken.artifact == Image(APP, tag, images.held[APP][tag].digest, {}, "app")


@pytest.mark.parametrize(
    ("subscription", "tag", "note"),
    [
        pytest.param(ImageSubscription(APP), "3.0.0", "there is 1.2.0, 1.1.0, 1.0.0", id="it does not exist"),
        pytest.param(
            ImageSubscription(APP, constraint="^1.1.0"), "1.0.0", "there is 1.2.0, 1.1.0", id="filtered out"
        ),
        pytest.param(
            ImageSubscription(APP, discovery_limit=2),
            "1.0.0",
            "there is 1.2.0, 1.1.0",
            id="older than the limit",
        ),
        pytest.param(
            ImageSubscription(APP, strategy=ImageSelectionStrategy.DIGEST, constraint="1.1.0"),
            "1.2.0",
            "there is 1.1.0",
            id="another tag than the one that is watched",
        ),
    ],
)
async def test_an_image_that_is_not_offered_is_refused_with_what_is(
    subscription: ImageSubscription, tag: str, note: str
) -> None:
    taken = await finders(registry("1.0.0", "1.1.0", "1.2.0")).pick("acme", subscription, tag)
    assert taken.artifact is None
    assert taken.finds.note == f"{tag} is not among what the subscription offers; {note}"


async def test_an_older_image_for_another_platform_is_refused() -> None:
    images = registry("1.1.0")
    images.push(APP, "1.0.0", "linux/arm64")
    taken = await finders(images).pick("acme", ImageSubscription(APP, platform="linux/amd64"), "1.0.0")
    assert taken.artifact is None
    assert taken.finds.note.startswith("1.0.0 is not an image for linux/amd64")


async def test_no_more_than_ten_versions_are_listed() -> None:
    images = registry(*(f"1.{number}.0" for number in range(15)))
    taken = await finders(images).pick("acme", ImageSubscription(APP), "2.0.0")
    assert taken.finds.note.endswith("1.6.0, 1.5.0 and 5 more")


async def test_a_chart_is_taken_by_its_version() -> None:
    charts = ChartVersions({(CHARTS, "web"): ("1.0.0", "1.1.0")})
    subscription = ChartSubscription(CHARTS, "web", "w")
    taken = await finders(charts=charts).pick("acme", subscription, "1.0.0")
    assert taken.artifact == Chart(CHARTS, "web", "1.0.0", "w")
    refused = await finders(charts=charts).pick("acme", subscription, "0.9.0")
    assert (refused.artifact, refused.finds.note[-21:]) == (None, "there is 1.1.0, 1.0.0")


async def test_a_commit_is_taken_by_the_beginning_of_its_id(server: GitServer, tmp_path: Path) -> None:
    repository = server.repository()
    older = commit_files(repository, "main", {"a": "1"}, "first")
    newest = commit_files(repository, "main", {"a": "2"}, "second")
    found = finders(watched=watched_below(tmp_path))
    subscription = GitSubscription(server.address())
    for version in (older, older[:7], older[:9].upper()):
        taken = await found.pick("acme", subscription, version)
        assert isinstance(taken.artifact, GitCommit)
        assert (taken.artifact.id, taken.artifact.message) == (older, "first")
    for version in (older[:6], "main", "0" * 40):
        refused = await found.pick("acme", subscription, version)
        assert refused.artifact is None
        assert refused.finds.note.endswith(f"there is {newest[:12]}, {older[:12]}")


async def test_a_commit_is_taken_by_its_tag(server: GitServer, tmp_path: Path) -> None:
    repository = server.repository()
    older = commit_files(repository, "main", {"a": "1"})
    git(repository, "tag", "v1.0.0", older)
    git(repository, "tag", "v1.1.0", commit_files(repository, "main", {"a": "2"}))
    subscription = GitSubscription(server.address(), strategy=CommitSelectionStrategy.SEMVER)
    taken = await finders(watched=watched_below(tmp_path)).pick("acme", subscription, "v1.0.0")
    assert isinstance(taken.artifact, GitCommit)
    assert (taken.artifact.id, taken.artifact.tag) == (older, "v1.0.0")


async def test_what_cannot_be_discovered_cannot_be_picked() -> None:
    taken = await finders().pick("acme", GenericSubscription("jira", "tickets"), "1")
    assert (taken.artifact, "cannot be discovered" in taken.finds.note) == (None, True)
