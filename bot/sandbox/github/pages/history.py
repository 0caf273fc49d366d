"""What a pull request brings in: its commits and its diff, remembered because commits never change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from bot.sandbox.github.git import Commit, Git
from bot.sandbox.github.pages.diffs import Diff, diff_of
from bot.sandbox.github.records import PullRequest

MOST_COMMITS: Final = 250
"""As many commits of a pull request as GitHub lists."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What lies between the base and the head; `behind` says that the base has commits which the head lacks."""

    commits: tuple[Commit, ...]
    diff: Diff
    behind: bool


def brought(git: Git, pull: PullRequest) -> Brought:
    """What the pull request brings, or brought when it was merged.

    Open pages ask every second, so only where the base branch is now is asked of Git again.
    """
    base = pull.base_sha if pull.merged else git.ref(f"refs/heads/{pull.base_ref}") or pull.base_sha
    return _between(git.path.as_posix(), base, pull.head_sha)


@lru_cache(maxsize=256)
def _between(path: str, base: str, head: str) -> Brought:
    git = Git(Path(path))
    fork_point = git.merge_base(base, head) or base
    commits = git.commits("--reverse", "--topo-order", f"-{MOST_COMMITS}", f"{base}..{head}")
    return Brought(tuple(commits), diff_of(git, fork_point, head), fork_point != base)
