"""Our adapter signed in, on answers that each test writes down itself, or on the simulated GitHub."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
import respx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.adapters.clock import SystemClock
from bot.adapters.github import GitHubApp, GitHubSettings
from bot.domain.github import PullRequest, Repository
from tests.contract.openapi import contract
from tests.sandbox.github.conftest import Stage, stage
from tests.sandbox.github.conftest import template as template

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


SHOP = Repository("acme", "shop")


@dataclass
class World:
    """The simulated GitHub and our adapter on it."""

    stage: Stage
    app: GitHubApp

    def fail(self, kind: str, method: str, path: str, count: int = 1, **more: float) -> None:
        """Let the next matching request go wrong."""
        rule = {"kind": kind, "method": method, "path": path, "count": count, **more}
        self.stage.github.faults.add([rule])

    def sent(self, method: str, path: str) -> int:
        """How many such requests arrived."""
        return sum(entry.method == method and path in entry.path for entry in self.stage.github.requests())

    async def open(self, branch: str = "promote") -> PullRequest:
        """A branch with a change, and our pull request of it."""
        await self.stage.branch(branch)
        return await self.app.open_pull_request(
            SHOP, head_branch=branch, base_branch="main", title="promote dev", body="text"
        )


@pytest.fixture
async def world(tmp_path: Path, template: Path) -> AsyncIterator[World]:
    shutil.copytree(template, tmp_path / "github")
    async with stage(tmp_path / "github") as made:
        settings = GitHubSettings(
            made.credentials.app_id,
            made.credentials.private_key_pem,
            api_url=f"{made.base}/api/v3/",
            web_url=made.base,
            write_interval=0.0,
        )
        async with GitHubApp(settings, SystemClock()) as app:
            app._connection._client.event_hooks["request"].append(judge)
            yield World(made, app)
            await made.github.settled()


async def judge(request: httpx.Request) -> None:
    path = request.url.raw_path.decode().split("?")[0].removeprefix("/api/v3")
    contract().check_request(request.method, path, request.content)
