"""What `send-message` needs of the world: channels, a server that speaks as Slack does, a mail server, a timeline."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.domain.values import Json
from bot.ports import Event
from bot.steps.send_message import SendMessage

CHANNELS = """
apiVersion: kargo.akuity.io/v1alpha1
kind: Project
metadata: {name: acme}
---
apiVersion: ee.kargo.akuity.io/v1alpha1
kind: MessageChannel
metadata: {name: slack, namespace: acme}
spec: {secretRef: {name: token}, slack: {channelID: C1}}
---
apiVersion: ee.kargo.akuity.io/v1alpha1
kind: ClusterMessageChannel
metadata: {name: everywhere}
spec: {secretRef: {name: shared}, slack: {channelID: C2}}
---
apiVersion: ee.kargo.akuity.io/v1alpha1
kind: MessageChannel
metadata: {name: mail, namespace: acme}
spec: {smtp: {host: 127.0.0.1, port: PORT, from: bot@example.com, to: [ops@example.com], security: none}}
---
apiVersion: ee.kargo.akuity.io/v1alpha1
kind: MessageChannel
metadata: {name: web, namespace: acme}
spec: {http: {url: "https://hooks.example"}}
---
apiVersion: ee.kargo.akuity.io/v1alpha1
kind: MessageChannel
metadata: {name: tokenless, namespace: acme}
spec: {secretRef: {name: empty}, slack: {channelID: C1}}
---
apiVersion: ee.kargo.akuity.io/v1alpha1
kind: MessageChannel
metadata: {name: secretless, namespace: acme}
spec: {secretRef: {name: gone}, slack: {channelID: C1}}
"""


class Secrets:
    """The Secrets that the channels name."""

    def secret(self, project: str, name: str) -> Mapping[str, str] | None:
        known = {
            ("acme", "token"): {"apiKey": "xoxb-1"},
            ("acme", "empty"): {},
            ("kargo-cluster-secrets", "shared"): {"apiKey": "xoxb-2"},
        }
        return known.get((project, name))

    def config_map(self, project: str, name: str) -> Mapping[str, str] | None:
        return None


@dataclass
class Timeline:
    """Events in memory."""

    events: list[Event] = field(default_factory=list)

    async def add_event(self, event: Event) -> None:
        self.events.append(event)

    async def list_events(
        self, *, project: str = "", promotion: str = "", after: int = 0, limit: int = 200
    ) -> list[Event]:
        return list(self.events)


@dataclass
class Slack:
    """What Slack got, and what it answers."""

    url: str = ""
    got: list[tuple[str, dict[str, Json]]] = field(default_factory=list)
    answer: Response | None = None

    async def post(self, request: Request) -> Response:
        self.got.append((request.headers["authorization"], json.loads(await request.body())))
        return self.answer or JSONResponse({"ok": True, "ts": f"170000000{len(self.got)}.000100"})


@dataclass
class MailServer:
    """A mail server that says `replies` to a command (its first four letters) instead of yes; empty hangs up."""

    port: int = 0
    got: list[bytes] = field(default_factory=list)
    replies: dict[str, str] = field(default_factory=dict)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 here\r\n")
        while line := await reader.readline():
            command = line[:4].decode().strip().upper()
            reply = self.replies.get(command, "354 go on" if command == "DATA" else "250 yes")
            if reply:
                writer.write(f"{reply}\r\n".encode())
            if command == "DATA" and reply.startswith("354"):
                self.got.append(await reader.readuntil(b"\r\n.\r\n"))
                after = self.replies.get("END", "250 taken")
                if not after:
                    break
                writer.write(f"{after}\r\n".encode())
        writer.close()


@asynccontextmanager
async def serve_mail() -> AsyncIterator[MailServer]:
    made = MailServer()
    server = await asyncio.start_server(made.talk, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    async with server:
        yield made


@dataclass
class World:
    """The servers, the timeline and the step on them."""

    slack: Slack
    mail: MailServer
    timeline: Timeline
    step: SendMessage
