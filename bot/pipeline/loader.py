"""The loader: configuration texts to a pipeline and every problem, at once and at its line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.domain.custom_steps import CustomStep
from bot.domain.model import (
    Document,
    Metadata,
    ProjectConfig,
    PromotionTask,
    Stage,
    Warehouse,
)
from bot.domain.pipeline import Pipeline
from bot.domain.problems import ConfigProblem, Severity, sort_problems
from bot.domain.review_policy import ReviewPolicy
from bot.pipeline.checks import check_pipeline
from bot.pipeline.kinds.builders import (
    build_policies,
    build_project_config,
    build_stage,
    build_task,
    build_warehouse,
)
from bot.pipeline.kinds.custom_steps import build_custom_step
from bot.pipeline.kinds.review_policy import build_review_policy
from bot.pipeline.resources import Resource, read_resources
from bot.pipeline.schema import JsonSchema


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a configuration comes to: the pipeline without what is broken, and all problems, by file and line."""

    pipeline: Pipeline
    problems: tuple[ConfigProblem, ...] = ()

    @property
    def is_broken(self) -> bool:
        """Whether an error concerns more than one Stage, so that this revision must not come into force."""
        return any(item.severity is Severity.ERROR and not item.stage for item in self.problems)


def load_pipeline(
    files: Mapping[str, str], *, revision: str, step_schemas: Mapping[str, JsonSchema]
) -> Loaded:
    """The pipeline that configuration files describe; never raises, whatever they hold.

    `files` maps paths to texts (only .yaml, .yml and .json are read); `step_schemas` has the step kinds that can
    be carried out.
    """
    reading = read_resources(files)
    draft = _Draft()
    for resource in reading.resources:
        if resource.usable:
            draft.add(resource)
    pipeline = draft.pipeline(revision, tuple(reading.projects))
    problems = [*reading.problems, *check_pipeline(pipeline, reading.resources, step_schemas)]
    return Loaded(pipeline, sort_problems(problems))


@dataclass(slots=True)
class _Draft:
    """The pipeline while it grows."""

    warehouses: dict[tuple[str, str], Warehouse] = field(default_factory=dict)
    stages: dict[tuple[str, str], Stage] = field(default_factory=dict)
    tasks: dict[tuple[str, str], PromotionTask] = field(default_factory=dict)
    cluster_tasks: dict[str, PromotionTask] = field(default_factory=dict)
    project_configs: dict[str, ProjectConfig] = field(default_factory=dict)
    old_projects: dict[str, ProjectConfig] = field(default_factory=dict)
    cluster_config: ProjectConfig | None = None
    review_policies: list[ReviewPolicy] = field(default_factory=list)
    custom_steps: dict[str, CustomStep] = field(default_factory=dict)
    analysis_templates: dict[tuple[str, str], Document] = field(default_factory=dict)
    secrets: dict[tuple[str, str], Document] = field(default_factory=dict)
    config_maps: dict[tuple[str, str], Document] = field(default_factory=dict)
    others: list[Document] = field(default_factory=list)

    def add(self, resource: Resource) -> None:
        """Put one admitted resource where it belongs."""
        metadata, spec = resource.metadata(), resource.spec
        key = (metadata.namespace, metadata.name)
        match resource.kind.name:
            case "Warehouse":
                self.warehouses[key] = build_warehouse(metadata, spec)
            case "Stage":
                self.stages[key] = build_stage(metadata, spec, resource.locate)
            case "PromotionTask":
                self.tasks[key] = build_task(metadata, spec, resource.locate, cluster=False)
            case "ClusterPromotionTask":
                self.cluster_tasks[metadata.name] = build_task(metadata, spec, resource.locate, cluster=True)
            case "Project":
                policies = build_policies(spec)
                self.old_projects[metadata.name] = ProjectConfig(metadata, promotion_policies=policies)
            case "ProjectConfig":
                self.project_configs[metadata.namespace] = build_project_config(metadata, spec, cluster=False)
            case "ClusterConfig":
                self.cluster_config = build_project_config(metadata, spec, cluster=True)
            case "ReviewPolicy":
                self.review_policies.append(build_review_policy(metadata, spec))
            case "CustomPromotionStep":
                self.custom_steps[metadata.name] = build_custom_step(metadata, spec)
            case _:
                self.add_document(resource, metadata)

    def add_document(self, resource: Resource, metadata: Metadata) -> None:
        """Keep a resource as it was written."""
        kind = resource.kind
        document = Document(kind.api_version, kind.name, metadata, resource.body)
        key = (metadata.namespace, metadata.name)
        match kind.name:
            case "AnalysisTemplate" | "ClusterAnalysisTemplate":
                self.analysis_templates[key] = document
            case "Secret":
                self.secrets[key] = document
            case "ConfigMap":
                self.config_maps[key] = document
            case _:
                self.others.append(document)

    def pipeline(self, revision: str, projects: tuple[str, ...]) -> Pipeline:
        """The finished pipeline; policies that stand in a Project serve where there is no ProjectConfig."""
        configs = dict(self.project_configs)
        for name, old in self.old_projects.items():
            if old.promotion_policies:
                configs.setdefault(name, old)
        return Pipeline(
            revision=revision,
            projects=projects,
            warehouses=self.warehouses,
            stages=self.stages,
            tasks=self.tasks,
            cluster_tasks=self.cluster_tasks,
            project_configs=configs,
            cluster_config=self.cluster_config,
            review_policies=tuple(self.review_policies),
            custom_steps=self.custom_steps,
            analysis_templates=self.analysis_templates,
            secrets=self.secrets,
            config_maps=self.config_maps,
            others=tuple(self.others),
        )
