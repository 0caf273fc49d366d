"""A simulated GitHub on a loopback port with the demo's people, one repository and one installed App."""

import asyncio
import json
import shutil
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from bot.sandbox.github.app import GitHub
from bot.sandbox.github.git import Git
from bot.sandbox.github.provisioning import AppCredentials, NewApp
from tests.contract.openapi import Contract, contract

PERMISSIONS = {
    "contents": "write",
    "pull_requests": "write",
    "checks": "write",
    "issues": "write",
    "deployments": "write",
    "statuses": "write",
    "members": "read",
    "merge_queues": "read",
    "packages": "read",
    "actions": "write",
}
EVENTS = (
    "push",
    "pull_request",
    "pull_request_review",
    "issue_comment",
    "issues",
    "check_run",
    "check_suite",
    "registry_package",
    "merge_group",
    "deployment",
    "deployment_status",
    "status",
)
REPOSITORY = "acme/shop"
FILES = {"README.md": b"# shop\n", "env/dev/values.yaml": b"image:\n  tag: 1.0.0\n"}


@asynccontextmanager
async def serve(app: Any, listening: socket.socket) -> AsyncIterator[None]:
    """Serve an ASGI application on a bound socket."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    task = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.005)
    try:
        yield
    finally:
        server.should_exit = True
        await task


def bind() -> tuple[socket.socket, str]:
    """A bound loopback socket and its URL."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    return listening, f"http://127.0.0.1:{listening.getsockname()[1]}"


@dataclass
class Receiver:
    """A bot's webhook endpoint that remembers what it got; `status` is what it answers."""

    url: str
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    status: int = 202

    async def handle(self, request: Request) -> Response:
        self.got.append((dict(request.headers), await request.body()))
        return Response(status_code=self.status)

    def events(self, event: str) -> list[dict[str, Any]]:
        return [json.loads(body) for headers, body in self.got if headers["x-github-event"] == event]

    def names(self) -> list[str]:
        found = []
        for headers, body in self.got:
            action = json.loads(body).get("action")
            found.append(headers["x-github-event"] + (f".{action}" if action else ""))
        return found


@dataclass
class Caller:
    """An API client whose every request and response is held against GitHub's description."""

    base: str
    token: str
    judge: Contract | None
    scheme: str = "Bearer"

    async def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        full = f"{self.base}/api/v3{path}"
        sent = {"authorization": f"{self.scheme} {self.token}", "user-agent": "tests", **headers}
        if not self.token:
            del sent["authorization"]
        content = b"" if body is None else json.dumps(body).encode()
        async with httpx.AsyncClient(timeout=20, verify=False) as client:
            answer = await client.request(method, full, content=content, headers=sent)
        if self.judge:
            bare = answer.request.url.path.removeprefix("/api/v3")
            if answer.status_code < 400:
                self.judge.check_request(method, bare, content)
            if answer.status_code < 500:
                self.judge.check_response(method, bare, answer.status_code, answer.content)
        return answer

    async def ok(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        answer = await self(method, path, body, **headers)
        assert answer.status_code < 300, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None


@dataclass
class Stage:
    """Everything a test needs: the server, the App, its webhook endpoint and ready clients."""

    github: GitHub
    base: str
    credentials: AppCredentials
    installation: int
    receiver: Receiver
    app: Caller
    bot: Caller

    def jwt(self, **changes: Any) -> str:
        now = int(time.time())
        claims = {"iat": now - 60, "exp": now + 540, "iss": self.credentials.client_id, **changes}
        return jwt.encode(claims, self.credentials.private_key_pem, algorithm="RS256")

    def as_user(self, login: str) -> Caller:
        return Caller(self.base, self.github.create_token(login), contract())

    async def token(self, **narrowed: Any) -> Caller:
        """A client with a narrowed installation token."""
        made = await self.app.ok("POST", f"/app/installations/{self.installation}/access_tokens", narrowed)
        return Caller(self.base, made["token"], contract())

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for what a background task will bring about; TimeoutError after ten seconds."""
        async with asyncio.timeout(10):
            while not holds():
                await asyncio.sleep(0.01)

    async def as_app(self, credentials: AppCredentials, installation: int) -> Caller:
        """A client with an installation token of another App."""
        now = int(time.time())
        claims = {"iat": now, "exp": now + 60, "iss": credentials.client_id}
        signed = jwt.encode(claims, credentials.private_key_pem, algorithm="RS256")
        app = Caller(self.base, signed, contract())
        made = await app.ok("POST", f"/app/installations/{installation}/access_tokens", {})
        return Caller(self.base, made["token"], contract())

    async def graphql(self, query: str, **variables: Any) -> dict[str, Any]:
        """The answer to a GraphQL request of the App."""
        headers = {"authorization": f"Bearer {self.bot.token}"}
        async with httpx.AsyncClient(verify=False) as client:
            body = {"query": query, "variables": variables}
            answer = await client.post(f"{self.base}/api/graphql", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def git(self, repository: str = "acme/shop") -> Git:
        return self.github.world.git(self.github.repository(repository))

    async def create_app(self, owner: str, manifest: dict[str, Any], state: str) -> str:
        """Walk the manifest flow as a browser does and return the code."""
        page = f"{self.base}/organizations/{owner}/settings/apps/"
        form = {"manifest": json.dumps(manifest)}
        async with httpx.AsyncClient(verify=False) as browser:
            shown = await browser.post(f"{page}new?state={state}", data=form)
            assert "Create GitHub App" in shown.text
            done = await browser.post(f"{page}create?state={state}", data=form)
        target = httpx.URL(done.headers["location"])
        assert str(target).startswith(manifest["redirect_url"])
        assert target.params["state"] == state
        return target.params["code"]

    async def branch(
        self, name: str, files: dict[str, bytes | None] | None = None, user: str = "olivia"
    ) -> str:
        changed = files or {"env/dev/values.yaml": b"image:\n  tag: 1.1.0\n"}
        return await asyncio.to_thread(
            self.github.actions.push, user, "acme/shop", name, changed, f"change {name}"
        )

    async def pull(self, head: str = "promote", base: str = "main") -> dict[str, Any]:
        await self.branch(head)
        made: dict[str, Any] = await self.bot.ok(
            "POST",
            "/repos/acme/shop/pulls",
            {"title": "promote dev", "head": head, "base": base, "body": "b"},
        )
        return made


def set_up(github: GitHub, hook: str) -> tuple[AppCredentials, int]:
    """The cast, the repository and the App; a second time it finds what is there."""
    github.create_organisation("acme")
    github.create_repository("acme", "shop", FILES)
    github.demo_cast("acme", ["shop"])
    credentials = github.register_app(NewApp("Lockstep", "acme", PERMISSIONS, EVENTS, hook, "hush"))
    return credentials, github.install_app(credentials.app_id, "acme", ["shop"])


@asynccontextmanager
async def stage(directory: Path) -> AsyncIterator[Stage]:
    """The server with its cast, running; the directory may hold an earlier run."""
    listening, base = bind()
    receiver = Receiver(f"{base}/hook")
    github = GitHub(directory, base_url=base)
    # One server for both, since each takes a while to shut down.
    both = Starlette(routes=[Route("/hook", receiver.handle, methods=["POST"]), Mount("/", app=github.asgi)])
    async with serve(both, listening):
        credentials, installation = set_up(github, receiver.url)
        await github.start()
        try:
            app, bot = (Caller(base, "", contract()) for _ in range(2))
            made = Stage(github, base, credentials, installation, receiver, app, bot)
            made.app.token = made.jwt()
            made.bot = await made.token()
            yield made
        finally:
            await github.stop()


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the cast in it, made once: keys and repositories take longer to make than to copy."""
    directory = tmp_path_factory.mktemp("template") / "github"
    github = GitHub(directory, base_url="http://127.0.0.1:1")
    set_up(github, "http://127.0.0.1:1/hook")
    github.world.store.close()
    return directory


@pytest.fixture
async def github(tmp_path: Path, template: Path) -> AsyncIterator[Stage]:
    shutil.copytree(template, tmp_path / "github")
    async with stage(tmp_path / "github") as made:
        yield made
