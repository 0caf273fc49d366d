"""The intake of webhook receivers: Kargo's vendors at Kargo's addresses, and ours beside them.

As with GitHub's own webhook: find the receiver, verify over the raw bytes, store, answer. Whatever an authenticated
sender sends is answered 202, also what turns out to be of no interest, since several senders repeat or give up after
another answer. Kargo answers 400 or 501 to some of these; here the note on the stored delivery says the same.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from bot.domain.patterns import compile_name_pattern
from bot.domain.receiving import SECRET_KEYS
from bot.domain.values import Json
from bot.payloads.generic import write_envelope
from bot.ports import Clock, Delivery, TransientError
from bot.ports.id_tokens import IdTokens
from bot.ports.store import NewDeliveries
from bot.web.signatures import DELIVERY_HEADERS, EVENT_HEADERS, PROOFS
from bot.web.webhooks import read_body
from bot.workflow.receivers import OpenReceiver, ReceiverBook

log = logging.getLogger(__name__)

CAP = 2 * 1024 * 1024
"""Bytes of the largest body, as in Kargo."""
GITHUB_ISSUER = "https://token.actions.githubusercontent.com"
GOOGLE_ISSUER = "https://accounts.google.com"


@dataclass(frozen=True, slots=True)
class Receivers:
    """Takes deliveries of receivers in. `nudge` wakes whoever works on them."""

    store: NewDeliveries
    nudge: Callable[[], None]
    book: ReceiverBook
    tokens: IdTokens
    clock: Clock

    def routes(self) -> list[BaseRoute]:
        """One address for each kind."""
        return [
            Route(f"/{vendor}/{{digest:str}}", self.take, methods=["POST"]) for vendor in sorted(SECRET_KEYS)
        ]

    async def take(self, request: Request) -> Response:
        """One delivery: 202 if it is authentic, 401 if not, 404 where there is no receiver, 413 if it is too large."""
        opened = self.book.find(request.scope["path"].removeprefix(request.scope.get("root_path", "")))
        if opened is None:
            return _say(404, "there is no such receiver")
        body = await read_body(request, CAP)
        if body is None:
            return _say(413, f"the body is larger than {CAP} bytes")
        try:
            authentic = await self._is_authentic(opened, request.headers, body)
        except TransientError as error:
            log.warning(
                "a token could not be verified", extra={"receiver": opened.name, "reason": str(error)}
            )
            return _say(503, "the token cannot be verified at present; try again later")
        if not authentic:
            return _say(401, "the signature, secret or token is wrong or missing")
        fresh = await self.store.store_delivery(self._delivery(opened, request, body))
        if fresh:
            self.nudge()
        return _say(202, "stored" if fresh else "known already")

    async def _is_authentic(self, opened: OpenReceiver, headers: Mapping[str, str], body: bytes) -> bool:
        match opened.receiver.vendor:
            case "gar":
                return await self._is_google(opened, headers)
            case "ci" if "x-signature" not in headers:
                return await self._is_job(opened, headers)
            case vendor:
                # Without a secret everybody could sign.
                return bool(opened.secret) and PROOFS[vendor](headers, body, opened.secret)

    async def _is_google(self, opened: OpenReceiver, headers: Mapping[str, str]) -> bool:
        """A Pub/Sub push: for our audience, and by the service account of the subscription."""
        config = opened.receiver.config
        claims = await self._claims(headers, GOOGLE_ISSUER, config.get("audience"))
        if claims is None or claims.get("email_verified") is not True:
            return False
        return claims.get("email") == config.get("serviceAccount")

    async def _is_job(self, opened: OpenReceiver, headers: Mapping[str, str]) -> bool:
        """A CI job: for our audience, with the claims that the receiver asks for, and not of a pull request."""
        config = opened.receiver.config.get("oidc")
        if not isinstance(config, dict):
            return False
        issuer, wanted = config.get("issuer") or GITHUB_ISSUER, config.get("claims")
        if not isinstance(issuer, str) or not isinstance(wanted, dict) or not wanted:
            return False
        claims = await self._claims(headers, issuer, config.get("audience"))
        # Anybody can open a pull request, and its code can ask for a token of the repository.
        if claims is None or str(claims.get("event_name", "")).startswith("pull_request"):
            return False
        return all(_is_claimed(claims.get(name), pattern) for name, pattern in wanted.items())

    async def _claims(
        self, headers: Mapping[str, str], issuer: str, audience: Json
    ) -> Mapping[str, Json] | None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token or not isinstance(audience, str) or not audience:
            return None
        return await self.tokens.verify(token.strip(), issuer=issuer, audience=audience)

    def _delivery(self, opened: OpenReceiver, request: Request, body: bytes) -> Delivery:
        vendor, now = opened.receiver.vendor, self.clock.now()
        header = EVENT_HEADERS.get(vendor)
        event = request.headers.get(header, "")[:100] if header is not None else ""
        known = next(
            (value for name in DELIVERY_HEADERS.get(vendor, ()) if (value := request.headers.get(name))), ""
        )
        # Without an id of the sender's a repetition is known by its body. The same body a minute later is another
        # push, though: that of a tag that is moved again and again has nothing in it that would differ.
        mark = known or f"{now:%Y-%m-%dT%H:%M}"
        digest = hashlib.sha256(b"\0".join((opened.name.encode(), mark.encode(), body))).hexdigest()
        if vendor == "generic":
            # The address without its digest, which opens the receiver.
            address = f"/{vendor}/{opened.receiver.name}"
            url = f"{address}?{request.url.query}" if request.url.query else address
            body = write_envelope(request.method, url, request.headers.items(), body)
        return Delivery(f"{vendor}:{digest}", vendor, event, body, now, receiver=opened.name)


def _is_claimed(value: Json, pattern: Json) -> bool:
    return isinstance(value, str) and isinstance(pattern, str) and compile_name_pattern(pattern)(value)


def _say(status: int, message: str) -> Response:
    return JSONResponse({"message": message}, status_code=status)
