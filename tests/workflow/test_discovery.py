"""When what a Warehouse finds becomes Freight: only once it stands still."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bot.adapters.clock import SystemClock
from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.domain.model import ImageSubscription, Metadata, Warehouse
from bot.ports import ImageFacts
from bot.workflow.discovery import Discoverer

APP, JOB = "registry.example.com/app", "registry.example.com/job"
BOTH = Warehouse(Metadata("shop", "acme"), (ImageSubscription(APP), ImageSubscription(JOB)))


@dataclass(slots=True)
class PushedOneByOne:
    """A registry to which a build pushes: each time that the tags of an image are listed, the next push has come."""

    pushes: Iterator[tuple[str, str]]
    tags: dict[str, list[str]] = field(default_factory=lambda: {APP: ["1.0.0"], JOB: ["1.0.0"]})
    lists: int = 0

    async def list_tags(self, repository: str, *, insecure: bool = False) -> Sequence[str]:
        self.lists += 1
        found = tuple(self.tags[repository])
        image, tag = next(self.pushes, ("", ""))
        if image:
            self.tags[image].append(tag)
        return found

    async def find_image(self, repository: str, tag: str, *, insecure: bool = False) -> ImageFacts | None:
        digest = hashlib.sha256(f"{repository}:{tag}".encode()).hexdigest()
        return ImageFacts(tag, f"sha256:{digest}") if tag in self.tags[repository] else None


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DatabaseStore]:
    opened = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", KeyFileVault(tmp_path / "vault.key"))
    yield opened
    opened.close()


async def made(store: DatabaseStore) -> list[Mapping[str, str]]:
    """Tag by image of all Freight there is."""
    known = await store.list_freight("acme")
    return [{image.repo_url: image.tag for image in freight.images} for freight, _ in known]


async def test_two_images_of_one_build_make_one_freight(store: DatabaseStore) -> None:
    registry = PushedOneByOne(iter([(JOB, "1.1.0"), (APP, "1.1.0")]))
    found = await Discoverer(registry, store, SystemClock(), 0.0).look(BOTH)
    assert found.freight is not None
    assert await made(store) == [{APP: "1.1.0", JOB: "1.1.0"}]


async def test_what_is_known_is_looked_at_once(store: DatabaseStore) -> None:
    registry = PushedOneByOne(iter([]))
    discoverer = Discoverer(registry, store, SystemClock(), 0.0)
    assert (await discoverer.look(BOTH)).freight is not None
    registry.lists = 0
    assert (await discoverer.look(BOTH)).reason == "the newest artifacts are known as Freight already"
    assert registry.lists == len(BOTH.subscriptions)


async def test_what_never_stands_still_becomes_freight_in_the_end(store: DatabaseStore) -> None:
    registry = PushedOneByOne((APP, f"1.{number}.0") for number in range(1, 1000))
    found = await Discoverer(registry, store, SystemClock(), 0.0).look(BOTH)
    assert found.freight is not None
    assert len(await made(store)) == 1


async def test_what_is_known_after_all_makes_no_second_freight(store: DatabaseStore) -> None:
    quiet = Discoverer(PushedOneByOne(iter([])), store, SystemClock(), 0.0)
    assert (await quiet.look(BOTH)).freight is not None

    class Withdrawn(PushedOneByOne):
        """A push that is taken back while the bot waits for it to stand still."""

        async def list_tags(self, repository: str, *, insecure: bool = False) -> Sequence[str]:
            found = await super().list_tags(repository)
            return ("1.0.0",) if self.lists > 2 else found

    registry = Withdrawn(iter([(JOB, "1.1.0")]))
    found = await Discoverer(registry, store, SystemClock(), 0.0).look(BOTH)
    assert found.freight is None
    assert await made(store) == [{APP: "1.0.0", JOB: "1.0.0"}]
