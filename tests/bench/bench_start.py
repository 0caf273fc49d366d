"""How soon `lockstep --help` answers, and how much memory an idle server takes.

Run as `python -m tests.bench.bench_start`. The command is run beside a bare interpreter, in turn, the best of several
rounds counts; the server is the demo's bot, with its simulated GitHub in this process, once it has come to rest.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.e2e.pipelines import Seed
from tests.e2e.road import open_road

ROUNDS = 9
HELP_LIMIT_MS = 200.0
RSS_LIMIT_MB = 150.0


def best(command: list[str]) -> float:
    """The shortest of several runs, in milliseconds."""
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        times.append((time.perf_counter() - begun) * 1000)
    return min(times)


async def idle_memory(directory: Path) -> float:
    """Megabytes that the server holds when its first promotion waits for a review."""
    async with open_road(directory, Seed()) as road:
        await road.start_bot()
        await road.wait_for_pull()
        await road.wait_until_quiet(3.0)
        process = road.bot.process
        assert process is not None
        status = Path(f"/proc/{process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024


def main() -> int:
    """Print both; 1 if a bar is missed."""
    bare = best([sys.executable, "-c", "pass"])
    help_ = best([sys.executable, "-m", "bot", "--help"])
    print(
        f"lockstep --help: {help_:.0f} ms (bar {HELP_LIMIT_MS:.0f} ms), bare interpreter {bare:.0f} ms, "
        f"ratio {help_ / bare:.1f}"
    )
    with tempfile.TemporaryDirectory() as directory:
        memory = asyncio.run(idle_memory(Path(directory)))
    print(f"idle server: {memory:.0f} MB (bar {RSS_LIMIT_MB:.0f} MB)")
    return int(help_ > HELP_LIMIT_MS or memory > RSS_LIMIT_MB)


if __name__ == "__main__":
    sys.exit(main())
