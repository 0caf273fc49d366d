"""Installation tokens: minted for one repository and one set of permissions, kept briefly, shared by all calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.domain.github import Repository
from bot.payloads.reading import Node

_REFRESH = timedelta(minutes=5)
"""A token with less left is replaced, so that the request (or a git fetch) that carries it can end."""

_INSTALLATION_KEPT = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Scope:
    """What one call may touch: a repository, an organisation or a known installation, and which permissions.

    `permissions` are pairs of GitHub's permission name and `read` or `write`.
    """

    permissions: tuple[tuple[str, str], ...]
    repository: Repository | None = None
    organisation: str = ""
    installation: int = 0


@dataclass(frozen=True, slots=True)
class _Token:
    text: str = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class _Installation:
    id: int
    known_until: datetime


class Tokens:
    """Finds installations and mints tokens; `app_call` sends a request signed as the App (method, path, body)."""

    def __init__(
        self,
        app_call: Callable[[str, str, object], Awaitable[Node]],
        path: Callable[..., str],
        now: Callable[[], datetime],
    ) -> None:
        self._app_call = app_call
        self._path = path
        self._now = now
        self._tokens: dict[tuple[int, str, tuple[tuple[str, str], ...]], _Token] = {}
        self._installations: dict[str, _Installation] = {}
        self._locks: dict[object, asyncio.Lock] = {}

    async def installation_of(self, scope: Scope) -> int:
        """The installation that covers a scope; raises NotFound if the App is not installed there."""
        if scope.installation:
            return scope.installation
        key = str(scope.repository) if scope.repository else scope.organisation
        async with self._locks.setdefault(key, asyncio.Lock()):
            known = self._installations.get(key)
            if known is None or known.known_until <= self._now():
                parts = (
                    ("repos", scope.repository.owner, scope.repository.name)
                    if scope.repository
                    else ("orgs", scope.organisation)
                )
                answer = await self._app_call("GET", self._path(*parts, "installation"), None)
                known = _Installation(answer.number("id"), self._now() + _INSTALLATION_KEPT)
                self._installations[key] = known
        return known.id

    async def token_for(self, scope: Scope) -> str:
        """A token for exactly this scope with more than five minutes left."""
        key = await self._key(scope)
        async with self._locks.setdefault(key, asyncio.Lock()):
            token = self._tokens.get(key)
            if token is None or token.expires_at - self._now() <= _REFRESH:
                token = await self._mint(key)
                self._forget_expired()
                self._tokens[key] = token
        return token.text

    async def drop(self, scope: Scope, token: str) -> None:
        """Forget a token that GitHub refused, unless another call has replaced it already."""
        key = await self._key(scope)
        kept = self._tokens.get(key)
        if kept is not None and kept.text == token:
            del self._tokens[key]

    def forget_installation(self, scope: Scope) -> None:
        """Ask anew where the App is installed: the repository may have moved to another account."""
        self._installations.pop(str(scope.repository) if scope.repository else scope.organisation, None)

    async def _key(self, scope: Scope) -> tuple[int, str, tuple[tuple[str, str], ...]]:
        installation = await self.installation_of(scope)
        name = scope.repository.name if scope.repository else ""
        return installation, name, tuple(sorted(scope.permissions))

    async def _mint(self, key: tuple[int, str, tuple[tuple[str, str], ...]]) -> _Token:
        installation, repository, permissions = key
        body: dict[str, object] = {"permissions": dict(permissions)}
        if repository:
            body["repositories"] = [repository]
        path = self._path("app", "installations", str(installation), "access_tokens")
        answer = await self._app_call("POST", path, body)
        return _Token(answer.text("token"), answer.time("expires_at"))

    def _forget_expired(self) -> None:
        now = self._now()
        for key in [key for key, token in self._tokens.items() if token.expires_at <= now]:
            del self._tokens[key]
            self._locks.pop(key, None)
