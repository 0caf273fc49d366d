"""What Freight a Warehouse makes of artifacts of several kinds, and what a person is told of each look."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.adapters.clock import SystemClock
from bot.adapters.git import GitMirror
from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.domain.codec import CodecError
from bot.domain.discovery import Discovery, Find, SubscriptionFinds, decode_discovery, encode_discovery
from bot.domain.freight import FreightOrigin
from bot.domain.identity import freight_name
from bot.domain.model import (
    ChartSubscription,
    GenericSubscription,
    GitSubscription,
    ImageSelectionStrategy,
    ImageSubscription,
    Metadata,
    Subscription,
    Warehouse,
)
from bot.domain.values import Json
from bot.ports import Git, TerminalError
from bot.workflow.discovery import Discoverer, Finders
from tests.adapters.git_server import GitServer, commit_files, serve_git
from tests.workflow.finding import ChartVersions, Images, anonymous, finders, watched_below

APP = "registry.example.com/app"
CHARTS = "https://charts.example"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DatabaseStore]:
    opened = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", KeyFileVault(tmp_path / "vault.key"))
    yield opened
    opened.close()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[GitServer]:
    async with serve_git(tmp_path / "server") as running:
        yield running


@pytest.fixture
def images() -> Images:
    held = Images()
    held.push(APP, "1.0.0")
    held.push(APP, "1.1.0")
    return held


def warehouse(*subscriptions: Subscription, **more: str) -> Warehouse:
    return replace(Warehouse(Metadata("shop", "acme"), subscriptions), **more)  # type: ignore[arg-type]


def discoverer(found: Finders, store: DatabaseStore) -> Discoverer:
    return Discoverer(found, store, SystemClock(), 0.0)


async def told(store: DatabaseStore) -> Discovery:
    """What people are told of the last look."""
    row = await store.get_discovery("acme", "shop")
    assert row is not None
    return decode_discovery(row[0])


async def test_freight_holds_one_artifact_of_every_subscription(
    server: GitServer, images: Images, store: DatabaseStore, tmp_path: Path
) -> None:
    commit = commit_files(server.repository(), "main", {"a": "1"}, "first")
    charts = ChartVersions(
        {(CHARTS, "web"): ("0.9.0", "1.2.0"), ("oci://reg.example/web", ""): ("2.0.0_1", "x")}
    )
    wanted = warehouse(
        GitSubscription(server.address()),
        ImageSubscription(APP),
        ChartSubscription(CHARTS, "web"),
        ChartSubscription("oci://reg.example/web", name="oci"),
    )
    found = await discoverer(finders(images, charts, watched_below(tmp_path)), store).look(wanted)
    freight = found.freight
    assert freight is not None
    assert [item.id for item in freight.commits] == [commit]
    assert [item.tag for item in freight.images] == ["1.1.0"]
    assert [(item.name, item.version) for item in freight.charts] == [("web", "1.2.0"), ("", "2.0.0+1")]
    assert freight.name == freight_name(
        FreightOrigin("shop"), commits=freight.commits, images=freight.images, charts=freight.charts
    )
    expected = f"{freight.alias} was made of app {commit[:7]}, app 1.1.0, web 1.2.0, web 2.0.0+1"
    assert found.reason == expected
    seen = await told(store)
    assert seen.outcome == expected
    assert [(item.kind, [find.version for find in item.finds]) for item in seen.finds] == [
        ("git", [commit[:12]]),
        ("image", ["1.1.0", "1.0.0"]),
        ("chart", ["1.2.0", "0.9.0"]),
        ("chart", ["2.0.0+1"]),
    ]


async def test_one_new_artifact_makes_new_freight_with_the_others_as_they_are(
    server: GitServer, images: Images, store: DatabaseStore, tmp_path: Path
) -> None:
    repository = server.repository()
    commit_files(repository, "main", {"a": "1"})
    looks = discoverer(finders(images, watched=watched_below(tmp_path)), store)
    wanted = warehouse(GitSubscription(server.address()), ImageSubscription(APP))
    assert (await looks.look(wanted)).freight is not None
    newer = commit_files(repository, "main", {"a": "2"})
    second = (await looks.look(wanted)).freight
    assert second is not None
    assert ([item.id for item in second.commits], [item.tag for item in second.images]) == (
        [newer],
        ["1.1.0"],
    )
    known = await looks.look(wanted)
    assert (known.freight, known.reason) == (
        None,
        f"the newest artifacts are known as Freight already: {second.alias}",
    )


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        pytest.param(f"imageFrom('{APP}').Tag == '1.1.0'", "", id="met"),
        pytest.param(f"imageFrom('{APP}').Tag == chartFrom('{CHARTS}').Version", "is not met", id="not met"),
        pytest.param("imageFrom('no.such/image').Tag == '1'", "cannot be evaluated", id="wrong"),
        pytest.param("  ", "", id="blank"),
    ],
)
async def test_freight_is_made_only_where_the_criteria_are_met(
    images: Images, store: DatabaseStore, criteria: str, expected: str
) -> None:
    charts = ChartVersions({(CHARTS, "web"): ("1.2.0",)})
    wanted = warehouse(
        ImageSubscription(APP), ChartSubscription(CHARTS, "web"), freight_creation_criteria=criteria
    )
    found = await discoverer(finders(images, charts), store).look(wanted)
    assert (found.freight is None) == bool(expected)
    assert expected in found.reason
    assert (await told(store)).outcome == found.reason


@pytest.mark.parametrize(
    ("subscription", "note"),
    [
        pytest.param(
            ImageSubscription(APP, constraint=">=2"),
            f"{APP}: none of 2 tags passes the subscription's filters",
            id="an image",
        ),
        pytest.param(
            ImageSubscription(APP, platform="linux/arm64"),
            f"{APP}: none of the newest 2 tags is an image for linux/arm64; a higher discoveryLimit looks further "
            "back",
            id="an image for another platform",
        ),
        pytest.param(
            ImageSubscription(APP, strategy=ImageSelectionStrategy.DIGEST, constraint="latest"),
            f"{APP}: there is no tag latest",
            id="a tag to follow",
        ),
        pytest.param(
            ImageSubscription(APP, strategy=ImageSelectionStrategy.NEWEST_BUILD),
            f"{APP}: none of 2 tags says when it was built",
            id="images without a time",
        ),
        pytest.param(
            ChartSubscription(CHARTS, "web"),
            f"{CHARTS}/web: none of 0 versions satisfies the subscription",
            id="a chart",
        ),
        pytest.param(
            GenericSubscription("file", "docs"),
            "docs: subscriptions of kind file cannot be discovered here",
            id="something else",
        ),
    ],
)
async def test_a_subscription_without_artifacts_makes_no_freight_and_says_why(
    images: Images, store: DatabaseStore, subscription: Subscription, note: str
) -> None:
    found = await discoverer(finders(images), store).look(warehouse(ImageSubscription(APP), subscription))
    assert (found.freight, found.reason) == (None, note)
    assert (await told(store)).outcome == note
    assert await store.list_freight("acme") == []


async def test_a_warehouse_by_hand_shows_what_there_is_and_makes_nothing(
    images: Images, store: DatabaseStore
) -> None:
    wanted = warehouse(ImageSubscription(APP), freight_creation_policy="Manual")
    found = await discoverer(finders(images), store).look(wanted)
    assert (found.freight, found.reason) == (
        None,
        "the Warehouse makes Freight only by hand: comment /freight acme/shop",
    )
    assert [find.version for find in (await told(store)).finds[0].finds] == ["1.1.0", "1.0.0"]


async def test_only_the_image_that_makes_freight_is_asked_for(images: Images, store: DatabaseStore) -> None:
    await discoverer(finders(images), store).look(
        warehouse(ImageSubscription(APP), freight_creation_policy="Manual")
    )
    assert images.asked == ["1.1.0"]


async def test_no_more_tags_are_asked_for_than_the_limit_says(images: Images, store: DatabaseStore) -> None:
    for number in range(50):
        images.push(APP, f"2.{number}.0", "linux/arm64")
    wanted = warehouse(ImageSubscription(APP, platform="linux/amd64", discovery_limit=5))
    found = await discoverer(finders(images), store).look(wanted)
    assert found.freight is None
    assert images.asked == [f"2.{number}.0" for number in (49, 48, 47, 46, 45)]


async def test_an_error_of_one_subscription_is_the_looks_and_people_are_told(
    images: Images, store: DatabaseStore
) -> None:
    class Refusing:
        """Mirrors of nothing."""

        async def open(
            self, project: str, url: str, *, insecure: bool = False, blobless: bool = False
        ) -> Git:
            return GitMirror(Path("/nonexistent"), anonymous)

    looks = discoverer(finders(images, watched=Refusing()), store)
    await looks.look(warehouse(ImageSubscription(APP)))
    known = (await told(store)).finds
    assert known
    with pytest.raises(TerminalError, match="only https is allowed"):
        await looks.look(warehouse(ImageSubscription(APP), GitSubscription("ssh://git.example/x")))
    seen = await told(store)
    assert seen.outcome.startswith("the last look failed: 'ssh://git.example/x' cannot be used")
    assert seen.finds == known


def test_what_is_stored_of_a_look_is_read_back() -> None:
    seen = Discovery(
        (SubscriptionFinds("git", "https://x", "code", (Find("v1", "a" * 40, NOW, "subject"),), "note"),),
        "made",
    )
    assert decode_discovery(encode_discovery(seen)) == seen


def test_what_was_stored_before_schema_1_shows_its_tags() -> None:
    row: Json = {"registry.example.com/app": ["1.1.0"], "registry.example.com/job": []}
    assert decode_discovery(row) == Discovery(
        (
            SubscriptionFinds("image", "registry.example.com/app", finds=(Find("1.1.0"),)),
            SubscriptionFinds("image", "registry.example.com/job"),
        ),
        "",
    )
    with pytest.raises(CodecError):
        decode_discovery([])
