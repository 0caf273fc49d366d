"""The port `SignIn`: the web application flow of GitHub Apps, with PKCE.

Sources: GitHub's documentation, "Generating a user access token for a GitHub App"; RFC 7636 for PKCE.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from urllib.parse import urlencode

from bot.domain.github import User
from bot.payloads.reading import Node, read_json
from bot.ports import Http, HttpRequest, HttpResponse, TerminalError, TransientError

_TIMEOUT = 15.0


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """Our App as people sign in with it; `callback` must be among the callback URLs on the App's settings page."""

    client_id: str
    client_secret: str = field(repr=False)
    callback: str
    api_url: str
    """Ends in a slash, as does `web_url`."""
    web_url: str


@dataclass(frozen=True, slots=True)
class GitHubSignIn:
    """Asks GitHub who a person is. The person's token lives as long as one call, and is stored nowhere."""

    client: OAuthClient
    http: Http

    def address(self, state: str, verifier: str) -> str:
        query = {
            "client_id": self.client.client_id,
            "redirect_uri": self.client.callback,
            "state": state,
            "code_challenge": challenge_of(verifier),
            "code_challenge_method": "S256",
        }
        return f"{self.client.web_url}login/oauth/authorize?{urlencode(query)}"

    async def identify(self, code: str, verifier: str) -> User:
        token = await self._exchange(code, verifier)
        request = HttpRequest(
            "GET",
            f"{self.client.api_url}user",
            headers=(("Authorization", f"Bearer {token}"), ("Accept", "application/vnd.github+json")),
            timeout=_TIMEOUT,
        )
        node = _read(await self.http.send(request), "GitHub was asked who signed in")
        return User(node.text("login"), node.number("id"))

    async def _exchange(self, code: str, verifier: str) -> str:
        fields = {
            "client_id": self.client.client_id,
            "client_secret": self.client.client_secret,
            "code": code,
            "redirect_uri": self.client.callback,
            "code_verifier": verifier,
        }
        request = HttpRequest(
            "POST",
            f"{self.client.web_url}login/oauth/access_token",
            headers=(("Accept", "application/json"), ("Content-Type", "application/x-www-form-urlencoded")),
            body=urlencode(fields).encode(),
            timeout=_TIMEOUT,
        )
        node = _read(await self.http.send(request), "GitHub was shown the code of a sign-in")
        # Mistakes are answered with 200 and the name of an error.
        if node.has("error"):
            said = node.text("error_description", default="") or node.text("error")
            raise TerminalError(f"GitHub did not accept the code of the sign-in: {said}")
        return node.text("access_token")


def challenge_of(verifier: str) -> str:
    """What is shown at first of a verifier that is shown at last (RFC 7636, S256)."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _read(answer: HttpResponse, what: str) -> Node:
    if answer.status >= 500 or answer.status == 429:
        raise TransientError(f"{what} and answered {answer.status}; sign in again in a while.")
    if answer.status != 200:
        raise TerminalError(f"{what} and answered {answer.status}; check the App's client id and secret.")

    def fail(path: str, message: str) -> Exception:
        return TerminalError(f"{what}; its answer cannot be read: {path} {message}")

    return read_json(answer.body, fail)
