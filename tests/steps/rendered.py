"""A work tree for the renderers: files that lie in no checkout."""

from __future__ import annotations

from pathlib import Path

from bot.adapters.git import GitMirror
from tests.steps.bench import Bench


async def _no_token(url: str) -> str | None:
    return None


def plain_bench(directory: Path) -> Bench:
    """A bench whose files lie in no checkout."""
    return Bench(GitMirror(directory / "mirrors", _no_token))


async def write(bench: Bench, files: dict[str, str]) -> None:
    """Put texts into the work tree."""
    for path, text in files.items():
        await bench.tree.write(path, text.encode())
