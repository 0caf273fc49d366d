"""What is let in, what is refused, and that nothing is lost between the request and its answer."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.web.api import Api
from bot.web.server import make_app
from bot.web.webhooks import GITHUB_CAP, REGISTRY_CAP, Webhooks

SECRET, OLD, RECEIVER, TOKEN = "new-secret", "old-secret", "receiver-secret", "api-token"
BODY = json.dumps({"zen": "Keep it logically awesome."}).encode()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[DatabaseStore]:
    opened = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", KeyFileVault(tmp_path / "vault.key"))
    yield opened
    opened.close()


@pytest.fixture
async def client(store: DatabaseStore) -> AsyncIterator[httpx.AsyncClient]:
    async with make_client(store) as opened:
        yield opened


def make_client(
    store: DatabaseStore, *, secrets: tuple[str, ...] = (SECRET, OLD), token: str = TOKEN
) -> httpx.AsyncClient:
    async def ready() -> str:
        return ""

    app = make_app(Webhooks(store, lambda: None, secrets, RECEIVER), Api(store, token), ready)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://bot.example")


def headers(
    body: bytes = BODY, *, secret: str = SECRET, delivery: str = "d-1", **changes: str
) -> dict[str, str]:
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {
        "X-Hub-Signature-256": f"sha256={signature}",
        "X-GitHub-Delivery": delivery,
        "X-GitHub-Event": "ping",
        "Content-Type": "application/json",
    } | {name.replace("_", "-"): value for name, value in changes.items()}


@pytest.mark.parametrize("secret", [SECRET, OLD], ids=["the new secret", "the old one during a rotation"])
async def test_a_signed_delivery_is_stored_before_the_answer(
    client: httpx.AsyncClient, store: DatabaseStore, secret: str
) -> None:
    answer = await client.post("/hooks/github", content=BODY, headers=headers(secret=secret))
    assert answer.status_code == 202
    (kept,) = await store.list_pending_deliveries()
    assert (kept.id, kept.source, kept.event, kept.body) == ("d-1", "github", "ping", BODY)


async def test_the_signature_of_githubs_documentation_is_right(store: DatabaseStore) -> None:
    signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    async with make_client(store, secrets=("It's a Secret to Everybody",)) as client:
        given = headers(b"Hello, World!") | {"X-Hub-Signature-256": signature}
        answer = await client.post("/hooks/github", content=b"Hello, World!", headers=given)
    assert answer.status_code == 202


@pytest.mark.parametrize(
    ("given", "status"),
    [
        pytest.param(headers(secret="guess"), 401, id="another secret"),
        pytest.param(headers() | {"X-Hub-Signature-256": ""}, 401, id="no signature"),
        pytest.param(headers() | {"X-Hub-Signature-256": "sha1=abc"}, 401, id="an old kind of signature"),
        pytest.param(
            headers() | {"X-Hub-Signature-256": "sha256=\u00e9"}, 401, id="a signature that is no hex"
        ),
        pytest.param(headers() | {"X-GitHub-Delivery": ""}, 400, id="no delivery id"),
        pytest.param(headers() | {"X-GitHub-Event": ""}, 400, id="no event"),
        pytest.param(headers() | {"Content-Type": "application/x-www-form-urlencoded"}, 415, id="a form"),
    ],
)
async def test_what_is_refused_is_not_stored(
    client: httpx.AsyncClient, store: DatabaseStore, given: dict[str, str], status: int
) -> None:
    encoded = [(name.encode(), value.encode()) for name, value in given.items()]
    answer = await client.post("/hooks/github", content=BODY, headers=encoded)
    assert answer.status_code == status
    assert answer.json()["message"]
    assert not await store.list_pending_deliveries()


async def test_a_body_that_was_changed_is_refused(client: httpx.AsyncClient) -> None:
    assert (await client.post("/hooks/github", content=BODY + b" ", headers=headers())).status_code == 401


async def test_a_body_over_the_cap_is_refused_unread(client: httpx.AsyncClient, store: DatabaseStore) -> None:
    declared = headers() | {"Content-Length": str(GITHUB_CAP + 1)}
    assert (await client.post("/hooks/github", content=b"", headers=declared)).status_code == 413

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * (1024 * 1024)

    given = {"Authorization": f"Bearer {RECEIVER}"}
    assert (await client.post("/hooks/distribution", content=endless(), headers=given)).status_code == 413
    assert not await store.list_pending_deliveries()


async def test_a_length_that_is_no_number_is_refused(client: httpx.AsyncClient) -> None:
    sent = [(b"content-length", b"\xb2"), (b"content-type", b"application/json")]
    answer = await client.post("/hooks/github", content=b"{}", headers=sent)
    assert answer.status_code == 413


async def test_the_same_delivery_twice_is_kept_once(client: httpx.AsyncClient, store: DatabaseStore) -> None:
    answers = await asyncio.gather(
        *(client.post("/hooks/github", content=BODY, headers=headers()) for _ in range(5))
    )
    assert {answer.status_code for answer in answers} == {202}
    assert len(await store.list_pending_deliveries()) == 1


async def test_without_a_secret_there_is_no_such_address(store: DatabaseStore) -> None:
    async with make_client(store, secrets=(), token="") as client:
        assert (await client.post("/hooks/github", content=BODY, headers=headers())).status_code == 404
        assert (await client.get("/api/events")).status_code == 404


async def test_a_registrys_notification_carries_its_header(
    client: httpx.AsyncClient, store: DatabaseStore
) -> None:
    events = b'{"events": []}'
    assert (await client.post("/hooks/distribution", content=events)).status_code == 401
    wrong = {"Authorization": "Bearer guess"}
    assert (await client.post("/hooks/distribution", content=events, headers=wrong)).status_code == 401
    right = {"Authorization": f"Bearer {RECEIVER}"}
    for _ in range(2):
        assert (await client.post("/hooks/distribution", content=events, headers=right)).status_code == 202
    assert [kept.source for kept in await store.list_pending_deliveries()] == ["distribution"]
    assert len(events) < REGISTRY_CAP


@pytest.mark.parametrize(
    ("given", "query", "status"),
    [
        ({}, "", 401),
        ({"Authorization": "Bearer guess"}, "", 401),
        ({"Authorization": f"Bearer {TOKEN}"}, "?after=x", 400),
        ({"Authorization": f"Bearer {TOKEN}"}, f"?after={'9' * 30}", 400),
        ({"Authorization": f"Bearer {TOKEN}"}, "?after=3", 200),
    ],
)
async def test_the_timeline_is_opened_by_its_token(
    client: httpx.AsyncClient, given: dict[str, str], query: str, status: int
) -> None:
    assert (await client.get(f"/api/events{query}", headers=given)).status_code == status


async def test_health_needs_nothing(client: httpx.AsyncClient) -> None:
    assert (await client.get("/healthz")).json()["status"] == "ok"
    assert (await client.get("/readyz")).status_code == 200
