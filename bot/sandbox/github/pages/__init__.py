"""The web pages of the simulated GitHub, joined to the server as a literal list of routes."""

from starlette.routing import BaseRoute

from bot.sandbox.github.world import World


def page_routes(world: World) -> list[BaseRoute]:
    """The routes of all pages that show this world."""
    del world
    return []
