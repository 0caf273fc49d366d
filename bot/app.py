"""The composition root: the one place that builds the adapters and joins the parts."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from bot.adapters.argocd import ArgoCDServers
from bot.adapters.charts import HelmRepositories
from bot.adapters.clock import SystemClock
from bot.adapters.commands import AllowedCommands, AllowList
from bot.adapters.config import parse_source
from bot.adapters.git import GitMirror, RepositoriesOfProjects
from bot.adapters.github.app import GitHubApp
from bot.adapters.http import HttpClient, SystemDns
from bot.adapters.messages import MessageChannels
from bot.adapters.oci import ProjectArtifacts, ProjectRegistries
from bot.adapters.oci.wire import Wire
from bot.adapters.rendering import CommandRenderer
from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.terraform import TerraformRunner
from bot.adapters.vault import KeyFileVault
from bot.adapting import (
    argocd_servers,
    config_source,
    github_settings,
    make_logins,
    render_tools,
    secret_store,
    terraform_tool,
)
from bot.doctor import examine
from bot.domain.events import AppIdentity
from bot.domain.pipeline import Pipeline
from bot.domain.problems import ConfigProblem, Severity, sort_problems
from bot.pipeline import STEP_SCHEMAS, find_not_carried_out, load_pipeline
from bot.pipeline.job_metric import find_refused_jobs
from bot.ports import Ports, TerminalError, TransientError
from bot.ports.rendering import RenderTool
from bot.settings import Settings
from bot.steps import build_steps, find_unusable_kinds
from bot.steps.custom import StepBook, find_unusable_customs
from bot.workflow.arrival import Arrival
from bot.workflow.benches import Bench
from bot.workflow.by_hand import FreightByHand
from bot.workflow.bystanders import Bystanders
from bot.workflow.commands import Commands
from bot.workflow.configuration import Configuration
from bot.workflow.differing import Differences, StillRunners
from bot.workflow.discovery import Discoverer, make_finders
from bot.workflow.drift import DriftWatch, Surveyor
from bot.workflow.drift_commands import DriftCommands
from bot.workflow.drift_issues import DriftIssues
from bot.workflow.event_routing import EventRouting
from bot.workflow.explaining import Explaining
from bot.workflow.follow_ups import OpenFollowUps
from bot.workflow.fulfil import Fulfiller
from bot.workflow.intake import Intake
from bot.workflow.looks import Looks
from bot.workflow.measuring import Meter
from bot.workflow.outbox import Outbox
from bot.workflow.own_commits import OwnCommits
from bot.workflow.peoples_pulls import PeoplesPulls
from bot.workflow.preview import Previewer
from bot.workflow.publish import Publisher
from bot.workflow.pull_commands import PullCommands
from bot.workflow.pull_reports import PullReports
from bot.workflow.receivers import ReceivedIntake, describe_receivers
from bot.workflow.rehearsal import Rehearsal
from bot.workflow.reporting import Reporter
from bot.workflow.repromotion import Repromoter
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
    commands: AllowedCommands
    configuration: Configuration
    looks: Looks
    ports: Ports


def load(
    files: Mapping[str, str],
    revision: str,
    *,
    replicas: bool = False,
    missing: Mapping[RenderTool, str] | None = None,
    programs: AllowList | None = None,
) -> tuple[Pipeline, tuple[ConfigProblem, ...]]:
    """A pipeline and its problems from files, with the step kinds that this program has.

    `replicas` says that several bots may work on it, `missing` which programs this machine does not have, `programs`
    which ones custom steps may run.
    """
    loaded = load_pipeline(files, revision=revision, step_schemas=STEP_SCHEMAS)
    why_refused = (programs or AllowList()).why_refused
    custom = find_unusable_customs(loaded.pipeline.custom_steps, why_refused)
    unusable = {**custom, **find_unusable_kinds(missing or {})}
    problems = find_not_carried_out(loaded.pipeline, replicas=replicas, unusable=unusable)
    jobs = find_refused_jobs(loaded.pipeline, why_refused)
    return loaded.pipeline, sort_problems([*loaded.problems, *problems, *jobs])


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
        github = await stack.enter_async_context(GitHubApp(github_settings(settings), clock))
        git = GitMirror(settings.data / "mirrors", github.token_for)
        tools = render_tools(settings)
        programs = AllowList(settings.custom_steps)
        missing = tools.find_missing()
        read = partial(load, replicas=not settings.on_sqlite, missing=missing, programs=programs)
        configuration = Configuration(config_source(settings, git, github), store, read)
        secrets = secret_store(settings, lambda: configuration.pipeline)
        wire = await stack.enter_async_context(Wire(concurrent=4, timeout=30.0))
        logins = make_logins(settings, secrets, wire, clock)
        terraform = TerraformRunner(settings.data, vault, terraform_tool(settings))
        renderer = CommandRenderer(settings.data / "rendering", tools, logins.of_dependency)
        is_isolated = settings.isolation != "none"
        commands = AllowedCommands(settings.data / "commands", programs, isolated=is_isolated)
        repositories = RepositoriesOfProjects(
            git, settings.data / "watched", github.token_for, logins.of_git, logins.advise_git
        )
        registries = await stack.enter_async_context(ProjectRegistries(logins.of_image))
        http = await stack.enter_async_context(HttpClient())
        ports = Ports(
            clock=clock,
            git=git,
            project_git=repositories,
            terraform=terraform,
            github=github,
            branch_rules=github.branch_rules,
            argocd=await stack.enter_async_context(ArgoCDServers(argocd_servers(settings))),
            registry=registries,
            charts=await stack.enter_async_context(HelmRepositories(logins.of_chart)),
            watched=repositories,
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
            commands=commands,
            messages=MessageChannels(lambda: configuration.pipeline, secrets, http),
        )
        looks = join(settings, ports, store, configuration, await _find_identity(settings, github))
        yield Lockstep(settings, store, github, terraform, renderer, commands, configuration, looks, ports)


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

    def bench_of(project: str) -> Bench:
        git = ports.project_git.of(project)
        book = StepBook(
            build_steps(ports, git), lambda: configuration.pipeline.custom_steps, ports.commands, ports.vault
        )
        return Bench(git, book)

    gatherer = Gatherer(store, ports.git, github, ports.clock, configuration)
    # Only where people can sign in there is a page that a link could lead to.
    page = settings.public_url if settings.client_id else ""
    reporter = Reporter(store, github, ports.vault, ports.clock, configuration, page)
    author = (AUTHOR_NAME, f"{settings.app_id}+{AUTHOR_NAME}@users.noreply.github.com")
    publisher = Publisher(ports.git, github, author, configuration.committer)
    evaluators = Evaluators(configuration, store, ports.secrets, settings.public_url)
    meter = Meter(ports.http, ports.clock, ports.commands)
    verifier = Verifier(store, meter, ports.secrets, ports.clock, configuration, evaluators)
    follow_ups = OpenFollowUps(store, ports.git, github, ports.branch_rules, ports.clock)
    looker = StageLooker(gatherer, reporter, publisher, store, github, follow_ups)
    worker = Worker(
        previewer=Previewer(bench_of, ports.vault, ports.clock, author),
        fulfiller=Fulfiller(bench_of, store, ports.vault, ports.clock),
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
        follow_ups=follow_ups,
    )
    return _join_looks(
        settings, ports, store, identity, _Joined(looker, reporter, worker, verifier, author[1])
    )


@dataclass(frozen=True, slots=True)
class _Joined:
    """The parts that carry Promotions; `email` is the address that the bot commits with."""

    looker: StageLooker
    reporter: Reporter
    worker: Worker
    verifier: Verifier
    email: str


def _join_looks(
    settings: Settings, ports: Ports, store: DatabaseStore, identity: AppIdentity, joined: _Joined
) -> Looks:
    """What looks at Warehouses, Stages and requests, over the parts that carry Promotions."""
    github, looker, gatherer = ports.github, joined.looker, joined.looker.gatherer
    configuration = gatherer.configuration
    source = parse_source(settings.config)
    own = source if isinstance(source, tuple) else None
    discoverer = Discoverer(
        make_finders(ports, partial(_our_emails, configuration, joined.email)),
        store,
        ports.clock,
        settings.settle,
    )
    routing = EventRouting(store, ports.clock, configuration, ports.messages)
    received = ReceivedIntake(store, github, lambda: configuration.pipeline)
    drift = _watch_drift(ports, store, joined)
    worker, rights = joined.worker, Rights(gatherer)
    bystanders = Bystanders(gatherer, own)
    shown = PullReports(bystanders, joined.reporter)
    people = PeoplesPulls(gatherer, bystanders, worker.previewer, shown, worker.evaluator)
    keep = (settings.keep_days, settings.keep_audit_days, settings.keep_promotions, settings.keep_freight)
    return Looks(
        store=store,
        github=github,
        clock=ports.clock,
        configuration=configuration,
        stages=looker,
        discoverer=discoverer,
        commands=Commands(
            store,
            github,
            looker,
            joined.reporter,
            joined.verifier,
            FreightByHand(discoverer, rights, store),
            DriftCommands(drift, drift.issues, rights),
            PullCommands(people, rights),
            lambda: identity,
            partial(examine, settings, configuration.load, configuration.source),
        ),
        worker=joined.worker,
        reporter=joined.reporter,
        intake=Intake(
            store, github, lambda: identity, lambda: configuration.pipeline, own[0] if own else None, received
        ),
        outbox=Outbox(store, github, ports.clock),
        routing=routing,
        bystanders=bystanders,
        people=people,
        repromoter=Repromoter(people),
        differences=_differences(ports, store, joined),
        verifier=joined.verifier,
        retention=Retention(store, ports.clock, *keep),
        drift=drift,
    )


def _our_emails(configuration: Configuration, email: str) -> set[str]:
    """The addresses that the bot's commits carry."""
    return {email, configuration.committer("", email)[1]}


def _watch_drift(ports: Ports, store: DatabaseStore, joined: _Joined) -> DriftWatch:
    """What looks for drift and shows it."""
    worker, reporter, clock = joined.worker, joined.reporter, ports.clock
    surveyor = Surveyor(worker.previewer, worker.evaluator, ports.terraform, ports.vault, store, clock)
    issues = DriftIssues(ports.issues, ports.github, store, ports.vault, clock, reporter, joined.looker)
    return DriftWatch(surveyor, issues, reporter, store, clock, worker.configuration)


def _differences(ports: Ports, store: DatabaseStore, joined: _Joined) -> Differences:
    """What notices people's commits that undo what a Stage's steps wrote."""
    worker, configuration = joined.worker, joined.worker.configuration

    def still(project: str) -> Bench:
        bench = worker.previewer.benches(project)
        return Bench(bench.git, StillRunners(bench.steps, store))

    emails = partial(_our_emails, configuration, joined.email)
    own = OwnCommits(ports.vault.digest, emails, store, ports.github)
    previewer = Previewer(still, ports.vault, ports.clock)
    return Differences(worker.gatherer, previewer, own, worker.evaluator)


async def preview_stage(settings: Settings, stage: str, freight: str) -> str:
    """What the pull request of a promotion would say. Nothing outside is changed, and no row stays.

    Raises TerminalError if there is no such Stage or Freight, or the task cannot be previewed at all.
    """
    async with open_lockstep(settings) as lockstep:
        await lockstep.configuration.refresh()
        return await Rehearsal(lockstep.looks.worker, lockstep.looks.discoverer).preview(stage, freight)


async def explain_stage(settings: Settings, stage: str) -> str:
    """Why a Stage does what it does, or waits: the decision tree of `/explain`, without any effect.

    The configuration is the one that the bot has in force. Raises TerminalError if there is no such Stage.
    """
    async with open_lockstep(settings) as lockstep:
        await lockstep.configuration.follow()
        looker = lockstep.looks.stages
        return await Explaining(looker.gatherer, looker.reporter).explain(stage)


async def show_receivers(settings: Settings) -> str:
    """Every webhook receiver of the newest configuration, a line each. Raises TransientError and TerminalError."""
    async with GitHubApp(github_settings(settings), SystemClock()) as github:
        git = GitMirror(settings.data / "mirrors", github.token_for)
        revision, files = await config_source(settings, git, github).read()
    pipeline, problems = load(files, revision)
    if any(item.severity is Severity.ERROR and not item.stage for item in problems):
        raise TerminalError(f"the configuration {revision[:12]} is broken; lockstep validate says where")
    return describe_receivers(pipeline, secret_store(settings, lambda: pipeline), settings.public_url)
