"""A bot as a process of its own, told where the sandbox is by its environment; it can be killed and started again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

import httpx

from bot.sandbox.seed.demo import BotEndpoints, Demo

_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "VIRTUAL_ENV", "TMPDIR")


class BotFailed(RuntimeError):
    """The bot ended or did not become ready; the message has the end of its log."""


class Running(Protocol):
    """A process that was started, as far as it is looked after here."""

    @property
    def pid(self) -> int:
        """Its number."""

    @property
    def returncode(self) -> int | None:
        """Its exit status, the number of a signal below zero, None while it runs."""

    def send_signal(self, signal: int) -> None:
        """Send it a signal."""

    def kill(self) -> None:
        """Send it SIGKILL."""

    async def wait(self) -> int:
        """Wait for its end; the answer is its exit status."""


def free_port() -> int:
    """A port of the loopback interface that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(slots=True)
class BotProcess:
    """One bot on a data directory. `extra` are further variables of its environment."""

    directory: Path
    port: int
    receiver_secret: str
    command: tuple[str, ...] = (sys.executable, "-m", "bot", "serve")
    extra: Mapping[str, str] = field(default_factory=dict)
    process: Running | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """What it wrote to standard error, over all starts."""
        return self.directory / "bot.log"

    @property
    def endpoints(self) -> BotEndpoints:
        """Where the sandbox sends its events."""
        headers = {"Authorization": f"Bearer {self.receiver_secret}"}
        return BotEndpoints(
            f"{self.url}/hooks/github",
            f"{self.url}/hooks/distribution",
            headers,
            callback=f"{self.url}/sign-in/callback",
        )

    async def start(self, demo: Demo, *, timeout: float = 30.0) -> None:
        """Start it and wait until it is ready; raises BotFailed with its log if it is not."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = await self.spawn(self.environment(demo), log)
        await self._wait_until_ready(timeout)

    async def spawn(self, environment: Mapping[str, str], log: BinaryIO) -> Running:
        """Start the process in a session of its own, with nothing to read and its output in the log."""
        return await asyncio.create_subprocess_exec(
            *self.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )

    async def stop(self, *, timeout: float = 20.0) -> None:
        """Ask it to end, and make it end if it does not."""
        await self._end(signal.SIGTERM, timeout)

    async def kill(self) -> None:
        """Kill it as a crash would, at whatever it is doing."""
        await self._end(signal.SIGKILL, 10.0)

    async def _end(self, number: signal.Signals, timeout: float) -> None:
        process, self.process = self.process, None
        if process is None or process.returncode is not None:
            return
        process.send_signal(number)
        try:
            await asyncio.wait_for(process.wait(), timeout)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _wait_until_ready(self, timeout: float) -> None:
        deadline = asyncio.get_running_loop().time() + timeout
        async with httpx.AsyncClient(timeout=2.0) as client:
            while True:
                if self.process is None or self.process.returncode is not None:
                    raise BotFailed(f"the bot ended at its start:\n{self.tail()}")
                with contextlib.suppress(httpx.TransportError):
                    if (await client.get(f"{self.url}/readyz")).status_code == 200:
                        return
                if asyncio.get_running_loop().time() > deadline:
                    raise BotFailed(f"the bot was not ready within {timeout:.0f} s:\n{self.tail()}")
                await asyncio.sleep(0.05)

    def tail(self, lines: int = 40) -> str:
        """The end of its log."""
        if not self.log.exists():
            return "(no log)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def environment(self, demo: Demo) -> dict[str, str]:
        """Everything that the bot is told, as its environment."""
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        environment |= {
            "HOME": str(self.directory),
            "LOCKSTEP_DATA": str(self.directory / "data"),
            "LOCKSTEP_CONFIG": demo.config,
            "LOCKSTEP_PORT": str(self.port),
            "LOCKSTEP_URL": self.url,
            "LOCKSTEP_GITHUB_URL": demo.github_api_url,
            "LOCKSTEP_APP_ID": str(demo.app_id),
            "LOCKSTEP_PRIVATE_KEY_FILE": demo.private_key_path,
            "LOCKSTEP_WEBHOOK_SECRET": demo.webhook_secret,
            "LOCKSTEP_CLIENT_ID": demo.client_id,
            "LOCKSTEP_CLIENT_SECRET": demo.client_secret,
            "LOCKSTEP_RECEIVER_SECRET": self.receiver_secret,
            "LOCKSTEP_ARGOCD_DEFAULT_URL": demo.argocd_url,
            "LOCKSTEP_ARGOCD_DEFAULT_TOKEN": demo.argocd_token,
            "LOCKSTEP_ARGOCD_DEFAULT_PROJECT": "acme",
            "LOCKSTEP_PACE": "0.02",
            "LOCKSTEP_SETTLE": "0.5",
            "LOCKSTEP_LOG": "text",
        }
        for name, values in demo.secrets.items():
            for key, value in values.items():
                # Keys with lower-case letters are taken as they are spelled.
                prefix = f"LOCKSTEP_SECRET_ACME_{name}_".upper().replace("-", "_")
                environment[f"{prefix}{key}"] = value
        return environment | dict(self.extra)
