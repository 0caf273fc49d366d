"""Roads for the scenarios: a new one, or one on which the first release has arrived in dev."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol

import pytest

from tests.e2e.pipelines import Seed
from tests.e2e.road import Road, copy_road, open_road


class StartRoad(Protocol):
    """Starts the road of a test; it is stopped when the test ends."""

    def __call__(
        self, seed: Seed | None = None, *, released: bool = False, bot: bool = True, **extra: str
    ) -> Awaitable[Road]:
        """A road with this seed (the shipped task in one Stage if None).

        `released` begins where the first release, 1.0.0 of both images, has arrived in dev; a seed is then pushed on
        top of it. `bot=False` leaves it to the test to call `start_bot`. `extra` is the bot's further environment.
        """
        ...


@pytest.fixture(scope="session")
def released_road(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a stopped road on which the first release has arrived in dev."""
    directory = tmp_path_factory.mktemp("released")
    # A thread of its own, because the tests' event loop is none of this fixture's business.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, _release_once(directory)).result()
    return directory


async def _release_once(directory: Path) -> None:
    async with open_road(directory, Seed()) as road:
        await road.start_bot()
        await road.release()


@pytest.fixture
async def start_road(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StartRoad]:
    """Starts roads for the test."""
    async with AsyncExitStack() as stack:

        async def start(
            seed: Seed | None = None, *, released: bool = False, bot: bool = True, **extra: str
        ) -> Road:
            if released:
                copy_road(request.getfixturevalue("released_road"), tmp_path / "road")
            elif seed is None:
                seed = Seed()
            road = await stack.enter_async_context(open_road(tmp_path / "road", seed, **extra))
            if bot:
                await road.start_bot()
            return road

        yield start


@pytest.fixture
async def road(start_road: StartRoad) -> Road:
    """A new road: the bot has just started, the first release is available."""
    return await start_road()


@pytest.fixture
async def released(request: pytest.FixtureRequest, start_road: StartRoad) -> Road:
    """A road on which the first release has arrived in dev, and the bot runs."""
    return await start_road(released=True)
