"""What is wrong between resources: references that lead nowhere, Stages in a circle, steps that cannot run.

Such a Stage is loaded but not carried out, so its errors name it; the rest of the pipeline goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bot.domain.availability import find_request
from bot.domain.freight import FreightOrigin
from bot.domain.model import (
    ProjectConfig,
    PromotionWindow,
    Stage,
    Step,
    Warehouse,
)
from bot.domain.pipeline import Pipeline
from bot.domain.problems import ConfigProblem, Severity
from bot.domain.tasks import CLUSTER_TASK, missing_inputs
from bot.domain.windows import check_window, stage_windows
from bot.pipeline.analysis import Spec
from bot.pipeline.analysis_checks import check_metrics, check_template, check_verification
from bot.pipeline.link_checks import check_links
from bot.pipeline.policy_checks import check_review_policy
from bot.pipeline.reader import Path
from bot.pipeline.receiver_checks import check_receivers
from bot.pipeline.resources import Resource, cut_findings
from bot.pipeline.schema import Finding, JsonSchema, listed, nearest, shown
from bot.pipeline.secret_checks import check_secret
from bot.pipeline.step_checks import (
    MOST_STEPS,
    STAGE_STEPS,
    TASK_STEPS,
    StepKinds,
    Surroundings,
    Tasks,
    check_config_shapes,
    check_stage_steps,
    check_task_in_stage,
    check_task_steps,
    count_steps,
    find_task,
    stage_aliases,
    stage_surroundings,
)
from bot.pipeline.warehouse_checks import check_warehouse
from bot.pipeline.watched_writes import check_watched_writes, find_writes


def check_pipeline(
    pipeline: Pipeline, resources: Sequence[Resource], step_schemas: Mapping[str, JsonSchema]
) -> list[ConfigProblem]:
    """Every problem between the pipeline's resources, at its place in the files."""
    checker = _Checker(pipeline, {_key(item): item for item in resources})
    checker.run(StepKinds(step_schemas, pipeline.custom_steps))
    return checker.problems


def _key(resource: Resource) -> tuple[str, str, str]:
    return resource.kind.name, resource.namespace, resource.name


@dataclass(slots=True)
class _Checker:
    pipeline: Pipeline
    resources: Mapping[tuple[str, str, str], Resource]
    problems: list[ConfigProblem] = field(default_factory=list)
    task_findings: dict[tuple[str, str, str], list[Finding]] = field(default_factory=dict)
    """What is wrong with each task by itself; the same for every Stage that uses it."""
    used_templates: set[tuple[str, str, str]] = field(default_factory=set)
    known_names: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    known_tasks: dict[str, Tasks] = field(default_factory=dict)
    known_warehouses: dict[str, Mapping[str, Warehouse]] = field(default_factory=dict)

    def run(self, kinds: StepKinds) -> None:
        self.check_warehouses()
        used: set[tuple[str, str, str]] = set()
        for (project, name), stage in self.pipeline.stages.items():
            key = ("Stage", project, name)
            tasks = self.tasks_of(project)
            self.report(key, self.check_sources(stage), stage=stage)
            self.report(key, check_config_shapes(self.resources[key].spec, STAGE_STEPS), stage=stage)
            self.report(key, self.check_tasks(stage, tasks), stage=stage)
            around = stage_surroundings(stage, self.warehouses_of(project))
            self.report(key, check_stage_steps(stage, tasks, kinds, around), stage=stage)
            self.check_verification(stage)
            used |= self.check_used_tasks(stage, tasks, kinds, around)
        for cycle in find_cycles(self.pipeline):
            self.report_cycle(cycle)
        self.check_unused_tasks(used, kinds)
        self.check_unused_templates()
        for project, config in self.pipeline.project_configs.items():
            self.report(("ProjectConfig", project, project), self.check_policies(project, config))
        self.check_windows()
        if self.pipeline.cluster_config is not None:
            cluster = self.pipeline.cluster_config
            self.report(("ClusterConfig", "", "cluster"), check_receivers(cluster))
            self.report(("ClusterConfig", "", "cluster"), check_links(cluster))
        for (project, name), secret in self.pipeline.secrets.items():
            self.report(("Secret", project, name), check_secret(secret))
        for policy in self.pipeline.review_policies:
            metadata = policy.metadata
            key = ("ReviewPolicy", metadata.namespace, metadata.name)
            self.report(key, check_review_policy(policy))

    def report(
        self,
        key: tuple[str, str, str],
        findings: Iterator[Finding] | Sequence[Finding],
        stage: Stage | None = None,
    ) -> None:
        """Record findings at a resource's place; errors of a Stage are that Stage's alone."""
        resource = self.resources.get(key)
        if resource is None:
            return
        name = stage.metadata.name if stage is not None else ""
        project = stage.metadata.namespace if stage is not None else ""
        told = cut_findings(findings)
        self.problems.extend(resource.problem(item, stage=name, project=project) for item in told)

    def exists(self, kind: str, project: str, name: str) -> bool:
        """Whether a resource stands in the files, be it usable or not: what is broken has been reported there."""
        return (kind, project, name) in self.resources

    def names(self, kind: str, project: str) -> set[str]:
        """The names of all resources of a kind in a project, usable or not."""
        if not self.known_names:
            for of, where, name in self.resources:
                self.known_names.setdefault((of, where), set()).add(name)
        return self.known_names.get((kind, project), set())

    def tasks_of(self, project: str) -> Tasks:
        found = self.known_tasks.get(project)
        if found is None:
            own = {
                ("PromotionTask", name): task
                for (of, name), task in self.pipeline.tasks.items()
                if of == project
            }
            shared = {(CLUSTER_TASK, name): task for name, task in self.pipeline.cluster_tasks.items()}
            found = self.known_tasks[project] = {**own, **shared}
        return found

    def warehouses_of(self, project: str) -> Mapping[str, Warehouse]:
        found = self.known_warehouses.get(project)
        if found is None:
            found = {name: item for (of, name), item in self.pipeline.warehouses.items() if of == project}
            self.known_warehouses[project] = found
        return found

    def check_warehouses(self) -> None:
        """What keeps a Warehouse from working concerns every Stage that asks for its Freight."""
        writes = find_writes(self.pipeline)
        for (project, name), warehouse in self.pipeline.warehouses.items():
            self.report(("Warehouse", project, name), check_watched_writes(warehouse, writes))
            findings = list(check_warehouse(warehouse))
            asking = [
                stage
                for (of, _), stage in self.pipeline.stages.items()
                if findings and of == project and find_request(stage, FreightOrigin(name)) is not None
            ]
            for stage in asking:
                self.report(("Warehouse", project, name), findings, stage=stage)
            if not asking:
                self.report(("Warehouse", project, name), _as_warnings(findings))

    # -- Stages -------------------------------------------------------------------------------------------------

    def check_sources(self, stage: Stage) -> Iterator[Finding]:
        project = stage.metadata.namespace
        for index, request in enumerate(stage.requested_freight):
            path: Path = ("spec", "requestedFreight", index)
            name = request.origin.name
            if not self.exists("Warehouse", project, name):
                hint = nearest(name, self.names("Warehouse", project))
                yield Finding((*path, "origin", "name"), f"there is no Warehouse {shown(name)}{hint}")
            sources = request.sources
            if not sources.direct and not sources.stages:
                yield Finding((*path, "sources"), "give at least one source: direct: true, or stages")
            for position, upstream in enumerate(sources.stages):
                where: Path = (*path, "sources", "stages", position)
                if upstream in sources.stages[:position]:
                    yield Finding(where, f"Stage {shown(upstream)} stands here twice", Severity.WARNING)
                if not self.exists("Stage", project, upstream):
                    hint = nearest(upstream, self.names("Stage", project))
                    yield Finding(where, f"there is no Stage {shown(upstream)}{hint}")
                    continue
                source = self.pipeline.stages.get((project, upstream))
                if source is not None and all(
                    item.origin != request.origin for item in source.requested_freight
                ):
                    message = (
                        f"Stage {shown(upstream)} asks for no Freight of {request.origin}, so none ever comes"
                    )
                    yield Finding(where, message, Severity.WARNING)
        if "targets" in self.resources[("Stage", project, stage.metadata.name)].spec:
            yield Finding(("spec", "targets"), "promotions to targets cannot be carried out here")

    def check_verification(self, stage: Stage) -> None:
        """What is wrong with a Stage's verification, and with the templates that it names, at their own place."""
        project = stage.metadata.namespace
        verification = stage.verification
        if verification is None:
            return
        found: list[Spec] = []
        key = ("Stage", project, stage.metadata.name)
        for index, (kind, name) in enumerate(verification.templates):
            place = (kind, project if kind == "AnalysisTemplate" else "", name)
            resource = self.resources.get(place)
            if resource is None:
                hint = nearest(name, self.names(kind, place[1]))
                path: Path = ("spec", "verification", "analysisTemplates", index, "name")
                self.report(key, [Finding(path, f"there is no {kind} {shown(name)}{hint}")], stage=stage)
                continue
            self.used_templates.add(place)
            shape = check_template(resource.spec)
            self.report(place, shape, stage=stage)
            if all(finding.severity is Severity.WARNING for finding in shape):
                found.append(resource.spec)
                self.report(place, check_metrics(resource.spec, verification, found), stage=stage)
        whole = len(found) == len(verification.templates)
        self.report(key, check_verification(stage, found, whole=whole), stage=stage)

    def check_unused_templates(self) -> None:
        """A template that no Stage uses stops nothing, so what is wrong with it is a warning."""
        for key, resource in self.resources.items():
            if key[0] in ("AnalysisTemplate", "ClusterAnalysisTemplate") and key not in self.used_templates:
                self.report(key, _as_warnings(check_template(resource.spec)))

    # -- Tasks --------------------------------------------------------------------------------------------------

    def check_tasks(self, stage: Stage, tasks: Tasks) -> Iterator[Finding]:
        project = stage.metadata.namespace
        template = stage.template
        variables = (*stage.variables, *template.variables) if template is not None else ()
        for index, step in _task_steps(stage):
            assert step.task is not None
            kind, name = step.task.kind, step.task.name
            task = tasks.get((kind, name))
            path: Path = (*STAGE_STEPS, index)
            if task is not None:
                missing = missing_inputs(task, step, variables)
                if missing:
                    yield Finding((*path, "vars"), f"task {shown(name)} needs a value for {listed(missing)}")
            elif not self.exists(kind, project if kind != CLUSTER_TASK else "", name):
                known = [known for of, known in tasks if of == kind]
                yield Finding(
                    (*path, "task", "name"), f"there is no {kind} {shown(name)}{nearest(name, known)}"
                )

    def check_used_tasks(
        self, stage: Stage, tasks: Tasks, kinds: StepKinds, around: Surroundings
    ) -> set[tuple[str, str, str]]:
        """Check the tasks that a Stage uses, at their own place, and name them."""
        used: set[tuple[str, str, str]] = set()
        if count_steps(stage, tasks) > MOST_STEPS:
            return used
        outputs = stage_aliases(stage, tasks)
        for _, step in _task_steps(stage):
            assert step.task is not None
            task = find_task(step, tasks)
            if task is None:
                continue
            key = (step.task.kind, task.metadata.namespace, task.metadata.name)
            if key not in self.task_findings:
                shapes = check_config_shapes(self.resources[key].spec, TASK_STEPS)
                self.task_findings[key] = [*shapes, *check_task_steps(task, kinds)]
            used.add(key)
            self.report(key, self.task_findings[key], stage=stage)
            self.report(key, check_task_in_stage(task, step, around, outputs), stage=stage)
        return used

    def check_unused_tasks(self, used: set[tuple[str, str, str]], kinds: StepKinds) -> None:
        """A task that no Stage uses stops nothing, so what is wrong with it is a warning."""
        every = [
            *(
                ("PromotionTask", project, name, task)
                for (project, name), task in self.pipeline.tasks.items()
            ),
            *((CLUSTER_TASK, "", name, task) for name, task in self.pipeline.cluster_tasks.items()),
        ]
        for kind, project, name, task in every:
            if (kind, project, name) not in used:
                findings = [
                    Finding(item.path, item.message, Severity.WARNING)
                    for item in check_task_steps(task, kinds)
                ]
                self.report((kind, project, name), findings)

    # -- Projects -----------------------------------------------------------------------------------------------

    def check_policies(self, project: str, config: ProjectConfig) -> Iterator[Finding]:
        stages = self.names("Stage", project)
        for index, policy in enumerate(config.promotion_policies):
            name = policy.selector.name
            if name and ":" not in name and name not in stages:
                message = (
                    f"there is no Stage {shown(name)}, so the policy does nothing{nearest(name, stages)}"
                )
                yield Finding(("spec", "promotionPolicies", index), message, Severity.WARNING)
        yield from check_receivers(config)
        yield from check_links(config)

    def check_windows(self) -> None:
        """A window that cannot be understood might be closed, so the Stages that it is meant for wait."""
        configs = [
            (("ProjectConfig", name, name), config) for name, config in self.pipeline.project_configs.items()
        ]
        if self.pipeline.cluster_config is not None:
            configs.append((("ClusterConfig", "", "cluster"), self.pipeline.cluster_config))
        for key, config in configs:
            for index, window in enumerate(config.promotion_windows):
                findings = list(_check_window(window, ("spec", "promotionWindows", index)))
                if findings:
                    concerned = [
                        stage
                        for stage in self.pipeline.stages.values()
                        if window in stage_windows(self.pipeline, stage)
                    ]
                    for stage in concerned:
                        self.report(key, findings, stage=stage)
                    if not concerned:
                        self.report(key, _as_warnings(findings))

    def report_cycle(self, cycle: tuple[Stage, ...]) -> None:
        names = [stage.metadata.name for stage in cycle]
        way = " -> ".join([*names, names[0]])
        for stage in cycle:
            message = f"Stages wait for each other in a circle: {way}"
            key = ("Stage", stage.metadata.namespace, stage.metadata.name)
            self.report(key, [Finding(("spec", "requestedFreight"), message)], stage=stage)


def _check_window(window: PromotionWindow, path: Path) -> Iterator[Finding]:
    try:
        check_window(window)
    except ValueError as error:
        yield Finding(path, f"the times of the window cannot be understood: {error}")


def _as_warnings(findings: Iterable[Finding]) -> list[Finding]:
    """Findings about what nobody uses: they stop nothing."""
    return [replace(item, severity=Severity.WARNING) for item in findings]


def _task_steps(stage: Stage) -> Iterator[tuple[int, Step]]:
    steps = stage.template.steps if stage.template is not None else ()
    return ((index, step) for index, step in enumerate(steps) if step.task is not None)


def find_cycles(pipeline: Pipeline) -> list[tuple[Stage, ...]]:
    """Circles of Stages that take Freight from each other, each once, beginning with its first name."""
    stages = pipeline.stages
    upstream = {
        key: [
            (key[0], name)
            for request in stage.requested_freight
            for name in request.sources.stages
            if (key[0], name) in stages
        ]
        for key, stage in stages.items()
    }
    found: list[tuple[Stage, ...]] = []
    settled: set[tuple[str, str]] = set()
    for start in sorted(stages):
        trail: dict[tuple[str, str], None] = {}
        waiting = [(start, iter(upstream[start]))] if start not in settled else []
        if waiting:
            trail[start] = None
        while waiting:
            step = next(waiting[-1][1], None)
            if step is None:
                waiting.pop()
                settled.add(trail.popitem()[0])
            elif step in trail:
                way = list(trail)
                circle = way[way.index(step) :]
                first = circle.index(min(circle))
                turned = circle[first:] + circle[:first]
                # The trail leads from a Stage to its source; people think the other way.
                found.append(tuple(stages[item] for item in [turned[0], *reversed(turned[1:])]))
            elif step not in settled:
                trail[step] = None
                waiting.append((step, iter(upstream[step])))
    return found
