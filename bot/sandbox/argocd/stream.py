"""The watch of Applications: one JSON object per line, or server-sent events for clients that ask for them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable

from starlette.responses import Response, StreamingResponse

from bot.sandbox.argocd.store import Store, Tracked


def stream_applications(
    store: Store, shows: Callable[[Tracked], bool], *, server_sent_events: bool
) -> Response:
    """First every Application as ADDED, then each change, until the client goes."""

    async def events() -> AsyncIterator[str]:
        with store.watch() as queue:
            for tracked in store.all():
                if shows(tracked):
                    yield _line(
                        {"type": "ADDED", "application": tracked.app}, server_sent_events=server_sent_events
                    )
            while True:
                event = await queue.get()
                if shows(Tracked(event["application"])):
                    yield _line(event, server_sent_events=server_sent_events)

    kind = "text/event-stream" if server_sent_events else "application/json"
    return StreamingResponse(events(), media_type=kind)


def _line(event: object, *, server_sent_events: bool) -> str:
    text = json.dumps({"result": event})
    return f"data: {text}\n\n" if server_sent_events else f"{text}\n"
