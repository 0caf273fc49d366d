"""The composition root: the one place that builds the adapters and joins the parts."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette

from bot.adapters.argocd import ArgoCDServer, ArgoCDServers
from bot.adapters.charts import HelmRepositories
from bot.adapters.clock import SystemClock
from bot.adapters.config import DirectorySource, RepositorySource, parse_source
from bot.adapters.git import GitMirror, WatchedRepositories
from bot.adapters.github.app import GitHubApp
from bot.adapters.github.connection import GitHubSettings
from bot.adapters.github.sign_in import GitHubSignIn, OAuthClient
from bot.adapters.http import HttpClient, SystemDns
from bot.adapters.id_tokens import PublishedKeys
from bot.adapters.logins import Logins
from bot.adapters.logs import start_logging
from bot.adapters.messages import MessageChannels
from bot.adapters.oci import ProjectArtifacts, ProjectRegistries
from bot.adapters.oci.wire import Wire
from bot.adapters.rendering import CommandRenderer, RenderTools
from bot.adapters.secrets import SecretStore
from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.terraform import TerraformRunner
from bot.adapters.terraform.tool import Tool
from bot.adapters.vault import KeyFileVault
from bot.domain.events import AppIdentity
from bot.domain.pipeline import Pipeline
from bot.domain.problems import ConfigProblem, Severity, sort_problems
from bot.pipeline import STEP_SCHEMAS, find_not_carried_out, load_pipeline
from bot.ports import ConfigSource, Ports, TerminalError, TransientError
from bot.ports.rendering import RenderTool
from bot.settings import Settings
from bot.steps import build_steps, find_unusable_kinds
from bot.web.access import Access
from bot.web.api import Api
from bot.web.dashboard import Dashboard
from bot.web.reading import Reading
from bot.web.receivers import Receivers
from bot.web.rendering import Renderer
from bot.web.server import make_app
from bot.web.session import Cookies
from bot.web.sign_in import SigningIn
from bot.web.webhooks import Webhooks
from bot.workflow import engine
from bot.workflow.arrival import Arrival
from bot.workflow.by_hand import FreightByHand
from bot.workflow.bystanders import Bystanders
from bot.workflow.commands import Commands
from bot.workflow.configuration import Configuration
from bot.workflow.discovery import Discoverer, make_finders
from bot.workflow.fulfil import Fulfiller
from bot.workflow.intake import Intake
from bot.workflow.looks import Looks
from bot.workflow.measuring import Meter
from bot.workflow.outbox import Outbox
from bot.workflow.preview import Previewer
from bot.workflow.publish import Publisher
from bot.workflow.receivers import ReceivedIntake, ReceiverBook, describe_receivers
from bot.workflow.rehearsal import Rehearsal
from bot.workflow.reporting import Reporter
from bot.workflow.retention import Retention
from bot.workflow.rights import Rights
from bot.workflow.scopes import Evaluators
from bot.workflow.segments import Worker
from bot.workflow.snapshots import Gatherer
from bot.workflow.stages import StageLooker
from bot.workflow.verification import Verifier

log = logging.getLogger(__name__)

AUTHOR_NAME = "lockstep[bot]"


@dataclass(slots=True)
class Lockstep:
    """The program, joined but not started."""

    settings: Settings
    store: DatabaseStore
    github: GitHubApp
    terraform: TerraformRunner
    renderer: CommandRenderer
    configuration: Configuration
    looks: Looks
    ports: Ports


def load(
    files: Mapping[str, str],
    revision: str,
    *,
    replicas: bool = False,
    missing: Mapping[RenderTool, str] | None = None,
) -> tuple[Pipeline, tuple[ConfigProblem, ...]]:
    """A pipeline and its problems from files, with the step kinds that this program has.

    `replicas` says that several bots may work on it, `missing` which programs this machine does not have.
    """
    loaded = load_pipeline(files, revision=revision, step_schemas=STEP_SCHEMAS)
    unusable = find_unusable_kinds(missing or {})
    problems = find_not_carried_out(loaded.pipeline, replicas=replicas, unusable=unusable)
    return loaded.pipeline, sort_problems([*loaded.problems, *problems])


@asynccontextmanager
async def open_lockstep(settings: Settings) -> AsyncIterator[Lockstep]:
    """Build every part, with connections open for as long as the block lasts.

    Raises TerminalError if something that cannot be done without is missing.
    """
    async with AsyncExitStack() as stack:
        settings.data.mkdir(parents=True, exist_ok=True)
        clock, vault = SystemClock(), KeyFileVault(settings.data / "vault.key")
        store = open_store(settings.database, vault)
        stack.callback(store.close)
        github = await stack.enter_async_context(GitHubApp(_github(settings), clock))
        git = GitMirror(settings.data / "mirrors", github.token_for)
        missing = _render_tools(settings).find_missing()
        read = partial(load, replicas=not _is_sqlite(settings), missing=missing)
        configuration = Configuration(_source(settings, git, github), store, read)
        secrets = _secrets(settings, lambda: configuration.pipeline)
        wire = await stack.enter_async_context(Wire(concurrent=4, timeout=30.0))
        hosts = {login.host.lower(): (login.username, login.password) for login in settings.registries}
        logins = Logins(secrets, wire, clock, hosts)
        terraform = TerraformRunner(settings.data, vault, _tool(settings))
        renderer = CommandRenderer(settings.data / "rendering", _render_tools(settings), logins.of_dependency)
        registries = await stack.enter_async_context(ProjectRegistries(logins.of_image))
        http = await stack.enter_async_context(HttpClient())
        ports = Ports(
            clock=clock,
            git=git,
            terraform=terraform,
            github=github,
            argocd=await stack.enter_async_context(ArgoCDServers(_argocd(settings))),
            registry=registries,
            charts=await stack.enter_async_context(HelmRepositories(logins.of_chart)),
            watched=WatchedRepositories(git, settings.data / "watched", github.token_for, logins.of_git),
            secrets=secrets,
            vault=vault,
            http=http,
            dns=SystemDns(),
            store=store,
            renderer=renderer,
            artifacts=ProjectArtifacts(registries),
            issues=github.issues,
            workflows=github.workflows,
            signed_push=github.signed_push,
            messages=MessageChannels(lambda: configuration.pipeline, secrets, http),
        )
        looks = join(settings, ports, store, configuration, await _find_identity(settings, github))
        yield Lockstep(settings, store, github, terraform, renderer, configuration, looks, ports)


async def _find_identity(settings: Settings, github: GitHubApp) -> AppIdentity:
    """Who we are on GitHub. Without the account's id our own pushes only cause a look too many."""
    try:
        for repository in await github.list_repositories():
            return await github.identity(repository)
    except (TransientError, TerminalError) as error:
        log.warning("GitHub did not tell who we are: %s", error)
    return AppIdentity(settings.app_id)


def join(
    settings: Settings,
    ports: Ports,
    store: DatabaseStore,
    configuration: Configuration,
    identity: AppIdentity,
) -> Looks:
    """Join the workflow's parts over the ports."""
    github = ports.github
    runners = build_steps(ports)
    gatherer = Gatherer(store, ports.git, github, ports.clock, configuration)
    # Only where people can sign in there is a page that a link could lead to.
    page = settings.public_url if settings.client_id else ""
    reporter = Reporter(store, github, ports.vault, ports.clock, configuration, page)
    author = (AUTHOR_NAME, f"{settings.app_id}+{AUTHOR_NAME}@users.noreply.github.com")
    publisher = Publisher(ports.git, github, author)
    evaluators = Evaluators(configuration, store, ports.secrets, settings.public_url)
    meter = Meter(ports.http, ports.clock)
    verifier = Verifier(store, meter, ports.secrets, ports.clock, configuration, evaluators)
    looker = StageLooker(gatherer, reporter, publisher, store, github)
    worker = Worker(
        previewer=Previewer(runners, ports.git, ports.vault, ports.clock),
        fulfiller=Fulfiller(runners, ports.git, store, ports.vault, ports.clock),
        publisher=publisher,
        reporter=reporter,
        gatherer=gatherer,
        store=store,
        git=ports.git,
        github=github,
        clock=ports.clock,
        configuration=configuration,
        evaluator=evaluators.of,
        arrival=Arrival(store, ports.clock, verifier),
    )
    source = parse_source(settings.config)
    repository = source[0] if isinstance(source, tuple) else None
    discoverer = Discoverer(make_finders(ports, author[1]), store, ports.clock, settings.settle)
    by_hand = FreightByHand(discoverer, Rights(gatherer), store)
    received = ReceivedIntake(store, github, lambda: configuration.pipeline)
    return Looks(
        store=store,
        github=github,
        clock=ports.clock,
        configuration=configuration,
        stages=looker,
        discoverer=discoverer,
        commands=Commands(store, github, looker, reporter, verifier, by_hand, lambda: identity),
        worker=worker,
        reporter=reporter,
        intake=Intake(store, github, lambda: identity, lambda: configuration.pipeline, repository, received),
        outbox=Outbox(store, github, ports.clock),
        bystanders=Bystanders(gatherer, source if isinstance(source, tuple) else None),
        verifier=verifier,
        retention=Retention(
            store, ports.clock, settings.keep_days, settings.keep_promotions, settings.keep_freight
        ),
    )


@asynccontextmanager
async def run_lockstep(settings: Settings) -> AsyncIterator[Starlette]:
    """Everything started: the engine, the loops, and the web application to be served."""
    async with open_lockstep(settings) as lockstep:
        looks = lockstep.looks
        # Work that a dead process left is taken up as soon as the engine starts, and it needs the pipeline.
        await lockstep.configuration.start()
        await lockstep.terraform.sweep()
        await lockstep.renderer.sweep()
        tasks: list[asyncio.Task[None]] = []
        running = await engine.start(
            _engine_database(settings),
            {"look": looks.do_look, "segment": looks.do_segment},
            executor=_executor(settings),
            on_lost=lambda reason: tasks.append(asyncio.create_task(_leave(lockstep.terraform, reason))),
        )
        looks.stages.engine = running
        tasks += [
            asyncio.create_task(looks.dispatch_for_ever(running)),
            asyncio.create_task(looks.send_for_ever(running)),
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
            api = Api(lockstep.store, settings.api_token)
            yield make_app(webhooks, api, ready, make_dashboard(lockstep), receivers)
        finally:
            # An apply gets the signal to end in good order; what it has done is in the state, and the journal says so.
            lockstep.terraform.interrupt_all("the bot is stopping")
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await running.stop()


def make_dashboard(lockstep: Lockstep) -> Dashboard | None:
    """The bot's own pages, None if people cannot sign in because the App's client is not configured."""
    settings, ports = lockstep.settings, lockstep.ports
    if not settings.client_id:
        return None
    base = urlsplit(settings.public_url).path.rstrip("/")
    hosts = _github(settings)
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


async def _serve(settings: Settings) -> None:
    async with run_lockstep(settings) as app:
        config = uvicorn.Config(
            app, host=settings.host, port=settings.port, log_config=None, access_log=False, lifespan="off"
        )
        await uvicorn.Server(config).serve()


async def preview_stage(settings: Settings, stage: str, freight: str) -> str:
    """What the pull request of a promotion would say. Nothing outside is changed, and no row stays.

    Raises TerminalError if there is no such Stage or Freight, or the task cannot be previewed at all.
    """
    async with open_lockstep(settings) as lockstep:
        await lockstep.configuration.refresh()
        return await Rehearsal(lockstep.looks.worker, lockstep.looks.discoverer).preview(stage, freight)


async def show_receivers(settings: Settings) -> str:
    """Every webhook receiver of the newest configuration, a line each. Raises TransientError and TerminalError."""
    async with GitHubApp(_github(settings), SystemClock()) as github:
        git = GitMirror(settings.data / "mirrors", github.token_for)
        revision, files = await _source(settings, git, github).read()
    pipeline, problems = load(files, revision)
    if any(item.severity is Severity.ERROR and not item.stage for item in problems):
        raise TerminalError(f"the configuration {revision[:12]} is broken; lockstep validate says where")
    return describe_receivers(pipeline, _secrets(settings, lambda: pipeline), settings.public_url)


def _is_sqlite(settings: Settings) -> bool:
    """Whether this is the only process on its database; on PostgreSQL there may be others."""
    return settings.database.startswith("sqlite:///")


def _executor(settings: Settings) -> str:
    """Whose work it is that this process does: one name for all processes on SQLite, where they follow each other."""
    if settings.executor:
        return settings.executor
    if _is_sqlite(settings):
        return "lockstep"
    return f"{socket.gethostname()}-{os.getpid()}"


def _engine_database(settings: Settings) -> str:
    """The engine's own database: beside ours on SQLite, the same one on PostgreSQL."""
    if _is_sqlite(settings):
        path = Path(settings.database.removeprefix("sqlite:///"))
        return f"sqlite:///{path.with_name(f'{path.stem}-engine.db')}"
    return settings.database


def _github(settings: Settings) -> GitHubSettings:
    api = settings.github_url.rstrip("/")
    # github.com and GHE.com have a host for the API, GitHub Enterprise Server a path.
    web = api.replace("://api.", "://", 1) if "://api." in api else api.removesuffix("/api/v3")
    return GitHubSettings(
        app_id=settings.app_id,
        private_key=settings.private_key,
        api_url=f"{api}/",
        web_url=f"{web}/",
        write_interval=settings.pace,
    )


def _source(settings: Settings, git: GitMirror, github: GitHubApp) -> ConfigSource:
    source = parse_source(settings.config)
    if isinstance(source, Path):
        return DirectorySource(source)
    return RepositorySource(source[0], source[1], git, github)


def _tool(settings: Settings) -> Tool:
    return Tool(
        binary=settings.terraform,
        isolation="none" if settings.isolation == "none" else "landlock",
        mirror=Path(settings.provider_mirror) if settings.provider_mirror else None,
        cache=settings.data / "providers",
    )


def _render_tools(settings: Settings) -> RenderTools:
    return RenderTools(settings.helm, settings.kustomize, isolated=settings.isolation != "none")


def _argocd(settings: Settings) -> dict[str, ArgoCDServer]:
    return {
        name: ArgoCDServer(server.url, server.token, insecure=server.insecure, project=server.project)
        for name, server in settings.argocd.items()
    }


def _secrets(settings: Settings, pipeline: Callable[[], Pipeline]) -> SecretStore:
    directory = Path(settings.secrets_directory) if settings.secrets_directory else None
    return SecretStore(pipeline, directory=directory, environment=settings.environment)
