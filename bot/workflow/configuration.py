"""The configuration in force: read from its source, the last good one kept when the newest is broken."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from bot.domain.model import DeepLink, ProjectConfig, Stage
from bot.domain.patterns import matches_selector
from bot.domain.pipeline import Pipeline
from bot.domain.problems import ConfigProblem, Severity
from bot.domain.review_policy import ReviewPolicy
from bot.ports import ConfigSource, Store, TerminalError, TransientError

log = logging.getLogger(__name__)

Load = Callable[[Mapping[str, str], str], "tuple[Pipeline, tuple[ConfigProblem, ...]]"]
"""Files by path and a revision to a pipeline and every problem that it has."""


@dataclass(slots=True)
class Configuration:
    """The pipeline that decisions rest on. `problems` are those of the newest revision, good or not."""

    source: ConfigSource
    store: Store
    load: Load
    pipeline: Pipeline = field(default_factory=Pipeline)
    problems: tuple[ConfigProblem, ...] = ()
    newest: str = ""
    """The newest revision that was read; differs from `pipeline.revision` while it is broken."""

    async def refresh(self) -> bool:
        """Read the source again; True if another revision came into force. Raises what the source raises."""
        revision, files = await self.source.read()
        if revision == self.newest:
            return False
        self.newest = revision
        pipeline, self.problems = self.load(files, revision)
        if any(p.severity is Severity.ERROR and not p.stage for p in self.problems):
            log.error(
                "the newest configuration is broken",
                extra={"revision": revision, "problems": len(self.problems)},
            )
            return await self._fall_back()
        await self.store.save_pipeline(revision, files)
        self.pipeline = replace(pipeline, revision=revision)
        return True

    async def start(self) -> None:
        """Have a configuration in force before any work is taken up: the newest, else the last good one."""
        try:
            await self.refresh()
        except (TransientError, TerminalError) as error:
            log.error("the configuration cannot be read: %s", error)
            await self._fall_back()

    async def follow(self) -> None:
        """Take over what another replica has put in force; before any work that rests on the configuration."""
        if await self.store.get_pipeline_revision() == self.pipeline.revision:
            return
        stored = await self.store.get_pipeline()
        if stored is None:
            return
        revision, files = stored
        pipeline, self.problems = self.load(files, revision)
        self.newest = revision
        self.pipeline = replace(pipeline, revision=revision)

    async def _fall_back(self) -> bool:
        """Put the last good configuration in force if none is yet."""
        if self.pipeline.revision:
            return False
        stored = await self.store.get_pipeline()
        if stored is None:
            return False
        revision, files = stored
        pipeline, _ = self.load(files, revision)
        self.pipeline = replace(pipeline, revision=revision)
        return True

    def stage(self, project: str, name: str) -> Stage | None:
        """A Stage of the pipeline in force."""
        return self.pipeline.stages.get((project, name))

    def project_config(self, project: str) -> ProjectConfig | None:
        """The project's policies."""
        return self.pipeline.project_configs.get(project)

    def links(self, project: str) -> tuple[tuple[DeepLink, ...], tuple[DeepLink, ...]]:
        """The links for the project's Freight and for its Stages: its own, then those for all projects."""
        found = [c for c in (self.project_config(project), self.pipeline.cluster_config) if c is not None]
        freight = tuple(link for config in found for link in config.freight_links)
        return freight, tuple(link for config in found for link in config.stage_links)

    def committer(self, name: str, email: str) -> tuple[str, str]:
        """Who commits for all tasks, by `gitClient` of the ClusterConfig; else this name and this address."""
        cluster = self.pipeline.cluster_config
        said = cluster.git_author if cluster is not None else ("", "")
        return said[0] or name, said[1] or email

    def policy(self, stage: Stage) -> ReviewPolicy:
        """The first ReviewPolicy of the project that selects the Stage, else the defaults."""
        return select_policy(self.pipeline, stage)

    def stages_in_order(self, project: str) -> tuple[Stage, ...]:
        """A project's Stages, each after those that it takes Freight from, else by name."""
        rest = {
            name: stage for (owner, name), stage in sorted(self.pipeline.stages.items()) if owner == project
        }
        ordered: list[Stage] = []
        while rest:
            ready = [name for name, stage in rest.items() if not _upstream(stage) & set(rest)]
            # A cycle is a problem of the configuration; here it must only end.
            ordered += [rest.pop(name) for name in ready or list(rest)]
        return tuple(ordered)

    def problem_of(self, project: str, stage: str) -> str:
        """Why a Stage cannot be carried out, with its place; empty if it can."""
        for problem in self.problems:
            if problem.severity is Severity.ERROR and (problem.project, problem.stage) == (project, stage):
                return f"{problem.path}:{problem.line}: {problem.message}"
        return ""


def find_stage(configuration: Configuration, name: str) -> Stage:
    """The Stage that a person names, `[PROJECT/]STAGE`. Raises TerminalError unless there is exactly one."""
    project, _, short = name.rpartition("/")
    stages = configuration.pipeline.stages
    found = [stage for (owner, known), stage in stages.items() if known == short and project in ("", owner)]
    if len(found) != 1:
        names = ", ".join(sorted(f"{owner}/{known}" for owner, known in stages)) or "none"
        raise TerminalError(
            f"{'there is no' if not found else 'several projects have a'} Stage {name}; known: {names}"
        )
    return found[0]


def select_policy(pipeline: Pipeline, stage: Stage) -> ReviewPolicy:
    """The first ReviewPolicy of the project that selects the Stage, else the defaults."""
    for policy in pipeline.review_policies:
        if policy.metadata.namespace in ("", stage.metadata.namespace) and matches_selector(
            policy.selector, stage.metadata.name, stage.metadata.labels
        ):
            return policy
    return ReviewPolicy()


def _upstream(stage: Stage) -> set[str]:
    return {name for request in stage.requested_freight for name in request.sources.stages}
