"""How long a registry with 10,000 tags takes until its newest version with its digest is known.

Run as `python -m tests.bench.bench_registry`. The clock starts when the whole list of tags has arrived, from the real
adapter over a loopback server that pages like Distribution; the best of several rounds counts. The hard case has
images for another platform in front, of which no more than `discoveryLimit` may be asked for.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from bot.adapters.oci import OciRegistries
from bot.domain.freight import Image
from bot.domain.model import ImageSubscription
from bot.ports import ImageFacts
from bot.sandbox.serving import Listener
from bot.workflow.image_discovery import ImageFinder
from tests.workflow.finding import ForAll

TAGS = 10_000
ROUNDS = 5
LIMIT_S = 1.0
DISCOVERY_LIMIT = 20
OTHERS = DISCOVERY_LIMIT - 1


@dataclass
class BigRegistry:
    """A registry with one repository of many tags; the newest ones are images for another platform."""

    tags: list[str] = field(
        default_factory=lambda: sorted(f"{n // 1000}.{n // 10 % 100}.{n % 10}" for n in range(TAGS))
    )
    requests: int = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        query = parse_qs(scope["query_string"].decode())
        *_, kind, name = scope["path"].split("/")
        headers: list[tuple[bytes, bytes]] = []
        if name == "list":
            last, count = query.get("last", [""])[0], int(query["n"][0])
            page = [tag for tag in self.tags if tag > last][:count]
            if page and page[-1] != self.tags[-1]:
                headers = [(b"link", f'<{scope["path"]}?last={page[-1]}&n={count}>; rel="next"'.encode())]
            body = json.dumps({"tags": page}).encode()
        else:
            self.requests += 1
            body = self.manifest(name) if kind == "manifests" else self.config(name)
            headers = [(b"docker-content-digest", _digest(body).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def manifest(self, reference: str) -> bytes:
        """The manifest of a tag, or of a digest: all that differs is for which platform it is."""
        return _manifest(self._is_other(reference))

    def config(self, digest: str) -> bytes:
        """The configuration with a digest."""
        return next(config for config in map(_config, (False, True)) if _digest(config) == digest)

    def _is_other(self, reference: str) -> bool:
        if reference.startswith("sha256:"):
            return _digest(_manifest(True)) == reference
        newest = TAGS - OTHERS
        major, minor, patch = map(int, reference.split("."))
        return major * 1000 + minor * 10 + patch >= newest


def _config(other: bool) -> bytes:
    return json.dumps({"os": "linux", "architecture": "arm64" if other else "amd64"}).encode()


def _manifest(other: bool) -> bytes:
    config = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": _digest(_config(other))}
    return json.dumps({"schemaVersion": 2, "config": config}).encode()


def _digest(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


@dataclass
class Timed:
    """The adapter, and when the list of tags had arrived."""

    inner: OciRegistries
    arrived: float = 0.0

    async def list_tags(self, repository: str, *, insecure: bool = False) -> Sequence[str]:
        found = await self.inner.list_tags(repository, insecure=insecure)
        self.arrived = time.perf_counter()
        return found

    async def find_image(
        self, repository: str, tag: str, *, insecure: bool = False, cache_by_tag: bool = False
    ) -> ImageFacts | None:
        return await self.inner.find_image(repository, tag, insecure=insecure, cache_by_tag=cache_by_tag)


async def anonymous(repository: str) -> None:
    """The registry asks for no login."""


async def measure(server: BigRegistry, subscription: ImageSubscription) -> tuple[float, int, str]:
    """Seconds after the list has arrived, requests since then, and the tag that was found: the best round."""
    best = (float("inf"), 0, "")
    for _ in range(ROUNDS):
        server.requests = 0
        async with OciRegistries(anonymous) as registries:
            timed = Timed(registries)
            taken = await ImageFinder(ForAll(timed)).find("acme", subscription)
            assert isinstance(taken.artifact, Image)
            best = min(best, (time.perf_counter() - timed.arrived, server.requests, taken.artifact.tag))
    return best


async def main() -> int:
    """Print times and requests; 1 if a bar is missed."""
    server, listener = BigRegistry(), Listener()
    await listener.start(server)
    missed = False
    try:
        plain = ImageSubscription(f"{listener.host}/acme/app", discovery_limit=DISCOVERY_LIMIT)
        hard = ImageSubscription(plain.repo_url, platform="linux/amd64", discovery_limit=DISCOVERY_LIMIT)
        for name, subscription in (("newest tag", plain), ("newest tag for the platform", hard)):
            seconds, requests, tag = await measure(server, subscription)
            # Each tag costs a HEAD; the two different images their manifest and configuration.
            most = DISCOVERY_LIMIT + 4
            missed = missed or seconds > LIMIT_S or requests > most
            print(f"{name}: {tag} in {seconds:.3f} s (bar {LIMIT_S} s), {requests} requests (bar {most})")
    finally:
        await listener.stop()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
