"""`lockstep setup`: serves the page that has GitHub register our App, until its credentials are kept."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from bot.adapters.app_file import AppFile, read_manifest
from bot.adapters.clock import SystemClock
from bot.adapters.filelock import hold_file
from bot.adapters.github.manifest import GitHubManifests
from bot.adapters.http import HttpClient
from bot.adapters.vault import KeyFileVault
from bot.domain.app_manifest import propose_rules
from bot.ports import AppCredentials, TerminalError, TransientError
from bot.settings import SetupSettings, addresses_of
from bot.web.rendering import Renderer
from bot.web.session import Signatures
from bot.web.setup import SetupPages, SetupPlace

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SetupOptions:
    """What the command line says: the organisation that shall own the App, and whether another may be replaced."""

    organisation: str = ""
    replace: bool = False


def run_setup(settings: SetupSettings, options: SetupOptions, say: Say) -> AppCredentials | None:
    """Serve on 127.0.0.1 until an App is registered; None if it was ended before.

    Raises TerminalError if there is an App already, the port is taken, or nothing can be written.
    """
    try:
        return asyncio.run(set_up(settings, options, say))
    except KeyboardInterrupt:
        return None


async def set_up(settings: SetupSettings, options: SetupOptions, say: Say) -> AppCredentials | None:
    """What `run_setup` does, within an event loop."""
    file = AppFile(settings.data)
    if not options.replace and (known := file.read()) is not None:
        raise TerminalError(
            f"{file.path} holds the credentials of the App {known.name} ({known.page}); nothing was changed. "
            "`lockstep setup --replace` registers another one in its place"
        )
    # What cannot be written must be known before GitHub shows its secrets, which it does once.
    file.prepare()
    try:
        async with hold_file(settings.data / "setup.lock", timeout=0.0, what="setting up"):
            file.sweep()
            return await _serve(settings, options, file, say)
    except TransientError as error:
        raise TerminalError(
            f"another `lockstep setup` runs on {settings.data}; use or end that one"
        ) from error


async def _serve(
    settings: SetupSettings, options: SetupOptions, file: AppFile, say: Say
) -> AppCredentials | None:
    api, web = addresses_of(settings.github_url)
    finished = asyncio.Event()
    with closing(_listen(settings.port)) as listening:
        origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
        async with HttpClient() as http:
            pages = SetupPages(
                place=SetupPlace(origin, settings.public_url, options.organisation),
                manifest=read_manifest(),
                github=GitHubManifests(api, web, http),
                signatures=Signatures(
                    KeyFileVault(settings.data / "vault.key"), SystemClock(), b"lockstep setting up, 1"
                ),
                renderer=Renderer(""),
                keep=lambda made: file.write(made, replace=options.replace),
                finish=lambda _made: finished.set(),
            )
            server = uvicorn.Server(
                uvicorn.Config(pages.app(), log_config=None, access_log=False, lifespan="off")
            )
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            ending = asyncio.create_task(finished.wait())
            say(f"Open this in a browser on this machine (it is good once):\n\n  {pages.address}\n")
            await asyncio.wait({serving, ending}, return_when=asyncio.FIRST_COMPLETED)
            server.should_exit = True
            ending.cancel()
            await serving
    if pages.done is not None:
        rules = settings.data / "github-ruleset.json"
        rules.write_text(json.dumps(propose_rules(pages.done.app_id), indent=2) + "\n")
        say(_describe(pages.done, file, rules))
    return pages.done


def _listen(port: int) -> socket.socket:
    """A socket of the loopback interface: whoever registers our App must sit at this machine."""
    # asyncio sends answers at once only where the protocol is named (TCP_NODELAY).
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(16)
    except OSError as error:
        listening.close()
        raise TerminalError(
            f"cannot listen on 127.0.0.1:{port}: {error.strerror}; end what uses it, or set LOCKSTEP_PORT"
        ) from error
    return listening


def _describe(made: AppCredentials, file: AppFile, rules: Path) -> str:
    return (
        f"The App {made.name} is registered; its key and secrets are in {file.path}.\n"
        f"Install it: {made.install_page}\n"
        f"Then protect the branches that releases go to by the rule set in {rules}, and run `lockstep doctor`."
    )
