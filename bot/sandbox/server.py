"""The whole sandbox in one event loop: GitHub, registry, Argo CD and Terraform's state backend on loopback ports."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from starlette.types import ASGIApp

from bot.sandbox.argocd import ArgoCD, Timing
from bot.sandbox.cloud import Cloud
from bot.sandbox.files import write_whole
from bot.sandbox.github.app import GitHub
from bot.sandbox.registry import Registry
from bot.sandbox.seed import Addresses
from bot.sandbox.seed.demo import IMAGES, BotEndpoints, Demo, Servers, seed_demo
from bot.sandbox.serving import Listener

_NAMES: Final = ("github", "registry", "argocd", "cloud")


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """What a sandbox may be told: Argo CD's pace, who may push images, whether anybody may pull them."""

    timing: Timing | None = None
    registry_accounts: Mapping[str, str] | None = None
    anonymous_pull: bool = True


class Sandbox:
    """All servers on one directory; started again there, it has the same addresses and goes on.

    `async with Sandbox(directory) as sandbox:` serves until the block ends. The servers and addresses are attributes
    from `start` on. Raises PortTaken when an address that the directory remembers is in use.
    """

    github: GitHub
    registry: Registry
    argocd: ArgoCD
    cloud: Cloud
    github_url: str
    registry_host: str
    argocd_url: str
    cloud_url: str

    def __init__(self, directory: Path, options: SandboxOptions | None = None) -> None:
        self.directory = directory
        self._options = options or SandboxOptions()
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Bind the ports, then serve; what has started is stopped again if something fails."""
        async with contextlib.AsyncExitStack() as stack:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            listeners = self._bind(stack)
            self._create(listeners)
            apps: tuple[ASGIApp, ...] = (
                self.github.asgi,
                self.registry.asgi,
                self.argocd.asgi,
                self.cloud.asgi,
            )
            for listener, app in zip(listeners.values(), apps, strict=True):
                await listener.start(app)
            # Pushed last, so stopped first: what the servers still send must find an open port.
            for each in (self.github, self.registry, self.argocd):
                await each.start()
                stack.push_async_callback(each.stop)
            self._stack = stack.pop_all()

    async def stop(self) -> None:
        """Stop everything; the directory keeps what is needed to go on."""
        await self._stack.aclose()

    async def seed_demo(
        self, endpoints: BotEndpoints | None = None, images: Mapping[str, tuple[str, ...]] = IMAGES
    ) -> Demo:
        """Set up the running example, or find it again, and send events to the bot's `endpoints` from now on."""
        return await seed_demo(self._servers(), endpoints or BotEndpoints(), images)

    def _servers(self) -> Servers:
        addresses = Addresses(self.github_url, self.registry_host, self.cloud_url)
        return Servers(
            self.directory, addresses, self.argocd_url, self.github, self.registry, self.argocd, self.cloud
        )

    def _bind(self, stack: contextlib.AsyncExitStack) -> dict[str, Listener]:
        file = self.directory / "ports.json"
        known: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}
        listeners: dict[str, Listener] = {}
        stack.push_async_callback(_stop_all, listeners)
        for name in _NAMES:
            listeners[name] = Listener(known.get(name, 0))
        ports = {name: listener.port for name, listener in listeners.items()}
        write_whole(file, json.dumps(ports).encode())
        return listeners

    def _create(self, listeners: Mapping[str, Listener]) -> None:
        self.github_url = listeners["github"].url
        self.registry_host = listeners["registry"].host
        self.argocd_url = listeners["argocd"].url
        self.cloud_url = listeners["cloud"].url
        options = self._options
        self.github = GitHub(self.directory / "github", base_url=self.github_url)
        self.registry = Registry(
            self.directory / "registry",
            host=self.registry_host,
            accounts=options.registry_accounts,
            anonymous_pull=options.anonymous_pull,
        )
        password = _keep_secret(self.directory / "argocd.password")
        self.argocd = ArgoCD(self.directory / "argocd", admin_password=password, timing=options.timing)
        self.cloud = Cloud(self.directory / "cloud")
        links = {
            "GitHub": self.github_url,
            "Registry": f"http://{self.registry_host}",
            "Argo CD": self.argocd_url,
        }
        self.github.links.update(links)
        self.registry.links.update(links)
        self.argocd.links.update(links)


async def _stop_all(listeners: Mapping[str, Listener]) -> None:
    # Each takes a moment to let its connections end, so they do it at the same time.
    await asyncio.gather(*(listener.stop() for listener in listeners.values()))


def _keep_secret(file: Path) -> str:
    """A random secret that stays the same for the directory."""
    if not file.exists():
        write_whole(file, secrets.token_urlsafe(18).encode(), private=True)
    return file.read_text()
