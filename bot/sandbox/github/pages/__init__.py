"""The web pages of the simulated GitHub, joined to the server as a literal list of routes."""

from starlette.routing import BaseRoute


def page_routes(github: object) -> list[BaseRoute]:
    """The routes of all pages; `github` is the `bot.sandbox.github.app.GitHub` they show."""
    return []
