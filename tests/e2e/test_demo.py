"""`lockstep demo`, as a person starts it: it shows where to look, ends without a trace, goes on where it was kept."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

pytestmark = pytest.mark.e2e

READY = "Ctrl-C stops everything."


@asynccontextmanager
async def demo(temporary: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A running demo whose temporary files lie in a directory of the test; interrupted at the end if it runs still."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bot",
        "demo",
        *arguments,
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.wait(), 60)


async def introduction(process: asyncio.subprocess.Process) -> list[str]:
    """What it prints until it is ready."""
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or lines[-1] != READY:
        line = await asyncio.wait_for(process.stdout.readline(), 60)
        assert line, "\n".join(lines)
        lines.append(line.decode().rstrip("\n"))
    return lines


def addresses(lines: list[str]) -> list[str]:
    return re.findall(r"http://127\.0\.0\.1:\d+", "\n".join(lines))


async def test_ctrl_c_stops_everything_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async with demo(tmp_path) as process, httpx.AsyncClient() as client:
        found = addresses(await introduction(process))
        assert len(found) >= 3
        for address in found:
            assert (await client.get(f"{address}/")).status_code < 500
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), 60) == 0
        for address in found:
            with pytest.raises(httpx.ConnectError):
                await client.get(f"{address}/")
    assert list(tmp_path.iterdir()) == []


async def test_a_bot_that_dies_is_told_and_ends_the_demo(tmp_path: Path) -> None:
    async with demo(tmp_path) as process:
        await introduction(process)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        bots = [n for n in children if b"serve" in Path(f"/proc/{n}/cmdline").read_bytes()]
        os.kill(int(bots[0]), signal.SIGKILL)
        output, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 1
    assert "the bot ended with status -9" in output.decode()
    assert "Traceback" not in output.decode()
    assert list(tmp_path.iterdir()) == []


async def test_what_is_kept_goes_on_at_the_same_addresses(tmp_path: Path) -> None:
    kept, temporary = tmp_path / "kept", tmp_path / "temporary"
    temporary.mkdir()
    async with demo(temporary, "--keep", str(kept)) as process:
        first = addresses(await introduction(process))
    async with demo(temporary, "--keep", str(kept)) as process:
        assert addresses(await introduction(process)) == first


async def test_the_played_demo_brings_a_release_to_prod(tmp_path: Path) -> None:
    async with demo(tmp_path, "--auto") as process:
        output, _ = await asyncio.wait_for(process.communicate(), 150)
    text = output.decode()
    assert process.returncode == 0, text
    assert "prod       runs otel-app 1.1.0 with LAMBDA_URL https://" in text
    for said in ("freight:", "preview:", "merges #", "succeeded:"):
        assert said in text
