"""Terraform's http state backend for the tests: one state per path, with locks, and faults on demand."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from bot.sandbox.serving import Listener


@dataclass
class StateServer:
    """States by path; `refuse_writes` makes every write fail, `asked` has method and path of each request."""

    url: str = ""
    states: dict[str, bytes] = field(default_factory=dict)
    locks: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    refuse_writes: bool = False

    def backend(self, name: str) -> str:
        """The block that makes a configuration use the state `name`."""
        address = f"{self.url}/{name}"
        return (
            f'terraform {{\n  backend "http" {{\n    address = "{address}"\n    lock_address = "{address}"\n'
            f'    unlock_address = "{address}"\n    retry_max = 0\n  }}\n}}\n'
        )

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self.asked.append(f"{scope['method']} {scope['path']}")
        status, answer = self._answer(scope["method"], scope["path"].strip("/"), body)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": answer})

    def _answer(self, method: str, name: str, body: bytes) -> tuple[int, bytes]:
        match method:
            case "GET":
                return (200, self.states[name]) if name in self.states else (404, b"")
            case "POST":
                if self.refuse_writes:
                    return 500, b"disk full"
                self.states[name] = body
                return 200, b""
            case "LOCK":
                if name in self.locks:
                    return 423, json.dumps(self.locks[name]).encode()
                self.locks[name] = json.loads(body)
                return 200, b""
            case "UNLOCK":
                self.locks.pop(name, None)
                return 200, b""
            case _:
                return 405, b""


@contextlib.asynccontextmanager
async def serve_states() -> AsyncIterator[StateServer]:
    """A running server on a free loopback port."""
    server = StateServer()
    listener = Listener()
    server.url = listener.url
    await listener.start(server)
    try:
        yield server
    finally:
        await listener.stop()
