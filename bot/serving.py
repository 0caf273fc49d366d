"""The program as it serves: the engine and its loops, the addresses that it answers at, and its end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette

from bot.adapters.config import parse_source
from bot.adapters.github.sign_in import GitHubSignIn, OAuthClient
from bot.adapters.id_tokens import PublishedKeys
from bot.adapters.logs import start_logging
from bot.adapters.terraform import TerraformRunner
from bot.adapting import engine_database, github_settings
from bot.app import Lockstep, open_lockstep
from bot.ports import TerminalError
from bot.settings import Settings
from bot.web.access import Access
from bot.web.api import Api
from bot.web.dashboard import Dashboard
from bot.web.metrics import Metrics, Readings
from bot.web.reading import Reading
from bot.web.receivers import Receivers
from bot.web.rendering import Renderer
from bot.web.server import make_app
from bot.web.session import Cookies
from bot.web.sign_in import SigningIn
from bot.web.webhooks import Webhooks
from bot.workflow import engine
from bot.workflow.receivers import ReceiverBook

log = logging.getLogger(__name__)


@asynccontextmanager
async def run_lockstep(settings: Settings) -> AsyncIterator[Starlette]:
    """Everything started: the engine, the loops, and the web application to be served."""
    async with open_lockstep(settings) as lockstep:
        looks = lockstep.looks
        # Work that a dead process left is taken up as soon as the engine starts, and it needs the pipeline.
        await lockstep.configuration.start()
        await lockstep.terraform.sweep()
        await lockstep.renderer.sweep()
        await lockstep.commands.sweep()
        tasks: list[asyncio.Task[None]] = []
        running = await engine.start(
            engine_database(settings),
            {"look": looks.do_look, "segment": looks.do_segment},
            executor=_executor(settings),
            on_lost=lambda reason: tasks.append(asyncio.create_task(_leave(lockstep.terraform, reason))),
        )
        looks.stages.engine = running
        tasks += [
            asyncio.create_task(looks.dispatch_for_ever(running)),
            asyncio.create_task(looks.send_for_ever(running)),
            asyncio.create_task(looks.tell_for_ever(running)),
            asyncio.create_task(looks.sweep_for_ever(settings.sweep, running)),
        ]
        webhooks = Webhooks(
            store=lockstep.store,
            nudge=looks.nudged.set,
            secrets=settings.webhook_secrets,
            receiver_secret=settings.receiver_secret,
        )

        ports, configuration = lockstep.ports, lockstep.configuration
        book = ReceiverBook(lambda: configuration.pipeline, ports.secrets, ports.clock)
        tokens = PublishedKeys(ports.http, ports.clock)
        receivers = Receivers(lockstep.store, looks.nudged.set, book, tokens, ports.clock)

        async def ready() -> str:
            failed = [task for task in tasks if task.done()]
            return "a loop has ended; see the log" if failed else ""

        try:
            api, dashboard = Api(lockstep.store, settings.api_token), make_dashboard(lockstep)
            yield make_app(webhooks, api, ready, dashboard, receivers, make_metrics(lockstep, running))
        finally:
            # An apply gets the signal to end in good order; what it has done is in the state, and the journal says so.
            lockstep.terraform.interrupt_all("the bot is stopping")
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await running.stop()


def make_metrics(lockstep: Lockstep, running: engine.Engine) -> Metrics:
    """The page for monitoring, which adds what this process knows of itself."""

    def read() -> Readings:
        return Readings(
            requests_left=lockstep.github.remaining,
            terraform_running=lockstep.terraform.running,
            terraform_begun=lockstep.terraform.begun,
            swept_at=lockstep.looks.swept_at,
            leads=running.leads,
        )

    return Metrics(lockstep.store, lockstep.ports.clock, read)


def make_dashboard(lockstep: Lockstep) -> Dashboard | None:
    """The bot's own pages, None if people cannot sign in because the App's client is not configured."""
    settings, ports = lockstep.settings, lockstep.ports
    if not settings.client_id:
        return None
    base = urlsplit(settings.public_url).path.rstrip("/")
    hosts = github_settings(settings)
    client = OAuthClient(
        client_id=settings.client_id,
        client_secret=settings.client_secret,
        callback=f"{settings.public_url}/sign-in/callback",
        api_url=hosts.api_url,
        web_url=hosts.web_url,
    )
    cookies = Cookies(ports.vault, ports.clock, secure=settings.public_url.startswith("https://"))
    renderer = Renderer(base)
    source = parse_source(settings.config)
    return Dashboard(
        reading=Reading(
            store=ports.store,
            github=ports.github,
            clock=ports.clock,
            configuration=lockstep.configuration,
            gatherer=lockstep.looks.stages.gatherer,
            own=source[0] if isinstance(source, tuple) else None,
        ),
        access=Access(ports.github, ports.clock),
        cookies=cookies,
        signing_in=SigningIn(GitHubSignIn(client, ports.http), cookies, renderer, base),
        renderer=renderer,
    )


async def _leave(terraform: TerraformRunner, reason: str) -> None:
    """End the process, because another replica may take over its work; Terraform's runs end first, in good order."""
    while terraform.interrupt_all(reason):
        await asyncio.sleep(0.2)
    logging.shutdown()
    # Threads wait for the database for as long as it stays away, and an ordinary end would wait for them.
    os._exit(1)


def serve(settings: Settings) -> int:
    """Serve until SIGINT or SIGTERM; the answer is the exit status."""
    start_logging(settings.log_format)
    try:
        asyncio.run(_serve(settings))
    except TerminalError as error:
        log.error("lockstep cannot run: %s", error)
        return 1
    return 0


def keep_what_is_there() -> None:
    """Take all that the start has made out of the garbage collector's view: it lives to the end.

    A full collection walks over every object and stops all answers meanwhile: 30 ms and more with what libraries make
    when they are imported (Python, `gc.freeze`). Next to nothing of it is garbage, so none is collected before.
    """
    gc.freeze()


async def _serve(settings: Settings) -> None:
    async with run_lockstep(settings) as app:
        keep_what_is_there()
        config = uvicorn.Config(
            app, host=settings.host, port=settings.port, log_config=None, access_log=False, lifespan="off"
        )
        await uvicorn.Server(config).serve()


def _executor(settings: Settings) -> str:
    """Whose work it is that this process does: one name for all processes on SQLite, where they follow each other."""
    if settings.executor:
        return settings.executor
    if settings.on_sqlite:
        return "lockstep"
    return f"{socket.gethostname()}-{os.getpid()}"
