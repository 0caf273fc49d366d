"""Writes begin one after another, as far apart as GitHub wants, on a clock that runs as fast as the test asks."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from typing import TypeVar

import pytest

from bot.adapters.github.pacer import Pacer
from bot.ports import TransientError

T = TypeVar("T")


class QuickLoop(asyncio.SelectorEventLoop):
    """An event loop whose time stands still, and jumps to the next timer instead of waiting for it."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead = 0.0

    def time(self) -> float:
        return self._ahead

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        if not ready and scheduled:
            self._ahead += max(0.0, scheduled[0].when() - self.time())
        super()._run_once()  # type: ignore[misc]


def run(work: Coroutine[object, object, T]) -> T:
    with asyncio.Runner(loop_factory=QuickLoop) as runner:
        return runner.run(work)


async def write(pacer: Pacer, started: list[float], *, creates: bool, lasts: float = 0.0) -> None:
    async with pacer.turn(creates=creates):
        started.append(asyncio.get_running_loop().time())
        await asyncio.sleep(lasts)


def gaps(started: list[float]) -> list[float]:
    return [round(later - earlier, 2) for earlier, later in itertools.pairwise(started)]


@pytest.mark.parametrize(("creates", "gap"), [(True, 1.0), (False, 0.33)])
def test_writes_begin_apart(creates: bool, gap: float) -> None:
    async def work() -> list[float]:
        pacer, started = Pacer(interval=1.0), list[float]()
        await asyncio.gather(*(write(pacer, started, creates=creates) for _ in range(5)))
        return started

    assert gaps(run(work())) == [gap] * 4


def test_without_an_interval_nothing_waits() -> None:
    async def work() -> list[float]:
        pacer, started = Pacer(interval=0.0), list[float]()
        await asyncio.gather(*(write(pacer, started, creates=True) for _ in range(20)))
        return started

    assert gaps(run(work())) == [0.0] * 19


def test_so_many_at_a_time_and_no_more() -> None:
    async def work() -> list[float]:
        pacer, started = Pacer(interval=0.0, concurrent=2), list[float]()
        await asyncio.gather(*(write(pacer, started, creates=True, lasts=3.0) for _ in range(6)))
        return started

    assert gaps(run(work())) == [0.0, 3.0, 0.0, 3.0, 0.0]


def test_a_hold_delays_all_that_wait_already() -> None:
    async def work() -> list[float]:
        pacer, started = Pacer(interval=1.0), list[float]()
        begin = asyncio.get_running_loop().time()
        waiting = [asyncio.create_task(write(pacer, started, creates=True)) for _ in range(3)]
        await asyncio.sleep(0.5)
        pacer.hold(5.0)
        await asyncio.gather(*waiting)
        return [round(moment - begin, 1) for moment in started]

    assert run(work()) == [0.0, 5.5, 6.5]


def test_a_long_hold_goes_back_to_the_queue() -> None:
    async def work() -> float | None:
        pacer = Pacer()
        pacer.hold(3600.0)
        with pytest.raises(TransientError) as caught:
            async with pacer.turn(creates=True):
                raise AssertionError("a held write began")
        return caught.value.retry_after

    wait = run(work())
    assert wait is not None
    assert 3590 < wait <= 3600


def test_a_write_that_fails_frees_its_place() -> None:
    async def refused(pacer: Pacer) -> None:
        async with pacer.turn(creates=False):
            raise RuntimeError("refused")

    async def work() -> None:
        pacer = Pacer(interval=0.0, concurrent=1)
        for _ in range(3):
            with pytest.raises(RuntimeError):
                await refused(pacer)

    run(work())
