"""How long the git part of a release takes on a large repository, beside a fresh clone of it.

Run as `python -m tests.bench.bench_git`. Both go over the same loopback server: fetch, resolve, list, change one file,
commit and push on our side, `git clone` with a work tree on the other; the best of several rounds counts.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from bot.adapters.git import GitMirror
from bot.domain.files import CommitId, File
from bot.ports import Pushed, Signature
from tests.adapters.git_server import ENVIRONMENT, serve_git

FILES = 20_000
ROUNDS = 5
LIST_LIMIT_MS = 150.0
LIMIT_RATIO = 8.0


def fill(repository: Path) -> None:
    """Put one commit with many files that do not compress well onto `main`."""
    parts = [b"commit refs/heads/main\ncommitter Ada <ada@example.com> 1700000000 +0000\ndata 5\nstart\n"]
    for number in range(FILES):
        text = "\n".join(sha256(f"{number} {line}".encode()).hexdigest() for line in range(12)).encode()
        path = f"team-{number % 50}/service-{number // 50 % 20}/values-{number}.yaml"
        parts.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(text), text))
    subprocess.run(
        ["git", "fast-import", "--quiet"], cwd=repository, env=ENVIRONMENT, input=b"".join(parts), check=True
    )


async def best(work: Callable[[int], Awaitable[object]]) -> float:
    """The shortest of several runs, in milliseconds."""
    times = []
    for number in range(ROUNDS):
        started = time.perf_counter()
        await work(number)
        times.append((time.perf_counter() - started) * 1000)
    return min(times)


async def no_token(url: str) -> None:
    """The server of this bench asks for none."""


async def measure(root: Path) -> int:
    """Print times and ratio; 1 if a bar is missed."""
    async with serve_git(root / "server") as server:
        fill(server.repository())
        url = server.address()
        mirror = GitMirror(root / "mirrors", no_token)
        await mirror.fetch(url)

        async def list_files(number: int) -> None:
            # A new adapter has nothing in memory.
            fresh = GitMirror(root / "mirrors", no_token)
            head = await fresh.resolve(url, "main")
            assert len(await fresh.list_files(url, head or CommitId(""))) == FILES

        async def release(number: int) -> None:
            await mirror.fetch(url)
            head = await mirror.resolve(url, "main")
            assert head is not None
            changes = {"team-1/service-0/values-1.yaml": File(f"tag: {number}\n".encode())}
            tree = await mirror.write_tree(url, head, changes)
            signature = Signature("Lockstep", "bot@example.com", datetime.now(UTC))
            commit = await mirror.commit(url, tree, [head], "release", signature)
            assert await mirror.push(url, commit, "main", expected=head) == Pushed()

        async def clone(number: int) -> None:
            command = ["git", "clone", "--quiet", url, str(root / f"clone-{number}")]
            await asyncio.to_thread(subprocess.run, command, env=ENVIRONMENT, check=True)

        listing, ours, theirs = await best(list_files), await best(release), await best(clone)
    print(f"listing {FILES} files: {listing:.0f} ms")
    print(f"fetch to push of one file: {ours:.0f} ms, fresh clone {theirs:.0f} ms, ratio {theirs / ours:.1f}")
    return int(listing > LIST_LIMIT_MS or theirs / ours < LIMIT_RATIO)


def main() -> int:
    """Run in a directory that is removed afterwards."""
    with tempfile.TemporaryDirectory() as root:
        return asyncio.run(measure(Path(root)))


if __name__ == "__main__":
    sys.exit(main())
