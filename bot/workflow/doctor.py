"""Looks at everything that the bot needs, all at once, each look within its time, and judges what it finds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bot.domain.app_manifest import AppManifest
from bot.domain.doctor import (
    Finding,
    fail,
    good,
    judge_application,
    judge_config,
    judge_database,
    judge_directory,
    judge_git,
    judge_isolation,
    judge_key,
    judge_terraform,
    must_mend,
    unknown,
)
from bot.domain.doctor_facts import AppFacts, ApplicationFacts, ConfigFacts
from bot.domain.doctor_github import judge_app, judge_branch, judge_hook, judge_host, judge_installations
from bot.domain.github import Repository
from bot.domain.pipeline import Pipeline
from bot.domain.problems import Severity
from bot.ports import ArgoCD, ConfigSource, Registries, TerminalError, TransientError
from bot.ports.inspecting import GitHubInspection, Inspection
from bot.workflow.configuration import Load, select_policy
from bot.workflow.named import NamedApplication, find_applications, find_branches, find_images

T = TypeVar("T")

_PROBE_SELECTOR = "lockstep.dev/doctor=none"
"""Matches no Application: the answer is short, and shows that the token is good."""
_PROBE_TAG = "lockstep-doctor"
"""A tag that nobody has: that it is missing is an answer that only who may pull gets."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What the doctor is told of the settings: the App's id, the bot's address, and the pipeline's place."""

    app_id: int
    public_url: str
    source: str
    servers: tuple[str, ...]
    """Names of the Argo CD servers."""
    limit: float = 20.0
    """Seconds that one look may take."""


@dataclass(slots=True)
class Doctor:
    """Examines one installation. `repository_of` tells which repository of our GitHub an address names."""

    bench: Bench
    machine: Inspection
    github: GitHubInspection
    manifest: AppManifest
    config: ConfigSource
    load: Load
    argocd: ArgoCD
    registries: Registries
    repository_of: Callable[[str], Repository | None]
    learn: Callable[[Pipeline], None] = lambda _pipeline: None
    """Told of the pipeline as soon as it is read: the registries' logins may be in it."""

    async def examine(self) -> list[Finding]:
        """Every finding, in the order in which things depend on each other."""
        machine, github = self.machine, asyncio.create_task(self._github())
        parts = await asyncio.gather(
            self._look("data directory", "", machine.directory(), judge_directory),
            self._look("vault key", "", machine.key(), judge_key),
            self._look("database", "", machine.database(), judge_database),
            self._look("git", "", machine.git(), judge_git),
            self._look("terraform", "", machine.terraform(), judge_terraform),
            self._look("isolation", "", machine.isolation(), judge_isolation),
            github,
            self._pipeline(github),
        )
        return [finding for part in parts for finding in part]

    async def _look(
        self, check: str, subject: str, look: Awaitable[T], judge: Callable[[T], list[Finding]]
    ) -> list[Finding]:
        """What is found, judged; that nothing could be found is a finding too."""
        try:
            async with asyncio.timeout(self.bench.limit):
                facts = await look
        except TimeoutError:
            said = f"there was no answer within {self.bench.limit:g} s"
            return [fail(check, subject, said, "see that it runs and can be reached from here")]
        except TransientError as error:
            return [
                fail(
                    check,
                    subject,
                    str(error),
                    "see that it runs and can be reached from here, then look again",
                )
            ]
        except TerminalError as error:
            return [fail(check, subject, str(error), "mend it as the message says")]
        return judge(facts)

    # -- GitHub ----------------------------------------------------------------------------------------------------

    async def _github(self) -> list[Finding]:
        found = await self._look("github", "", self.github.host(), judge_host)
        if must_mend(finding for finding in found if finding.check == "github"):
            return [*found, unknown("app", "", "GitHub cannot be asked")]
        apps: list[AppFacts] = []

        def judge(facts: AppFacts) -> list[Finding]:
            apps.append(facts)
            return judge_app(facts, self.manifest)

        found += await self._look("app", str(self.bench.app_id), self.github.app(), judge)
        if not apps or apps[0].permissions is None:
            return [*found, unknown("installation", "", "GitHub does not take us for the App")]
        installations, hook = await asyncio.gather(
            self._look(
                "installation",
                "",
                self.github.installations(),
                lambda items: judge_installations(apps[0], tuple(items), self.manifest),
            ),
            self._look(
                "webhook", "", self.github.hook(), lambda facts: judge_hook(facts, self.bench.public_url)
            ),
        )
        return [*found, *installations, *hook]

    # -- the pipeline and what it names ----------------------------------------------------------------------------

    async def _pipeline(self, github: asyncio.Task[list[Finding]]) -> list[Finding]:
        pipelines: list[Pipeline] = []

        def judge(read: tuple[Pipeline | None, ConfigFacts]) -> list[Finding]:
            pipeline, facts = read
            if pipeline is not None:
                pipelines.append(pipeline)
            return judge_config(facts)

        found = await self._look("configuration", self.bench.source, self._read(), judge)
        if not pipelines:
            return [
                *found,
                unknown("pipeline", "", "what it names cannot be looked at"),
                *await self._servers(()),
            ]
        pipeline = pipelines[0]
        self.learn(pipeline)
        named = [find_applications(pipeline, stage) for stage in pipeline.stages.values()]
        applications = [item for items, _ in named for item in items]
        parts = await asyncio.gather(
            self._branches(pipeline, github),
            self._servers(self._servers_of(pipeline)),
            *(self._application(pipeline, item) for item in applications),
            *(self._image(*item) for item in find_images(pipeline)),
        )
        untold = sum(count for _, count in named)
        rest = [unknown("application", "", f"{untold} are chosen at promotion, by selector or expression")]
        return [*found, *(finding for part in parts for finding in part), *(rest if untold else [])]

    async def _read(self) -> tuple[Pipeline | None, ConfigFacts]:
        source = self.bench.source
        try:
            revision, files = await self.config.read()
        except (TransientError, TerminalError) as error:
            return None, ConfigFacts(source, problem=str(error))
        pipeline, problems = self.load(files, revision)
        errors = [p for p in problems if p.severity is Severity.ERROR]
        shown = tuple(f"{p.path}:{p.line}: {p.key}: {p.message}" for p in errors)
        warnings = len(problems) - len(errors)
        return pipeline, ConfigFacts(source, len(pipeline.stages), shown, warnings)

    async def _branches(self, pipeline: Pipeline, github: asyncio.Task[list[Finding]]) -> list[Finding]:
        """The rules of every branch that some Stage pushes to."""
        wanted: dict[tuple[Repository, str], bool] = {}
        found: list[Finding] = []
        for stage in pipeline.stages.values():
            pushes = select_policy(pipeline, stage).write_back == "Push"
            places, untold = find_branches(pipeline, stage)
            if untold:
                said = f"where Stage {stage.metadata.name} pushes to is told by expressions that only a promotion has"
                found.append(unknown("branch rules", "", said))
            for place in places:
                repository = self.repository_of(place.url)
                if repository is None:
                    said = (
                        f"Stage {stage.metadata.name} pushes there with the project's Secrets; it is no repository of "
                        "this GitHub, so its rules cannot be read"
                    )
                    found.append(
                        unknown("branch rules", place.url, said, "if that is a slip, correct its repoURL")
                    )
                    continue
                key = (repository, place.branch)
                wanted[key] = wanted.get(key, False) or pushes
        if wanted and not any(item.check == "webhook" for item in await github):
            return [*found, unknown("branch rules", "", "GitHub cannot be asked before the App is in order")]
        parts = await asyncio.gather(
            *(self._branch(repository, branch, pushes) for (repository, branch), pushes in wanted.items())
        )
        return [*found, *(finding for part in parts for finding in part)]

    async def _branch(self, repository: Repository, branch: str, pushes: bool) -> list[Finding]:
        look = self.github.branch(repository, branch, pushes=pushes)
        return await self._look(
            "branch rules",
            f"{repository} {branch}".strip(),
            look,
            lambda facts: judge_branch(facts, self.bench.app_id),
        )

    def _servers_of(self, pipeline: Pipeline) -> Sequence[str]:
        """The Argo CD servers that Stages with such a step use."""
        return [
            select_policy(pipeline, stage).argocd_server
            for stage in pipeline.stages.values()
            if any(find_applications(pipeline, stage))
        ]

    async def _servers(self, used: Sequence[str]) -> list[Finding]:
        """Every server of the settings, and those that policies name although the settings do not."""
        names = sorted({*self.bench.servers, *used})
        parts = await asyncio.gather(*(self._server(name) for name in names))
        return [finding for part in parts for finding in part]

    async def _server(self, name: str) -> list[Finding]:
        return await self._look(
            "argocd",
            name,
            self.argocd.list_applications(name, _PROBE_SELECTOR),
            lambda _found: [good("argocd", name, "reachable, and the token is accepted")],
        )

    async def _application(self, pipeline: Pipeline, named: NamedApplication) -> list[Finding]:
        server = select_policy(pipeline, named.stage).argocd_server
        metadata = named.stage.metadata
        return await self._look(
            "application",
            f"{server}/{named.name}",
            self.argocd.get_application(server, named.name, namespace=named.namespace),
            lambda found: judge_application(
                ApplicationFacts(server, named.name, metadata.namespace, metadata.name, found)
            ),
        )

    async def _image(self, project: str, repository: str, insecure: bool) -> list[Finding]:
        registry = await self.registries.of(project)
        return await self._look(
            "registry",
            repository,
            registry.find_image(repository, _PROBE_TAG, insecure=insecure),
            lambda _found: [good("registry", repository, "reachable, and we may pull")],
        )
