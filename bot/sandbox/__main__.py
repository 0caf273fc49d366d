"""`python -m bot.sandbox`: the sandbox as a process of its own, for a bot that runs in another one."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from bot.sandbox.argocd import QUICK
from bot.sandbox.files import write_whole
from bot.sandbox.seed.demo import BotEndpoints
from bot.sandbox.server import Sandbox, SandboxOptions
from bot.sandbox.serving import PortTaken

_WRONG = 2


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM; prints one line of JSON, the fields of `Demo`, when everything is ready."""
    parser = argparse.ArgumentParser(prog="python -m bot.sandbox", description=__doc__)
    parser.add_argument(
        "--dir", type=Path, required=True, help="where everything is kept; start again there to go on"
    )
    parser.add_argument(
        "--port-file", type=Path, help="also write the line to this file, readable by its owner alone"
    )
    parser.add_argument(
        "--webhook-url", default="", help="where GitHub's webhooks go; without it none are sent"
    )
    parser.add_argument("--registry-webhook-url", default="", help="where the registry's notifications go")
    parser.add_argument(
        "--registry-webhook-header",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a static header of those notifications, such as Authorization=Bearer...; may be repeated",
    )
    parser.add_argument("--quick", action="store_true", help="let Argo CD need tenths of seconds, for tests")
    options = parser.parse_args(arguments)
    try:
        headers = dict(_split_header(text) for text in options.registry_webhook_header)
    except ValueError as error:
        parser.error(str(error))
    endpoints = BotEndpoints(options.webhook_url, options.registry_webhook_url, headers)
    try:
        sandbox = Sandbox(options.dir.resolve(), SandboxOptions(QUICK if options.quick else None))
        asyncio.run(_serve(sandbox, endpoints, options.port_file))
    except PortTaken as error:
        print(error.strerror, file=sys.stderr)
        return _WRONG
    return 0


async def _serve(sandbox: Sandbox, endpoints: BotEndpoints, port_file: Path | None) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with sandbox:
        demo = await sandbox.seed_demo(endpoints)
        line = demo.as_json()
        if port_file is not None:
            write_whole(port_file, f"{line}\n".encode(), private=True)
        print(line, flush=True)
        await stopped.wait()


def _split_header(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise ValueError(f"--registry-webhook-header {text!r} must have the form NAME=VALUE")
    return name, value


if __name__ == "__main__":
    sys.exit(main())
