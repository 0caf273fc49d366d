"""A signed-in adapter whose HTTP answers each test writes down itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import pytest
import respx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.adapters.github import GitHubApp, GitHubSettings
from bot.domain.github import Repository

API = "https://ghe.example/api/v3"
REPOSITORY = Repository("acme", "ops")
APP_ID = 77
BOT = {"login": "lockstep[bot]", "id": 4242, "type": "Bot"}
HEAD = "1" * 40


class FixedClock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.at = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


@pytest.fixture(scope="session")
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def wire() -> Iterator[respx.Router]:
    """GitHub Enterprise Server at ghe.example: installation, tokens and the App itself answer, the rest is a test's."""
    with respx.mock(base_url=API, assert_all_called=False) as router:
        router.get("/repos/acme/ops/installation", name="installation").respond(json={"id": 9})
        router.post("/app/installations/9/access_tokens", name="mint").respond(
            201, json={"token": "ghs_one", "expires_at": "2026-05-01T13:00:00Z"}
        )
        router.get("/app", name="app").respond(json={"id": APP_ID, "slug": "lockstep"})
        router.get("/users/lockstep%5Bbot%5D", name="bot").respond(json=BOT)
        yield router


@pytest.fixture
async def github(private_key: str, clock: FixedClock, wire: respx.Router) -> AsyncIterator[GitHubApp]:
    settings = GitHubSettings(
        APP_ID, private_key, api_url=f"{API}/", web_url="https://ghe.example/", write_interval=0.0
    )
    async with GitHubApp(settings, clock) as app:
        yield app
