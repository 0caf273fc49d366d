"""Notifications have Distribution's shape and reach an endpoint at least once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.sandbox.registry import Endpoint, Registry
from bot.sandbox.serving import Listener

CREATED = datetime(2026, 1, 5, tzinfo=UTC)


class Receiver:
    """A webhook receiver that answers what it is told to and keeps what it accepted."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.seen: list[Request] = []
        self.accepted: list[dict[str, Any]] = []
        self.asgi = Starlette(routes=[Route("/hook", self._receive, methods=["POST"])])

    async def _receive(self, request: Request) -> Response:
        body = await request.json()
        self.seen.append(request)
        status = self.answers.pop(0) if self.answers else 202
        if status < 300:
            self.accepted += body["events"]
        return Response(status_code=status)


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
async def hook(receiver: Receiver) -> AsyncIterator[str]:
    listener = Listener()
    await listener.start(receiver.asgi)
    yield f"{listener.url}/hook"
    await listener.stop()


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[Registry]:
    opened = Registry(tmp_path / "registry", host="registry.example", longest_pause=0.02)
    await opened.start()
    yield opened
    await opened.stop()


async def drain(registry: Registry) -> None:
    async with asyncio.timeout(10):
        await registry.drain()


async def test_a_push_is_several_events_and_the_tag_is_in_the_last(
    registry: Registry, receiver: Receiver, hook: str
) -> None:
    await registry.notify(Endpoint(hook, {"Authorization": "Bearer hooksecret"}))
    published = registry.publish("acme/app", "1.2.0", platforms=("linux/amd64", "linux/arm64"))
    await drain(registry)
    kinds = [event["target"]["mediaType"].rpartition(".")[2] for event in receiver.accepted]
    assert len([kind for kind in kinds if "octet-stream" in kind]) == 4
    *_, first, second, last = receiver.accepted
    assert all("tag" not in event["target"] for event in (first, second))
    assert last["target"] == last["target"] | {
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "digest": published.digest,
        "repository": "acme/app",
        "tag": "1.2.0",
        "url": f"http://registry.example/v2/acme/app/manifests/{published.digest}",
    }
    assert last["target"]["size"] == last["target"]["length"]
    assert (last["action"], last["request"]["host"], last["request"]["method"]) == (
        "push",
        "registry.example",
        "PUT",
    )
    assert len({event["id"] for event in receiver.accepted}) == len(receiver.accepted)
    headers = receiver.seen[0].headers
    assert headers["content-type"] == "application/vnd.docker.distribution.events.v1+json"
    assert headers["authorization"] == "Bearer hooksecret"


async def test_an_event_is_repeated_until_it_is_accepted_and_the_order_is_kept(
    registry: Registry, receiver: Receiver, hook: str
) -> None:
    receiver.answers = [500, 404, 302]
    await registry.notify(Endpoint(hook, ignore_media_types=("application/octet-stream",)))
    registry.publish("app", "1.0.0")
    registry.publish("app", "1.1.0")
    await drain(registry)
    assert [delivery.status for delivery in registry.deliveries] == [500, 404, 302, 202, 202]
    assert [event["target"]["tag"] for event in receiver.accepted] == ["1.0.0", "1.1.0"]


async def test_an_endpoint_that_nobody_serves_gets_its_events_later(
    registry: Registry, receiver: Receiver
) -> None:
    listener = Listener()
    port = listener.port
    await listener.stop()
    await registry.notify(Endpoint(f"http://127.0.0.1:{port}/hook"))
    registry.publish("app", "1.0.0")
    async with asyncio.timeout(10):
        while not registry.deliveries:
            await asyncio.sleep(0.01)
    assert registry.deliveries[0].status == 0
    listener = Listener(port)
    await listener.start(receiver.asgi)
    await drain(registry)
    await listener.stop()
    assert [event["target"].get("tag") for event in receiver.accepted] == [None, None, "1.0.0"]


async def test_pulls_are_events_too_unless_ignored(registry: Registry, receiver: Receiver, hook: str) -> None:
    registry.publish("app", "1.0.0")
    await registry.notify(Endpoint(hook, ignore_actions=()))
    transport = httpx.ASGITransport(app=registry.asgi)
    async with httpx.AsyncClient(transport=transport, base_url="http://registry.example") as client:
        accept = {"Accept": "application/vnd.oci.image.manifest.v1+json"}
        await client.head("/v2/app/manifests/1.0.0", headers=accept)
        await drain(registry)
        assert [(event["action"], event["target"]["tag"]) for event in receiver.accepted] == [
            ("pull", "1.0.0")
        ]
        await registry.notify(Endpoint(hook))
        await client.head("/v2/app/manifests/1.0.0", headers=accept)
        await client.delete("/v2/app/manifests/1.0.0")
        await drain(registry)
    assert [event["action"] for event in receiver.accepted] == ["pull", "delete"]
    assert receiver.accepted[-1]["target"] == {"repository": "app", "tag": "1.0.0"}


async def test_a_manifest_that_is_deleted_takes_its_tags_along(
    registry: Registry, receiver: Receiver, hook: str
) -> None:
    published = registry.publish("app", "latest", created=CREATED)
    again = registry.publish("app", "1.0.0", created=CREATED)
    await registry.notify(Endpoint(hook))
    transport = httpx.ASGITransport(app=registry.asgi)
    async with httpx.AsyncClient(transport=transport, base_url="http://registry.example") as client:
        for digest in {published.digest, again.digest}:
            await client.delete(f"/v2/app/manifests/{digest}")
    await drain(registry)
    assert [event["action"] for event in receiver.accepted] == ["delete"] * 4
    targets = [event["target"] for event in receiver.accepted]
    assert {"repository": "app", "digest": published.digest} in targets
    assert {target["tag"] for target in targets if "tag" in target} == {"1.0.0", "latest"}


async def test_endpoints_are_kept_over_a_restart(registry: Registry, tmp_path: Path) -> None:
    endpoint = Endpoint("http://127.0.0.1:1/hook", {"X-Secret": "s"}, ignore_media_types=("a/b",))
    await registry.notify(endpoint)
    assert Registry(tmp_path / "registry", host="registry.example").endpoints == (endpoint,)
