"""The intake of GitHub's webhooks and of registries' notifications: verify, store, answer. No work is done here."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from bot.ports import Delivery
from bot.ports.store import Deliveries

GITHUB_CAP = 25 * 1024 * 1024
"""Bytes of the largest event that GitHub delivers."""
REGISTRY_CAP = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Takes deliveries in. `nudge` wakes whoever works on them; two secrets hold during a rotation."""

    store: Deliveries
    nudge: Callable[[], None]
    secrets: Sequence[str] = field(repr=False)
    receiver_secret: str = field(default="", repr=False)

    async def github(self, request: Request) -> Response:
        """A webhook of GitHub: signed over its raw bytes, stored under its delivery id before the answer."""
        body = await read_body(request, GITHUB_CAP)
        if body is None:
            return _say(413, f"the body is larger than {GITHUB_CAP} bytes")
        if not self._is_signed(request.headers.get("x-hub-signature-256", ""), body):
            return _say(401, "the signature is wrong or missing; check the App's webhook secret")
        delivery, event = (
            request.headers.get("x-github-delivery", ""),
            request.headers.get("x-github-event", ""),
        )
        if not delivery or not event or len(delivery) > 200 or len(event) > 100:
            return _say(400, "X-GitHub-Delivery or X-GitHub-Event is missing")
        if not request.headers.get("content-type", "").startswith("application/json"):
            return _say(415, "set the App's webhook content type to application/json")
        return await self._keep(Delivery(delivery, "github", event, body, datetime.now(UTC)))

    async def distribution(self, request: Request) -> Response:
        """A notification of a Docker Distribution registry: authenticated by a static header of its configuration."""
        body = await read_body(request, REGISTRY_CAP)
        if body is None:
            return _say(413, f"the body is larger than {REGISTRY_CAP} bytes")
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not self.receiver_secret or not hmac.compare_digest(given.encode(), self.receiver_secret.encode()):
            return _say(401, "the Authorization header is wrong or missing")
        # A registry repeats a whole batch until it is taken, so the body itself names the delivery.
        name = f"distribution:{hashlib.sha256(body).hexdigest()}"
        return await self._keep(Delivery(name, "distribution", "", body, datetime.now(UTC)))

    async def _keep(self, delivery: Delivery) -> Response:
        fresh = await self.store.store_delivery(delivery)
        if fresh:
            self.nudge()
        return _say(202, "stored" if fresh else "known already")

    def _is_signed(self, header: str, body: bytes) -> bool:
        wanted = [f"sha256={hmac.new(s.encode(), body, hashlib.sha256).hexdigest()}" for s in self.secrets]
        return any(hmac.compare_digest(header.encode(), signature.encode()) for signature in wanted)


async def read_body(request: Request, cap: int) -> bytes | None:
    """The raw body, None if it is larger than the cap (it is not read to its end then)."""
    declared = request.headers.get("content-length", "0")
    # A superscript digit is a digit too, and no number.
    if not declared.isdecimal() or int(declared) > cap:
        return None
    chunks: list[bytes] = []
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > cap:
                return None
            chunks.append(chunk)
    except ClientDisconnect:
        return None
    return b"".join(chunks)


def _say(status: int, message: str) -> Response:
    return JSONResponse({"message": message}, status_code=status)
