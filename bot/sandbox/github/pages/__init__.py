"""The web pages of the simulated GitHub, for people: repositories, pull requests, checks, commits, deployments."""

from bot.sandbox.github.pages.site import Pages

__all__ = ["Pages"]
