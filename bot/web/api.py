"""Read-only answers for programs: the timeline. Opened by a token that the operator sets."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.ports.store import PromotionStore

_MOST = 500


@dataclass(frozen=True, slots=True)
class Api:
    """What a program may read of the bot."""

    store: PromotionStore
    token: str = field(repr=False)

    async def events(self, request: Request) -> Response:
        """The timeline, oldest first; `after` is the number of the last event that is known already."""
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not self.token or not hmac.compare_digest(given.encode(), self.token.encode()):
            return JSONResponse({"message": "the token is wrong or missing"}, status_code=401)
        after = request.query_params.get("after", "0")
        if not after.isdecimal() or len(after) > 18:
            return JSONResponse({"message": "after must be a whole number"}, status_code=400)
        found = await self.store.list_events(after=int(after), limit=_MOST)
        shown = [
            {
                "number": event.number,
                "at": event.at.isoformat(),
                "project": event.project,
                "stage": event.stage,
                "promotion": event.promotion,
                "kind": event.kind,
                "message": event.message,
            }
            for event in reversed(found)
        ]
        return JSONResponse({"events": shown})
