"""`lockstep audit`: the audit log of the database that the settings name, printed or held against GitHub."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.app import open_lockstep
from bot.domain.audit import AuditRow
from bot.domain.marker import Marker
from bot.ports import TerminalError
from bot.rebuild import make_rebuilder
from bot.settings import Settings
from bot.workflow.auditor import Auditor, Verdict, Wanted
from bot.workflow.rebuild import Limits


def read_audit(settings: Settings, wanted: Wanted) -> Sequence[AuditRow]:
    """The entries that are wanted; raises TerminalError if there is no database."""
    store = _open(settings)
    try:
        return asyncio.run(_read(store, wanted))
    finally:
        store.close()


async def _read(store: DatabaseStore, wanted: Wanted) -> Sequence[AuditRow]:
    return [row async for row in Auditor(store, _no_markers).read(wanted)]


def verify_audit(settings: Settings, limits: Limits) -> Verdict:
    """Hold the whole log against itself and against GitHub; raises TransientError and TerminalError."""
    _open(settings).close()
    return asyncio.run(_verify(settings, limits))


async def _verify(settings: Settings, limits: Limits) -> Verdict:
    async with open_lockstep(settings) as lockstep:
        rebuilder = make_rebuilder(lockstep, limits)
        return await Auditor(lockstep.store, rebuilder.list_markers).verify()


async def _no_markers() -> Sequence[tuple[str, Marker]]:
    return ()


def _open(settings: Settings) -> DatabaseStore:
    """The store of a bot that ran; nothing is made where none did."""
    key = settings.data / "vault.key"
    if not key.exists():
        raise TerminalError(f"{key} is missing: no bot ever ran with LOCKSTEP_DATA={settings.data}")
    return open_store(settings.database, KeyFileVault(key))
