"""The port `IdTokens`: ID tokens verified with the keys that OpenID Connect Discovery leads to.

Keys come from the issuer that the configuration names; nothing that stands in a token is ever asked. They are kept for
an hour; a key that is not known yet has them read again, at most once a minute, so that invented keys cost nobody
anything. After a failure nobody is asked for ten seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import jwt

from bot.domain.values import Json
from bot.payloads.reading import PayloadProblem, read_json
from bot.ports import Clock, Http, HttpRequest, TerminalError, TransientError

_ALGORITHMS = ("RS256", "ES256")
_KEPT = timedelta(hours=1)
_AGAIN = timedelta(minutes=1)
_REST = timedelta(seconds=10)
_LEEWAY = 60
"""Seconds by which clocks may differ."""
_LARGEST_TOKEN = 16 * 1024


@dataclass(frozen=True, slots=True)
class _Keys:
    read_at: datetime
    by_id: Mapping[str, jwt.PyJWK]


class PublishedKeys:
    """Verifies tokens; `http` reads the issuers' documents."""

    def __init__(self, http: Http, clock: Clock) -> None:
        self._http = http
        self._clock = clock
        self._keys: dict[str, _Keys] = {}
        self._failed: dict[str, tuple[datetime, TransientError]] = {}
        self._reading = asyncio.Lock()

    async def verify(self, token: str, *, issuer: str, audience: str) -> Mapping[str, Json] | None:
        """The claims of a token that holds; None for one that does not. Raises TransientError."""
        if len(token) > _LARGEST_TOKEN:
            return None
        try:
            header = jwt.get_unverified_header(token)
        except jwt.InvalidTokenError:
            return None
        algorithm, name = header.get("alg"), header.get("kid")
        if algorithm not in _ALGORITHMS or not isinstance(name, str):
            return None
        key = await self._find_key(issuer, name)
        # The algorithm is the key's, so that no token chooses how it is verified.
        if key is None or key.algorithm_name != algorithm:
            return None
        return _decode(token, key, issuer, audience)

    async def _find_key(self, issuer: str, name: str) -> jwt.PyJWK | None:
        async with self._reading:
            known, now = self._keys.get(issuer), self._clock.now()
            age = now - known.read_at if known is not None else None
            if known is None or age is None or age > _KEPT or (name not in known.by_id and age > _AGAIN):
                known = _Keys(now, await self._try_to_read(issuer, now))
                self._keys[issuer] = known
            return known.by_id.get(name)

    async def _try_to_read(self, issuer: str, now: datetime) -> dict[str, jwt.PyJWK]:
        failed = self._failed.get(issuer)
        if failed is not None and now - failed[0] < _REST:
            raise TransientError(str(failed[1]))
        try:
            return await self._read_keys(issuer)
        except TransientError as error:
            self._failed[issuer] = (now, error)
            raise

    async def _read_keys(self, issuer: str) -> dict[str, jwt.PyJWK]:
        try:
            discovered = await self._get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
            address = read_json(discovered).text("jwks_uri")
            listed = read_json(await self._get(address))
            keys: dict[str, jwt.PyJWK] = {}
            for item in listed.items("keys"):
                if isinstance(item.value, dict) and item.text("use", default="sig") == "sig":
                    keys.update(_read_key(item.value))
        except (PayloadProblem, TerminalError) as error:
            raise TransientError(f"the keys of {issuer} cannot be read: {error}") from error
        return keys

    async def _get(self, address: str) -> bytes:
        if not address.startswith("https://") and not address.startswith("http://127.0.0.1:"):
            raise TerminalError(f"{address[:200]!r} is not read: keys must come by https")
        response = await self._http.send(HttpRequest("GET", address))
        if response.status != 200:
            raise TransientError(f"GET {address} was answered {response.status}")
        return response.body


def _read_key(given: dict[str, object]) -> dict[str, jwt.PyJWK]:
    """A key by its name; one of a kind that we do not verify is left out."""
    try:
        key = jwt.PyJWK(given)
    except (jwt.InvalidKeyError, jwt.PyJWKError):
        return {}
    return {key.key_id: key} if isinstance(key.key_id, str) and key.algorithm_name in _ALGORITHMS else {}


def _decode(token: str, key: jwt.PyJWK, issuer: str, audience: str) -> Mapping[str, Json] | None:
    try:
        claims: dict[str, Json] = jwt.decode(
            token,
            key,
            algorithms=list(_ALGORITHMS),
            audience=audience,
            leeway=_LEEWAY,
            options={"require": ["exp", "iat", "iss", "aud"]},
        )
    except jwt.InvalidTokenError:
        return None
    # Google writes its issuer with and without the scheme.
    issued_by = claims.get("iss")
    return claims if issued_by in (issuer, issuer.removeprefix("https://")) else None
