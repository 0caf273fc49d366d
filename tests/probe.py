"""An address that a verification asks: a small web server whose answers the test chooses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Probe:
    """Answers every request with the present status and body; `{authorization}` in the body is what was sent."""

    status: int = 200
    body: str = '{"ok": true}'
    url: str = ""
    asked: list[str] = field(default_factory=list)

    def answer(self, status: int, body: Mapping[str, object] | str) -> None:
        self.status, self.body = status, body if isinstance(body, str) else json.dumps(body)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = head.split("\r\n")
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines[1:])
        }
        self.asked.append(lines[0])
        text = self.body.replace("{authorization}", headers.get("authorization", "")).encode()
        start = f"HTTP/1.1 {self.status} Chosen\r\nContent-Type: application/json\r\n"
        writer.write(f"{start}Content-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode() + text)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def open_probe() -> AsyncIterator[Probe]:
    """A probe on a free port of the loopback interface."""
    probe = Probe()
    server = await asyncio.start_server(probe.handle, "127.0.0.1", 0)
    probe.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield probe
