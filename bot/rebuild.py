"""`lockstep rebuild`: joins what reads GitHub's past with the database that it fills; nobody else may work on that."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path

from bot.adapting import engine_database
from bot.app import Lockstep, open_lockstep
from bot.ports import TerminalError
from bot.settings import Settings
from bot.workflow.engine import lock_sqlite
from bot.workflow.rebuild import Found, Limits, Rebuilder


def run_rebuild(settings: Settings, limits: Limits, *, into_existing: bool) -> Found:
    """Fill the database that these settings name; raises TransientError and TerminalError."""
    return asyncio.run(_rebuild(settings, limits, into_existing=into_existing))


async def _rebuild(settings: Settings, limits: Limits, *, into_existing: bool) -> Found:
    if not (settings.data / "vault.key").exists():
        raise TerminalError(
            f"{settings.data / 'vault.key'} is missing: markers are signed with that key, so without it none is "
            "believed; put the key file of the lost bot there"
        )
    with ExitStack() as stack:
        if settings.on_sqlite:
            stack.enter_context(lock_sqlite(Path(engine_database(settings).removeprefix("sqlite:///"))))
        async with open_lockstep(settings) as lockstep:
            await lockstep.configuration.refresh()
            return await make_rebuilder(lockstep, limits).rebuild(into_existing=into_existing)


def make_rebuilder(lockstep: Lockstep, limits: Limits) -> Rebuilder:
    """What reads and restores, over the parts of the program."""
    ports = lockstep.ports
    return Rebuilder(
        store=lockstep.store,
        github=ports.github,
        history=lockstep.github.history,
        git=ports.git,
        vault=ports.vault,
        clock=ports.clock,
        configuration=lockstep.configuration,
        email=lockstep.looks.stages.publisher.author[1],
        limits=limits,
    )
