"""GitHub by its REST API, signed in as our App; the transport is githubkit, the reading our own."""

from __future__ import annotations

from bot.adapters.github.app import GitHubApp
from bot.adapters.github.connection import GitHubSettings

__all__ = ["GitHubApp", "GitHubSettings"]
