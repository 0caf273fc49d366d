"""How long it takes from a merge until Argo CD is asked to sync, in a repository of 20,000 files.

Run as `python -m tests.bench.bench_merge`. The bot is a process of its own beside the sandbox, over loopback; the
release is one of an image alone, so that no Terraform runs. The clock starts when GitHub has merged and stops when the
simulated Argo CD has begun the operation; the best of several releases counts. The baseline is a fresh clone.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

from tests.e2e.pipelines import TAG, C, P, S, Seed, commit, values
from tests.e2e.road import Road, open_road

FILES = 20_000
ROUNDS = 3
LIMIT_S = 1.0


def fill(repository: Path) -> None:
    """Put many files that do not compress well onto `main`."""
    parts = [
        b"commit refs/heads/main\ncommitter Ada <ada@example.com> 1700000000 +0000\ndata 4\nmany\n"
        b"from refs/heads/main^0\n"
    ]
    for number in range(FILES):
        text = "\n".join(sha256(f"{number} {line}".encode()).hexdigest() for line in range(12)).encode()
        path = f"team-{number % 50}/service-{number // 50 % 20}/values-{number}.yaml"
        parts.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(text), text))
    subprocess.run(["git", "fast-import", "--quiet"], cwd=repository, input=b"".join(parts), check=True)


async def release(road: Road, number: int) -> float:
    """Seconds from one merge to its sync."""
    pull = await road.wait_for_pull(after=number)
    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    await road.wait_until_quiet()
    after, before = await road.last_event(), road.operation().get("startedAt")
    revision = road.operation().get("syncResult", {}).get("revision")
    await road.merge(pull.number)
    begun = time.perf_counter()
    while True:
        seen = road.operation()
        asked = seen.get("operation", {}).get("sync", {}).get("revision")
        if (seen.get("startedAt"), asked) != (before, revision) and asked != revision:
            break
        await asyncio.sleep(0.005)
    took = time.perf_counter() - begun
    await road.wait_for_success(after=after)
    return took


async def measure(directory: Path) -> int:
    """Print the time and the baseline; 1 if the bar is missed."""
    steps = (C, values(TAG), commit("Promote ${{ ctx.stage }}"), P, S)
    async with open_road(directory / "road", Seed(steps=steps)) as road:
        where = Path(await asyncio.to_thread(road.git.text, "rev-parse", "--absolute-git-dir"))
        await asyncio.to_thread(fill, where)
        await road.start_bot()
        times = []
        for number in range(ROUNDS):
            if number:
                await road.publish(otel=f"1.{number}.0")
            times.append(await release(road, number))
        begun = time.perf_counter()
        command = ["git", "clone", "--quiet", f"file://{where}", str(directory / "clone")]
        await asyncio.to_thread(subprocess.run, command, check=True)
        clone = time.perf_counter() - begun
    shown = ", ".join(f"{each:.2f}" for each in times)
    print(f"merge to sync, {FILES} files: {min(times):.2f} s of {shown} (bar {LIMIT_S:.1f} s)")
    print(f"fresh clone of the same repository: {clone:.2f} s, ratio {clone / min(times):.1f}")
    return int(min(times) > LIMIT_S)


def main() -> int:
    """Run in a directory that is removed afterwards."""
    with tempfile.TemporaryDirectory() as directory:
        return asyncio.run(measure(Path(directory)))


if __name__ == "__main__":
    sys.exit(main())
