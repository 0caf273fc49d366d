"""`lockstep demo`: the sandbox and a real bot beside it, to be used by a person or played by itself."""

from __future__ import annotations

import asyncio
import ctypes
import json
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bot.sandbox.bot_process import BotProcess, free_port
from bot.sandbox.files import write_whole
from bot.sandbox.seed.demo import Demo
from bot.sandbox.server import Sandbox, SandboxOptions

DEADLINE = 120.0
"""Seconds in which the played demo must reach prod."""
_STAGES = ("dev", "staging", "prod")
_RELEASE = "1.1.0"

Say = Callable[[str], None]


@dataclass(slots=True)
class Stagecraft:
    """The running demo: sandbox, bot, and what the bot needs to know of the sandbox."""

    sandbox: Sandbox
    bot: BotProcess
    demo: Demo


@asynccontextmanager
async def open_demo(directory: Path, options: SandboxOptions | None = None) -> AsyncIterator[Stagecraft]:
    """Sandbox and bot on a directory, for as long as the block lasts; started again there they go on."""
    async with Sandbox(directory / "sandbox", options) as sandbox:
        bot = _bot_of(directory)
        sandbox.github.links["Lockstep"] = bot.url
        demo = await sandbox.seed_demo(bot.endpoints)
        await bot.start(demo)
        try:
            yield Stagecraft(sandbox, bot, demo)
        finally:
            await bot.stop()


def _bot_of(directory: Path) -> BotProcess:
    """The bot with the port and the secret that the directory remembers."""
    file = directory / "bot.json"
    if not file.exists():
        directory.mkdir(parents=True, exist_ok=True)
        tokens = {name: secrets.token_hex(16) for name in ("receiver_secret", "api_token")}
        known = {"port": free_port(), **tokens}
        write_whole(file, json.dumps(known).encode(), private=True)
    known = json.loads(file.read_text())
    extra = {"LOCKSTEP_API_TOKEN": known["api_token"]}
    if not has_landlock():
        extra["LOCKSTEP_ISOLATION"] = "none"
    return BotProcess(directory / "bot", known["port"], known["receiver_secret"], extra=extra)


def has_landlock() -> bool:
    """Whether this kernel can confine a process by paths (Linux 5.13, if it is switched on)."""
    if not sys.platform.startswith("linux"):
        return False
    create_ruleset, version_flag = 444, 1
    version = int(ctypes.CDLL(None, use_errno=True).syscall(create_ruleset, None, 0, version_flag))
    return version > 0


def run_demo(keep: Path | None, *, auto: bool, say: Say = print) -> int:
    """Run the demo until Ctrl-C, or with `auto` until prod runs the release; the answer is the exit status."""
    directory = keep if keep is not None else Path(tempfile.mkdtemp(prefix="lockstep-demo-"))
    try:
        return asyncio.run(_run(directory.absolute(), auto=auto, say=say))
    finally:
        if keep is None:
            shutil.rmtree(directory, ignore_errors=True)


async def _run(directory: Path, *, auto: bool, say: Say) -> int:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    started = time.monotonic()
    async with open_demo(directory) as craft:
        _introduce(craft, say)
        ending = asyncio.create_task(_end(craft, stopped, say))
        if not auto:
            return await ending
        player = Player(craft, say, started)
        playing = asyncio.create_task(player.play())
        await asyncio.wait({playing, ending}, timeout=DEADLINE, return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if not playing.done():
            playing.cancel()
            say(f"prod does not run the release; the bot's log ends:\n{craft.bot.tail()}")
            return 1
        return playing.result()


async def _end(craft: Stagecraft, stopped: asyncio.Event, say: Say) -> int:
    """Wait for Ctrl-C, or for the bot to end by itself, which nobody would see otherwise; the exit status."""
    assert craft.bot.process is not None
    dead, asked = asyncio.create_task(craft.bot.process.wait()), asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait({dead, asked}, return_when=asyncio.FIRST_COMPLETED)
        if asked.done():
            say("stopping")
            return 0
        say(f"the bot ended with status {dead.result()}; its log ends:\n{craft.bot.tail()}")
        say("stopping; start the demo again, with --keep DIR it goes on from where it was")
        return 1
    finally:
        dead.cancel()
        asked.cancel()


def _introduce(craft: Stagecraft, say: Say) -> None:
    sandbox = craft.sandbox
    say("Lockstep and its sandbox are running on this machine only.")
    say(f"  GitHub (pull requests, reviews, merges)  {sandbox.github_url}/{craft.demo.repository}/pulls")
    say(f"  Registry (publish a new image)           http://{sandbox.registry_host}/")
    say(f"  Argo CD (what runs where)                {sandbox.argocd_url}/")
    say(f"  Lockstep (every promotion, step by step) {craft.bot.url}/")
    say("dev merges by itself; approve and merge the pull requests of staging and prod as rafael.")
    if craft.bot.extra.get("LOCKSTEP_ISOLATION") == "none":
        say(
            "This system has no Landlock, so Terraform runs without isolation here; do not do that with code of others."
        )
    say("Ctrl-C stops everything.")


@dataclass(slots=True)
class Player:
    """Plays publisher and reviewer: approves and merges until prod runs the release."""

    craft: Stagecraft
    say: Say
    started: float
    merged: set[int] = field(default_factory=set)
    approved: set[tuple[int, str]] = field(default_factory=set)
    shown: int = 0

    async def play(self) -> int:
        """Publish a new image, then review whatever comes; 0 once prod runs it with its own URL."""
        self._tell("publisher", f"pushes otel-app {_RELEASE} and lambda-app {_RELEASE} to the registry")
        await asyncio.to_thread(self._publish)
        async with httpx.AsyncClient(base_url=self.craft.sandbox.github_url, timeout=30.0) as client:
            while not self._arrived():
                await self._review(client)
                await self._show_timeline(client)
                await asyncio.sleep(0.2)
            await self._show_timeline(client)
        _, environment = self.craft.sandbox.argocd.live("otel-app-prod")
        self._tell("prod", f"runs otel-app {_RELEASE} with LAMBDA_URL {environment['LAMBDA_URL']}")
        return 0

    def _publish(self) -> None:
        for image in ("otel-app", "lambda-app"):
            self.craft.sandbox.registry.publish(image, _RELEASE, platforms=("linux/amd64", "linux/arm64"))

    async def _review(self, client: httpx.AsyncClient) -> None:
        headers = {"Authorization": f"token {self.craft.demo.people['rafael']}"}
        repository = self.craft.demo.repository
        listed = await client.get(f"/api/v3/repos/{repository}/pulls", headers=headers)
        for pull in listed.json():
            number, head, stage = pull["number"], pull["head"]["sha"], pull["head"]["ref"].rpartition("/")[2]
            if stage == "dev" or number in self.merged:
                continue
            if (number, head) not in self.approved:
                await client.post(
                    f"/_sandbox/as/rafael/{repository}/approve/{number}", json={"body": "Looks right."}
                )
                self.approved.add((number, head))
                self._tell("rafael", f"approves #{number}, {pull['title']}")
            merged = await client.post(f"/_sandbox/as/rafael/{repository}/merge/{number}", json={})
            if merged.status_code == 200:
                self.merged.add(number)
                self._tell("rafael", f"merges #{number}")

    async def _show_timeline(self, client: httpx.AsyncClient) -> None:
        """Print what the bot did since the last time, and why."""
        answer = await client.get(
            f"{self.craft.bot.url}/api/events",
            params={"after": self.shown},
            headers={"Authorization": f"Bearer {self.craft.bot.extra['LOCKSTEP_API_TOKEN']}"},
        )
        for event in answer.json()["events"]:
            self.shown = max(self.shown, event["number"])
            self._tell(event["stage"] or "warehouse", f"{event['kind']}: {event['message']}")

    def _arrived(self) -> bool:
        """Whether every Stage runs the release, each with the URL that its own Terraform made."""
        for stage in _STAGES:
            images, environment = self.craft.sandbox.argocd.live(f"otel-app-{stage}")
            if not any(image.endswith(f":{_RELEASE}") for image in images):
                return False
            outputs = self.craft.sandbox.cloud.outputs(f"acme/{stage}")
            if environment.get("LAMBDA_URL") != outputs.get("lambda_url"):
                return False
        return True

    def _tell(self, who: str, what: str) -> None:
        self.say(f"{time.monotonic() - self.started:6.1f} s  {who:<10} {what}")
