"""Signed cookies: who is signed in, and where a sign-in that is under way shall lead."""

from __future__ import annotations

import base64
import hmac
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response

from bot.domain.github import User
from bot.payloads.reading import Node, PayloadProblem, read_json
from bot.ports import Clock, Vault

SESSION_LIFE = timedelta(hours=8)
SIGN_IN_LIFE = timedelta(minutes=10)

_OURS = re.compile(r"/(?:promotions/[A-Za-z0-9][A-Za-z0-9._-]{0,300})?")
"""The paths of our pages: whatever else a link asks for, a sign-in leads to no other."""


def own_path(path: str) -> str:
    """The path if it is that of one of our pages, else that of the first page."""
    return path if _OURS.fullmatch(path) else "/"


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """A sign-in under way: what must come back with the code, what is shown with it, and where it leads then."""

    state: str
    verifier: str
    path: str

    @classmethod
    def begin(cls, path: str) -> PendingSignIn:
        """A new one, with fresh secrets."""
        return cls(secrets.token_urlsafe(32), secrets.token_urlsafe(48), own_path(path))


class Signatures:
    """Small texts that only we can have made, each good for one purpose and for a time.

    `key` names what they are for altogether; with another key of the vault all of them end.
    """

    def __init__(self, vault: Vault, clock: Clock, key: bytes) -> None:
        self._key = bytes.fromhex(vault.digest(key))
        self._clock = clock

    def sign(self, purpose: str, life: timedelta, fields: Mapping[str, str | int]) -> str:
        """The fields as a text that can stand in a cookie or an address."""
        until = int((self._clock.now() + life).timestamp())
        text = json.dumps({"purpose": purpose, "until": until, **fields})
        body = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
        return f"{body}.{self._mark(body)}"

    def read(self, purpose: str, signed: str) -> Node | None:
        """The fields, None if we did not sign this for the purpose or its time is over."""
        body, _, mark = signed.partition(".")
        if not body or not hmac.compare_digest(mark.encode(), self._mark(body).encode()):
            return None
        try:
            node = read_json(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
            until = datetime.fromtimestamp(node.number("until"), UTC)
            fits = node.text("purpose") == purpose
        except PayloadProblem:
            # An earlier version of ours signed another shape.
            return None
        return node if fits and self._clock.now() < until else None

    def _mark(self, body: str) -> str:
        return hmac.digest(self._key, body.encode(), "sha256").hex()


class Cookies:
    """Makes and reads our cookies. Each is signed with a key of the vault, and good for one purpose and time.

    `secure` is for an address of ours that is https: the cookie then never travels in clear.
    """

    def __init__(self, vault: Vault, clock: Clock, *, secure: bool) -> None:
        self._signatures = Signatures(vault, clock, b"lockstep cookies of the web pages, 1")
        self._secure = secure
        prefix = "__Host-" if secure else ""
        self._session, self._pending = f"{prefix}lockstep_session", f"{prefix}lockstep_sign_in"

    def user(self, request: Request) -> User | None:
        """Who is signed in, None if nobody is or it is too long ago."""
        node = self._signatures.read("session", request.cookies.get(self._session, ""))
        return User(node.text("login"), node.number("id")) if node is not None else None

    def keep_user(self, response: Response, user: User) -> None:
        """Sign the person in: only login and id are kept."""
        signed = self._signatures.sign("session", SESSION_LIFE, {"login": user.login, "id": user.id})
        self._set(response, self._session, signed, SESSION_LIFE)

    def drop_user(self, response: Response) -> None:
        """Sign the person out of this browser."""
        self._drop(response, self._session)

    def pending(self, request: Request) -> PendingSignIn | None:
        """The sign-in that this browser began, None if there is none or it took too long."""
        node = self._signatures.read("sign-in", request.cookies.get(self._pending, ""))
        if node is None:
            return None
        return PendingSignIn(node.text("state"), node.text("verifier"), own_path(node.text("path")))

    def keep_pending(self, response: Response, pending: PendingSignIn) -> None:
        """Remember in the browser what it has begun."""
        fields: dict[str, str | int] = {
            "state": pending.state,
            "verifier": pending.verifier,
            "path": pending.path,
        }
        self._set(
            response, self._pending, self._signatures.sign("sign-in", SIGN_IN_LIFE, fields), SIGN_IN_LIFE
        )

    def drop_pending(self, response: Response) -> None:
        """Forget it: a sign-in is completed once."""
        self._drop(response, self._pending)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _set(self, response: Response, name: str, value: str, life: timedelta) -> None:
        response.set_cookie(
            name,
            value,
            max_age=int(life.total_seconds()),
            path="/",
            secure=self._secure,
            httponly=True,
            samesite="lax",
        )

    def _drop(self, response: Response, name: str) -> None:
        response.delete_cookie(name, path="/", secure=self._secure, httponly=True, samesite="lax")
