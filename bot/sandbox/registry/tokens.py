"""Bearer tokens of the registry: challenge, token endpoint and what a token allows (the Distribution token scheme)."""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import jwt
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.sandbox.registry.errors import Code, RegistryError

SERVICE: Final = "sandbox-registry"
_ISSUER: Final = "sandbox"
_SECONDS: Final = 300


@dataclass(frozen=True, slots=True)
class Access:
    """Who may do what: accounts with passwords may pull and push, everybody may pull if `anonymous_pull`.

    Without accounts the registry asks for no token at all.
    """

    accounts: Mapping[str, str]
    anonymous_pull: bool


class Tokens:
    """Issues and checks tokens; the key lives as long as the process, so a restart makes clients ask again."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._key = secrets.token_hex(32)

    def check(self, request: Request, repository: str, action: str) -> str:
        """Who sent a request, empty for nobody known; UNAUTHORIZED unless they may do `action` there.

        An empty repository asks only for a valid token. `action` is `pull`, `push`, `delete` or, for the catalog, `*`.
        """
        if not self._access.accounts:
            return ""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            try:
                claims = jwt.decode(token, self._key, algorithms=["HS256"], audience=SERVICE, issuer=_ISSUER)
            except jwt.InvalidTokenError:
                claims = {}
            # Clients that want to delete ask for `*`.
            if claims and (not repository or {action, "*"} & set(claims["access"].get(repository, ()))):
                return str(claims["sub"])
        raise RegistryError(Code.UNAUTHORIZED, "authentication required", name=repository, action=action)

    def challenge(self, request: Request, repository: str, action: str) -> str:
        """The `WWW-Authenticate` header that tells a client where to get the missing token."""
        base = f"{request.url.scheme}://{request.headers.get('host', 'localhost')}"
        text = f'Bearer realm="{base}/token",service="{SERVICE}"'
        if not repository:
            return text
        kind = "registry" if repository == "catalog" and action == "*" else "repository"
        actions = "pull,push" if action == "push" else action
        return f'{text},scope="{kind}:{repository}:{actions}"'

    async def endpoint(self, request: Request) -> Response:
        """`GET /token?service=&scope=`: a token for as much of the scopes as the caller may have."""
        account = self._account(request)
        access: dict[str, list[str]] = {}
        for scope in " ".join(request.query_params.getlist("scope")).split():
            kind, _, rest = scope.partition(":")
            name, _, actions = rest.rpartition(":")
            if kind in ("repository", "registry") and name:
                access[name] = [action for action in actions.split(",") if self._may(account, action)]
        now = int(time.time())
        claims = {
            "iss": _ISSUER,
            "aud": SERVICE,
            "sub": account,
            "iat": now,
            "exp": now + _SECONDS,
            "access": access,
        }
        token = jwt.encode(claims, self._key, algorithm="HS256")
        issued = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return JSONResponse(
            {"token": token, "access_token": token, "expires_in": _SECONDS, "issued_at": issued}
        )

    def _may(self, account: str, action: str) -> bool:
        return bool(account) or (action == "pull" and self._access.anonymous_pull)

    def _account(self, request: Request) -> str:
        kind, _, encoded = request.headers.get("authorization", "").partition(" ")
        if not kind:
            return ""
        try:
            name, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            name = password = ""
        wanted = self._access.accounts.get(name)
        if (
            kind.lower() != "basic"
            or wanted is None
            or not hmac.compare_digest(wanted.encode(), password.encode())
        ):
            raise RegistryError(Code.UNAUTHORIZED, "authentication required", account=name)
        return name
