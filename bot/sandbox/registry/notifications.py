"""Notifications in Distribution's format: at least once, in order, retried until the endpoint answers 2xx."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx

from bot.sandbox.files import write_whole

CONTENT_TYPE: Final = "application/vnd.docker.distribution.events.v1+json"
_INSTANCE: Final = str(uuid.uuid4())
_FIRST_PAUSE: Final = 0.1
_TIMEOUT: Final = 5.0
_KEPT: Final = 1000


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where notifications go: a URL, the static headers that authenticate them, and what is not sent."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    ignore_actions: tuple[str, ...] = ("pull",)
    ignore_media_types: tuple[str, ...] = ()

    def wants(self, event: Mapping[str, Any]) -> bool:
        """Whether an event is sent to it."""
        media_type = event["target"].get("mediaType", "")
        return event["action"] not in self.ignore_actions and media_type not in self.ignore_media_types


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt to deliver an event; status 0 means that nobody answered."""

    event: str
    url: str
    status: int


@dataclass(frozen=True, slots=True)
class Origin:
    """The request that caused an event."""

    host: str = ""
    address: str = "127.0.0.1"
    method: str = "PUT"
    user_agent: str = "sandbox"
    actor: str = ""


def describe_event(action: str, target: Mapping[str, Any], origin: Origin) -> dict[str, Any]:
    """An event as Distribution writes it."""
    return {
        "id": str(uuid.uuid4()),
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "action": action,
        "target": dict(target),
        "request": {
            "id": str(uuid.uuid4()),
            "addr": origin.address,
            "host": origin.host,
            "method": origin.method,
            "useragent": origin.user_agent,
        },
        "actor": {"name": origin.actor} if origin.actor else {},
        "source": {"addr": origin.host, "instanceID": _INSTANCE},
    }


@dataclass(slots=True)
class _Line:
    """An endpoint with what waits for it and, while the registry runs, the task that delivers."""

    endpoint: Endpoint
    queue: asyncio.Queue[dict[str, Any]] = field(default_factory=asyncio.Queue)
    worker: asyncio.Task[None] | None = None


class Notifier:
    """A queue per endpoint, in memory as in Distribution: what was not delivered is lost when the process ends."""

    def __init__(self, directory: Path, *, longest_pause: float) -> None:
        self._file = directory / "endpoints.json"
        self._longest_pause = longest_pause
        self._lines = [_Line(endpoint) for endpoint in self._read()]
        self._client: httpx.AsyncClient | None = None
        self.deliveries: deque[Delivery] = deque(maxlen=_KEPT)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The configured endpoints."""
        return tuple(line.endpoint for line in self._lines)

    async def configure(self, endpoints: tuple[Endpoint, ...]) -> None:
        """Send to these endpoints from now on; one that stays as it is keeps what it has not received yet."""
        kept = [line for line in self._lines if line.endpoint in endpoints]
        await _stop([line for line in self._lines if line.endpoint not in endpoints])
        known = [line.endpoint for line in kept]
        self._lines = kept + [_Line(endpoint) for endpoint in endpoints if endpoint not in known]
        body = json.dumps([asdict(endpoint) for endpoint in endpoints])
        write_whole(self._file, body.encode(), private=True)
        if self._client is not None:
            self._spawn(self._client)

    def emit(self, event: dict[str, Any]) -> None:
        """Queue an event for every endpoint that wants it."""
        for line in self._lines:
            if line.endpoint.wants(event):
                line.queue.put_nowait(event)

    def start(self) -> None:
        """Begin to deliver; what was queued before is delivered too."""
        self._client = httpx.AsyncClient(timeout=_TIMEOUT, trust_env=False)
        self._spawn(self._client)

    async def stop(self) -> None:
        """Stop delivering; a second call does nothing."""
        await _stop(self._lines)
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def drain(self) -> None:
        """Return when every event so far was accepted by its endpoint."""
        for line in self._lines:
            await line.queue.join()

    def _spawn(self, client: httpx.AsyncClient) -> None:
        for line in self._lines:
            if line.worker is None:
                line.worker = asyncio.create_task(self._deliver_all(client, line))

    async def _deliver_all(self, client: httpx.AsyncClient, line: _Line) -> None:
        while True:
            event = await line.queue.get()
            for pause in _pauses(self._longest_pause):
                status = await self._deliver(client, line.endpoint, event)
                self.deliveries.append(Delivery(event["id"], line.endpoint.url, status))
                if 200 <= status < 300:
                    break
                await asyncio.sleep(pause)
            line.queue.task_done()

    async def _deliver(self, client: httpx.AsyncClient, endpoint: Endpoint, event: dict[str, Any]) -> int:
        headers = {"Content-Type": CONTENT_TYPE, **endpoint.headers}
        try:
            answer = await client.post(endpoint.url, content=json.dumps({"events": [event]}), headers=headers)
        except httpx.TransportError:
            return 0
        return answer.status_code

    def _read(self) -> list[Endpoint]:
        if not self._file.exists():
            return []
        return [
            Endpoint(
                url=item["url"],
                headers=item["headers"],
                ignore_actions=tuple(item["ignore_actions"]),
                ignore_media_types=tuple(item["ignore_media_types"]),
            )
            for item in json.loads(self._file.read_text())
        ]


def _pauses(longest: float) -> Iterator[float]:
    pause = _FIRST_PAUSE
    while True:
        yield min(pause, longest)
        pause *= 2


async def _stop(lines: list[_Line]) -> None:
    workers = [line.worker for line in lines if line.worker is not None]
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    for line in lines:
        line.worker = None
