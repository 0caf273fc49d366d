"""Wishes for the outbox: what GitHub shall show."""

from __future__ import annotations

from bot.domain.codec import encode
from bot.domain.github import CheckRun, Repository
from bot.domain.values import Json
from bot.ports import Post

CHECKS_FIRST = 0
"""The rank of checks: they go out before everything else."""


def check_post(repository: Repository, check: CheckRun) -> Post:
    """The wish that a commit shows this check run; a newer wish for the same name replaces it."""
    payload: dict[str, Json] = {"repository": str(repository), "check": encode(check)}
    key = f"check/{repository}/{check.head}/{check.name}"
    return Post(key, "check", str(repository), CHECKS_FIRST, payload)
