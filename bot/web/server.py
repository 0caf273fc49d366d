"""The routes, as a list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from bot import __version__
from bot.web.api import Api
from bot.web.dashboard import Dashboard
from bot.web.metrics import Metrics
from bot.web.receivers import Receivers
from bot.web.webhooks import Webhooks


def make_app(
    webhooks: Webhooks,
    api: Api,
    ready: Callable[[], Awaitable[str]],
    dashboard: Dashboard | None = None,
    receivers: Receivers | None = None,
    metrics: Metrics | None = None,
) -> Starlette:
    """The ASGI application. `ready` answers why the program cannot work now, empty if it can.

    Without a dashboard there are no pages, since nobody could sign in.
    """

    async def healthz(_request: Request) -> Response:
        return JSONResponse({"status": "ok", "version": __version__})

    async def readyz(_request: Request) -> Response:
        problem = await ready()
        return JSONResponse({"status": problem or "ok"}, status_code=503 if problem else 200)

    routes: list[BaseRoute] = [
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        Route("/hooks/distribution", webhooks.distribution, methods=["POST"]),
    ]
    if api.token:
        routes.append(Route("/api/events", api.events))
    if webhooks.secrets:
        # Without a secret nobody could be believed, so there is no such address.
        routes.append(Route("/hooks/github", webhooks.github, methods=["POST"]))
    if receivers is not None:
        routes += receivers.routes()
    if metrics is not None:
        routes.append(Route("/metrics", metrics.page))
    if dashboard is not None:
        routes += dashboard.routes()
    return Starlette(routes=routes)
