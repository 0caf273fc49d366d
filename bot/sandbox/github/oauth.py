"""Signing in with GitHub: the page that asks the person, the redirect with a code, and the code's exchange."""

import asyncio
import html
import secrets
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bot.sandbox.github.accounts import App, PersonalToken
from bot.sandbox.github.manifest import PAGE
from bot.sandbox.github.pages.people import visitor
from bot.sandbox.github.rest import body
from bot.sandbox.github.world import World, digest
from bot.sandbox.serving import is_same_origin

CODE_LIFE = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class _Grant:
    """What a code stands for until it is exchanged."""

    app_id: int
    user_id: int
    redirect_uri: str
    expires: datetime


class OAuthPages:
    """The web application flow of GitHub Apps. Codes are not stored: a restart ends them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._grants: dict[str, _Grant] = {}
        self._lock = threading.Lock()

    def routes(self) -> list[BaseRoute]:
        """All routes, as a literal list."""
        return [
            Route("/login/oauth/authorize", self._ask, methods=["GET"]),
            Route("/login/oauth/authorize", self._grant, methods=["POST"]),
            Route("/login/oauth/access_token", self._exchange, methods=["POST"]),
        ]

    def _app(self, request: Request) -> tuple[App, str] | None:
        """The App that asks and where it wants the person sent; None if either is unknown."""
        app = self._world.store.first(App, client_id=request.query_params.get("client_id", ""))
        if app is None or not app.callback_urls:
            return None
        target = request.query_params.get("redirect_uri") or app.callback_urls[0]
        known = any(target == url or target.startswith((url + "/", url + "?")) for url in app.callback_urls)
        return (app, target) if known else None

    async def _ask(self, request: Request) -> Response:
        """The page with the button; 404 for an App or address that is not registered."""
        asked = await asyncio.to_thread(self._app, request)
        user = await asyncio.to_thread(visitor, self._world, request)
        if asked is None or user is None:
            problem = "<p>The redirect_uri is not associated with this application.</p>"
            return HTMLResponse(PAGE.format(title="That did not work", content=problem), 404)
        who = html.escape(user.login)
        content = f'<form method="post"><button type="submit">Authorize as {who}</button></form>'
        return HTMLResponse(PAGE.format(title=f"Authorize {html.escape(asked[0].name)}", content=content))

    async def _grant(self, request: Request) -> Response:
        """Send the browser back with a code, if the button was pressed on our own page."""
        if not is_same_origin(request):
            return Response(status_code=403)
        asked = await asyncio.to_thread(self._app, request)
        user = await asyncio.to_thread(visitor, self._world, request)
        if asked is None or user is None:
            return Response(status_code=404)
        app, target = asked
        code = secrets.token_hex(10)
        with self._lock:
            self._grants[code] = _Grant(app.id, user.id, target, self._world.clock() + CODE_LIFE)
        query = {"code": code}
        if "state" in request.query_params:
            query["state"] = request.query_params["state"]
        return RedirectResponse(f"{target}{'&' if '?' in target else '?'}{urlencode(query)}", 302)

    async def _exchange(self, request: Request) -> Response:
        """A user token for a code; GitHub answers mistakes with 200 and an `error`."""
        if request.headers.get("content-type", "").startswith("application/json"):
            sent = body.parse(await request.body())
            fields = {name: str(value) for name, value in sent.items()} if isinstance(sent, dict) else {}
        else:
            fields = {name: str(value) for name, value in (await request.form()).items()}
        answer = await asyncio.to_thread(self._token, fields)
        if "application/json" in request.headers.get("accept", ""):
            return JSONResponse(answer)
        return Response(urlencode(answer), media_type="application/x-www-form-urlencoded")

    def _token(self, fields: dict[str, str]) -> dict[str, str]:
        app = self._world.store.first(App, client_id=fields.get("client_id", ""))
        known = app and secrets.compare_digest(app.client_secret, fields.get("client_secret", ""))
        if app is None or not known:
            return _error("incorrect_client_credentials", "The client_id and/or client_secret are incorrect.")
        with self._lock:
            grant = self._grants.pop(fields.get("code", ""), None)
        if grant is None or grant.app_id != app.id or grant.expires <= self._world.clock():
            return _error("bad_verification_code", "The code passed is incorrect or expired.")
        if fields.get("redirect_uri", grant.redirect_uri) != grant.redirect_uri:
            return _error("redirect_uri_mismatch", "The redirect_uri is not the one that was asked for.")
        token = self._world.secret("ghu_")
        # What a person may do through an App is at most what the App may; the sandbox lets it only read.
        self._world.store.add(PersonalToken(grant.user_id, digest(token), read_only=True))
        return {"access_token": token, "token_type": "bearer", "scope": ""}


def _error(name: str, description: str) -> dict[str, str]:
    return {"error": name, "error_description": description}
