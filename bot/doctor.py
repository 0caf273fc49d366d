"""`lockstep doctor`: joins the doctor with the adapters, on the settings alone; nothing that is not there is made."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bot.adapters.app_file import read_manifest
from bot.adapters.argocd import ArgoCDServers
from bot.adapters.clock import SystemClock
from bot.adapters.git import GitMirror
from bot.adapters.github.app import GitHubApp
from bot.adapters.github.connection import Connection
from bot.adapters.github.inspection import AppInspection
from bot.adapters.http import HttpClient
from bot.adapters.machine import LocalMachine
from bot.adapters.oci import ProjectRegistries
from bot.adapters.oci.wire import Wire
from bot.adapting import (
    argocd_servers,
    config_source,
    github_settings,
    make_logins,
    secret_store,
    terraform_tool,
)
from bot.domain.app_manifest import parse_manifest
from bot.domain.doctor import Finding
from bot.domain.pipeline import Pipeline
from bot.ports import ConfigSource
from bot.settings import Settings
from bot.workflow.configuration import Load
from bot.workflow.doctor import Bench, Doctor


@dataclass(slots=True)
class _Learnt:
    """The pipeline, once it is read."""

    pipeline: Pipeline = field(default_factory=Pipeline)

    def take(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline


def diagnose(settings: Settings, load: Load) -> list[Finding]:
    """Every finding about the installation that these settings describe."""
    return asyncio.run(examine(settings, load))


async def examine(settings: Settings, load: Load, config: ConfigSource | None = None) -> list[Finding]:
    """What `diagnose` does, within an event loop; a bot that runs reads the pipeline from its own `config`."""
    async with open_doctor(settings, load, config) as doctor:
        return await doctor.examine()


@asynccontextmanager
async def open_doctor(
    settings: Settings, load: Load, config: ConfigSource | None = None
) -> AsyncIterator[Doctor]:
    """A doctor with connections of his own, open for as long as the block lasts.

    Raises TerminalError if LOCKSTEP_CONFIG is no source at all.
    """
    learnt, clock, github = _Learnt(), SystemClock(), github_settings(settings)
    secrets = secret_store(settings, lambda: learnt.pipeline)
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(GitHubApp(github, clock))
        # Mirrors of its own: those of a bot that runs may be in use, and those of one that never ran are not there.
        mirrors = stack.enter_context(tempfile.TemporaryDirectory(prefix="lockstep-doctor-"))
        git = GitMirror(Path(mirrors), app.token_for)
        connection = await stack.enter_async_context(Connection(github, clock))
        http = await stack.enter_async_context(HttpClient())
        wire = await stack.enter_async_context(Wire(concurrent=4, timeout=30.0))
        logins = make_logins(settings, secrets, wire, clock)
        yield Doctor(
            bench=Bench(settings.app_id, settings.public_url, settings.config, tuple(settings.argocd)),
            machine=LocalMachine(settings.data, settings.database, terraform_tool(settings)),
            github=AppInspection(connection, http, clock),
            manifest=parse_manifest(read_manifest()),
            config=config or config_source(settings, git, app),
            load=load,
            argocd=await stack.enter_async_context(ArgoCDServers(argocd_servers(settings))),
            registries=await stack.enter_async_context(ProjectRegistries(logins.of_image)),
            repository_of=app.repository_of,
            learn=learnt.take,
        )
