"""How many webhooks a second are verified, stored durably and answered, beside servers that store nothing.

Run as `python -m tests.bench.bench_intake`. The baseline is Probot's `createNodeMiddleware` with a handler that does
nothing, where PROBOT_MODULES names a folder `node_modules` that holds the package (`npm install probot`) and `node` is
installed; Node is not part of this project's tools. The other one, always there, is a bare Starlette application that
reads the body, verifies the same signature, parses the JSON and answers. Each server is a process of its own; 32
connections send 7 kB pushes, in turn, and the best round counts.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.adapters.store.store import open_store
from bot.adapters.vault import KeyFileVault
from bot.sandbox.bot_process import free_port
from bot.serving import keep_what_is_there
from bot.web.api import Api
from bot.web.server import make_app
from bot.web.webhooks import Webhooks

SECRET = "a secret of the bench"
CONNECTIONS = 32
REQUESTS = 3_000
ROUNDS = 3
LIMIT_PROBOT = 1.5
LIMIT_BARE = 0.5
"""Of the bare server's rate, since that one does no durable work at all."""
LIMIT_P99_MS = 15.0


def push_body() -> bytes:
    """A push of about 7 kB."""
    commits = [{"id": f"{n:040x}", "message": "Change it " * 20, "added": [f"a/{n}.yaml"]} for n in range(24)]
    return json.dumps({"ref": "refs/heads/main", "commits": commits}).encode()


def signed(body: bytes) -> str:
    return f"sha256={hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()}"


def bare_app() -> Starlette:
    """Verifies and parses, and forgets."""

    async def take(request: Request) -> Response:
        body = await request.body()
        if not hmac.compare_digest(request.headers.get("x-hub-signature-256", ""), signed(body)):
            return JSONResponse({"message": "no"}, 401)
        json.loads(body)
        return JSONResponse({"message": "taken"}, 202)

    return Starlette(routes=[Route("/hooks/github", take, methods=["POST"])])


def our_app(directory: Path) -> Starlette:
    """The intake as it is served, on a database on disk."""
    store = open_store(f"sqlite:///{directory / 'bench.db'}", KeyFileVault(directory / "key"))

    async def ready() -> str:
        return ""

    return make_app(Webhooks(store, lambda: None, [SECRET]), Api(store, ""), ready)


@asynccontextmanager
async def serving(kind: str, directory: str) -> AsyncIterator[str]:
    """The address of a server in a process of its own."""
    port = free_port()
    if kind == "probot":
        script = Path(__file__).with_name("probot.mjs")
        command = ["node", str(script), str(port), SECRET, directory]
    else:
        command = [sys.executable, "-m", "tests.bench.bench_intake", kind, str(port), directory]
    process = subprocess.Popen(command, env=dict(os.environ))
    try:
        async with httpx.AsyncClient() as client:
            for rest in reversed(range(200)):
                try:
                    await client.get(f"http://127.0.0.1:{port}/")
                    break
                except httpx.TransportError:
                    if not rest or process.poll() is not None:
                        raise RuntimeError(f"the server {kind} did not start") from None
                    await asyncio.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


class Sender:
    """One connection that posts and reads answers, written by hand so that the client costs little."""

    def __init__(self, host: str, body: bytes) -> None:
        self._host, _, port = host.partition(":")
        self._port = int(port)
        self._body = body
        self._signature = signed(body)

    async def run(self, names: list[str], pause: float, times: list[float]) -> None:
        """Post each delivery; `pause` is the least time from one to the next, in seconds."""
        reader, writer = await asyncio.open_connection(self._host, self._port)
        for name in names:
            begun = time.perf_counter()
            head = (
                f"POST /hooks/github HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
                f"X-GitHub-Event: push\r\nX-GitHub-Delivery: {name}\r\n"
                f"X-Hub-Signature-256: {self._signature}\r\nContent-Length: {len(self._body)}\r\n\r\n"
            )
            writer.write(head.encode() + self._body)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert b" 20" in answer.splitlines()[0], answer
            length = next(line for line in answer.lower().splitlines() if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.split(b":")[1]))
            took = time.perf_counter() - begun
            times.append(took)
            if pause > took:
                await asyncio.sleep(pause - took)
        writer.close()


async def send(host: str, label: str, rate: float = 0.0) -> tuple[float, float]:
    """Requests a second and the 99th percentile in milliseconds; `rate` bounds how many a second are sent."""
    body, times = push_body(), list[float]()
    each = REQUESTS // CONNECTIONS
    pause = CONNECTIONS / rate if rate else 0.0
    begun = time.perf_counter()
    senders = (
        Sender(host, body).run([f"{label}-{number}-{n}" for n in range(each)], pause, times)
        for number in range(CONNECTIONS)
    )
    await asyncio.gather(*senders)
    seconds = time.perf_counter() - begun
    return len(times) / seconds, sorted(times)[int(len(times) * 0.99)] * 1000


async def fastest(host: str, label: str) -> float:
    """The requests a second of the best round."""
    return max([(await send(host, f"{label}{number}"))[0] for number in range(ROUNDS)])


async def measure(directory: str) -> int:
    """Print rates, ratios and latency; 1 if a bar is missed."""
    modules = os.environ.get("PROBOT_MODULES", "")
    async with serving("bare", directory) as bare, serving("ours", directory) as ours:
        plain, mine = await fastest(bare, "b"), await fastest(ours, "o")
        latency, quiet = math.inf, math.inf
        for number in range(ROUNDS):
            latency = min(latency, (await send(ours, f"h{number}", mine / 2))[1])
            quiet = min(quiet, (await send(bare, f"q{number}", mine / 2))[1])
    missed = mine / plain < LIMIT_BARE or latency > LIMIT_P99_MS
    print(
        f"intake, {len(push_body())} bytes, {CONNECTIONS} connections: {mine:.0f}/s stored durably; "
        f"bare Starlette that stores nothing {plain:.0f}/s, ratio {mine / plain:.2f} (bar {LIMIT_BARE})"
    )
    if modules:
        async with serving("probot", modules) as probot:
            theirs = await fastest(probot, "p")
        missed |= mine / theirs < LIMIT_PROBOT
        print(f"Probot that stores nothing {theirs:.0f}/s, ratio {mine / theirs:.2f} (bar {LIMIT_PROBOT})")
    else:
        print("Probot was not measured: PROBOT_MODULES names no folder that holds it")
    print(
        f"p99 at half of our rate: {latency:.1f} ms (bar {LIMIT_P99_MS:.0f} ms), "
        f"bare Starlette at the same rate {quiet:.1f} ms"
    )
    return int(missed)


def main(arguments: list[str]) -> int:
    """Measure; with arguments be one of the two servers."""
    if arguments:
        kind, port, directory = arguments
        app = bare_app() if kind == "bare" else our_app(Path(directory))
        keep_what_is_there()
        uvicorn.run(app, port=int(port), log_config=None, access_log=False, lifespan="off")
        return 0
    with tempfile.TemporaryDirectory() as directory:
        return asyncio.run(measure(directory))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
