"""Which versions the page offers to publish next."""

from __future__ import annotations

import re
from typing import Final

_SEMVER: Final = re.compile(r"(v?)(\d{1,9})\.(\d{1,9})\.(\d{1,9})")


def sort_newest_first(tags: list[str]) -> list[str]:
    """Release versions from the highest down, then everything else by name."""
    return sorted(tags, key=lambda tag: (_numbers(tag) is None, [-n for n in _numbers(tag) or ()], tag))


def next_versions(tags: list[str]) -> list[str]:
    """The patch, minor and major version after the highest one, spelt as that one is; `1.0.0` if there is none."""
    versions = [tag for tag in sort_newest_first(tags) if _numbers(tag) is not None]
    if not versions:
        return ["1.0.0"]
    prefix = "v" if versions[0].startswith("v") else ""
    major, minor, patch = _numbers(versions[0]) or (0, 0, 0)
    following = ((major, minor, patch + 1), (major, minor + 1, 0), (major + 1, 0, 0))
    return [prefix + ".".join(map(str, numbers)) for numbers in following]


def _numbers(tag: str) -> tuple[int, int, int] | None:
    match = _SEMVER.fullmatch(tag)
    return (int(match[2]), int(match[3]), int(match[4])) if match else None
