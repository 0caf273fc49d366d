"""Setting Lockstep up: a page that has GitHub register our App, for whoever can read this program's terminal.

Who opens it shows a token from the terminal once, and from then on a cookie. GitHub sends the browser back with a code
and the `state` that we signed for this browser; the code becomes credentials, which go to a file and nowhere else.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import logging
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlencode, urlsplit

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from bot.domain.app_manifest import fill_manifest, propose_rules
from bot.domain.values import Json
from bot.ports import AppCredentials, Registering, TerminalError, TransientError
from bot.web.rendering import Renderer
from bot.web.session import Signatures

log = logging.getLogger(__name__)

LIFE = timedelta(hours=1)
"""How long GitHub keeps a code, and so how long the whole way may take."""
_COOKIE = "lockstep_setup"
_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9])?")
_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


@dataclass(frozen=True, slots=True)
class SetupPlace:
    """Where things are: our own address on this machine, and the bot's from outside; neither ends in a slash."""

    origin: str
    public_url: str
    organisation: str = ""
    """Which organisation shall own the App; empty: the person."""


@dataclass(slots=True)
class SetupPages:
    """The pages. `keep` writes the credentials (TerminalError if it cannot), `finish` is called when all is done."""

    place: SetupPlace
    manifest: Mapping[str, Json]
    github: Registering
    signatures: Signatures
    renderer: Renderer
    keep: Callable[[AppCredentials], None]
    finish: Callable[[AppCredentials], None]
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    done: AppCredentials | None = None
    _shown: bool = False
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def address(self) -> str:
        """The page's address with the token, for the terminal."""
        return f"{self.place.origin}/setup?{urlencode({'token': self.token})}"

    def app(self) -> Starlette:
        """The web application, with its routes as a literal list."""
        return Starlette(
            routes=[
                Route("/", self.begin),
                Route("/setup", self.begin),
                Route("/setup/callback", self.complete),
                Route("/static/{name}", self.renderer.static),
                Route("/healthz", _alive),
                Route("/readyz", _not_ready),
            ]
        )

    # -- before GitHub ---------------------------------------------------------------------------------------------

    async def begin(self, request: Request) -> Response:
        """The page with the button that posts the manifest to GitHub."""
        if refused := self._refuse_strangers(request):
            return refused
        given = request.query_params.get("token", "")
        if given:
            return self._let_in(given)
        browser = self._browser(request)
        if not browser:
            return self._say(
                403, "Open the address that the terminal shows; its token is good for one browser."
            )
        if self.done is not None:
            return self._finished(self.done)
        organisation = request.query_params.get("organisation", self.place.organisation).strip()
        if organisation and _LOGIN.fullmatch(organisation) is None:
            return self._say(400, "An organisation is named by the last part of its address on GitHub.")
        return self._ask(organisation, browser)

    def _let_in(self, given: str) -> Response:
        """Exchange the token for a cookie; out of the address it is in no history and no Referer."""
        if self._shown or not hmac.compare_digest(given.encode(), self.token.encode()):
            return self._say(403, "This token is not good, or was used before. Start `lockstep setup` again.")
        self._shown = True
        response = RedirectResponse(f"{self.place.origin}/setup", 303, headers=_HEADERS)
        signed = self.signatures.sign("setup-browser", LIFE, {"browser": secrets.token_urlsafe(16)})
        life = int(LIFE.total_seconds())
        # Lax, because GitHub sends the browser back to us by a link from its own site.
        response.set_cookie(_COOKIE, signed, max_age=life, path="/", httponly=True, samesite="lax")
        return response

    def _ask(self, organisation: str, browser: str) -> Response:
        state = self.signatures.sign("setup-state", LIFE, {"browser": browser})
        target = self.github.address(organisation, state)
        manifest = fill_manifest(
            self.manifest,
            url=self.place.public_url,
            redirect_url=f"{self.place.origin}/setup/callback",
            organisation=organisation,
        )
        parts = urlsplit(target)
        return self.renderer.page(
            "setup.html",
            forms_to=f"{parts.scheme}://{parts.netloc}",
            target=target,
            host=parts.netloc,
            manifest=json.dumps(manifest),
            permissions=sorted(_texts(self.manifest.get("default_permissions"))),
            organisation=organisation,
            public_url=self.place.public_url,
        )

    # -- after GitHub ----------------------------------------------------------------------------------------------

    async def complete(self, request: Request) -> Response:
        """Back from GitHub: exchange the code, keep what it gives, and say what comes next."""
        if refused := self._refuse_strangers(request):
            return refused
        browser = self._browser(request)
        state = self.signatures.read("setup-state", request.query_params.get("state", ""))
        if not browser or state is None or not hmac.compare_digest(state.text("browser"), browser):
            return self._say(
                400,
                "This was not begun in this browser, or took longer than an hour. Nothing was kept; begin again.",
            )
        async with self._turn:
            if self.done is not None:
                return self._finished(self.done)
            return await self._complete(request.query_params.get("code", ""))

    async def _complete(self, code: str) -> Response:
        try:
            made = await self.github.exchange(code)
        except TransientError as error:
            return self._say(503, f"{error}. Load this page again to try once more.")
        except TerminalError as error:
            return self._say(502, str(error))
        try:
            await asyncio.to_thread(self.keep, made)
        except TerminalError as error:
            log.error("the credentials of the App cannot be kept: %s", error)
            return self._say(
                500, f"The App {made.name} was made, but {error}. Delete it at {made.page} and begin again."
            )
        self.done = made
        return self._finished(made)

    def _finished(self, made: AppCredentials) -> Response:
        rules = json.dumps(propose_rules(made.app_id), indent=2)
        # In the address itself, since GitHub imports a file, and this server ends with this page.
        file = f"data:application/json;base64,{base64.b64encode(rules.encode()).decode()}"
        response = self.renderer.page("setup_done.html", made=made, rules=rules, file=file)
        # The page must be with the browser before the server may end.
        response.background = BackgroundTask(self.finish, made)
        return response

    # -- both ------------------------------------------------------------------------------------------------------

    def _refuse_strangers(self, request: Request) -> Response | None:
        """A name that leads to this machine is not enough: a page of somebody else could have been given it."""
        if request.headers.get("host", "") == urlsplit(self.place.origin).netloc:
            return None
        return self._say(421, f"This page is served as {self.place.origin} only.")

    def _browser(self, request: Request) -> str:
        """Which browser this is, empty for one that never showed the token."""
        node = self.signatures.read("setup-browser", request.cookies.get(_COOKIE, ""))
        return node.text("browser") if node is not None else ""

    def _say(self, status: int, text: str) -> Response:
        return self.renderer.message(status, "Setting up Lockstep", text)


def _texts(value: Json) -> list[tuple[str, str]]:
    return [(name, str(level)) for name, level in value.items()] if isinstance(value, dict) else []


async def _alive(_request: Request) -> Response:
    return PlainTextResponse("setting up\n")


async def _not_ready(_request: Request) -> Response:
    return PlainTextResponse("no GitHub App is set up yet\n", 503)
