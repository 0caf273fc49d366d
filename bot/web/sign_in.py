"""Signing in and out: the App's own OAuth web flow, begun and ended in the same browser."""

from __future__ import annotations

import hmac
import logging
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bot.ports import SignIn, TerminalError, TransientError
from bot.web.rendering import Renderer
from bot.web.session import Cookies, PendingSignIn, own_path

log = logging.getLogger(__name__)

_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


@dataclass(frozen=True, slots=True)
class SigningIn:
    """The routes of signing in. `base` is the path under which our pages are reached."""

    github: SignIn
    cookies: Cookies
    renderer: Renderer
    base: str

    def routes(self) -> list[BaseRoute]:
        """All routes, as a literal list."""
        return [
            Route("/sign-in", self.begin),
            Route("/sign-in/callback", self.complete),
            Route("/sign-out", self.sign_out, methods=["POST"]),
        ]

    def ask(self, path: str) -> Response:
        """Send somebody who is not signed in to sign in and come back."""
        return _redirect(f"{self.base}/sign-in?{urlencode({'to': own_path(path)})}")

    async def begin(self, request: Request) -> Response:
        """To GitHub, with a state that only this browser holds."""
        pending = PendingSignIn.begin(request.query_params.get("to", "/"))
        response = _redirect(self.github.address(pending.state, pending.verifier))
        self.cookies.keep_pending(response, pending)
        return response

    async def complete(self, request: Request) -> Response:
        """Back from GitHub: only with the state that this browser was given."""
        pending = self.cookies.pending(request)
        given = request.query_params.get("state", "")
        if pending is None or not hmac.compare_digest(given.encode(), pending.state.encode()):
            return self._refuse(
                400, "This sign-in was not begun here, or it took longer than ten minutes. Begin it again."
            )
        code = request.query_params.get("code", "")
        if not code:
            return self._refuse(403, "GitHub did not let you sign in: you or it refused.")
        try:
            user = await self.github.identify(code, pending.verifier)
        except TerminalError as error:
            log.warning("a sign-in failed: %s", error)
            return self._refuse(502, str(error))
        except TransientError as error:
            return self._refuse(503, str(error))
        response = _redirect(f"{self.base}{pending.path}")
        self.cookies.keep_user(response, user)
        self.cookies.drop_pending(response)
        return response

    async def sign_out(self, _request: Request) -> Response:
        """Forget who sits here; at GitHub the person stays signed in."""
        response = self.renderer.message(
            200, "Signed out", "You are signed out here; at GitHub you are not.", label="Sign in again"
        )
        self.cookies.drop_user(response)
        return response

    def _refuse(self, status: int, text: str) -> Response:
        response = self.renderer.message(status, "Not signed in", text, label="Sign in")
        self.cookies.drop_pending(response)
        return response


def _redirect(address: str) -> RedirectResponse:
    return RedirectResponse(address, 302, headers=_HEADERS)
