"""Signed tokens by which a CI job or a cloud service says who it is (OpenID Connect)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from bot.domain.values import Json


class IdTokens(Protocol):
    """Verification of ID tokens against the keys that their issuer publishes."""

    async def verify(self, token: str, *, issuer: str, audience: str) -> Mapping[str, Json] | None:
        """The claims of a token that this issuer made for this audience and that holds now; None for any other.

        Raises TransientError if the issuer's keys cannot be read at present.
        """
