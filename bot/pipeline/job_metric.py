"""The provider `job` of a metric: a command, run as the operator allows it.

Argo Rollouts runs a Job in the cluster, and its end is the measurement. Here there is no cluster: the command of the
Job's one container is run on the bot's machine, isolated, and its image means nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from bot.domain.analysis import JobQuery
from bot.domain.pipeline import Pipeline
from bot.domain.problems import ConfigProblem
from bot.domain.values import Json
from bot.pipeline.access import int_at, list_at, mapping_at, mappings_at, text_at

_DEFAULT_SECONDS = 60
_MOST_SECONDS = 600


class Filling(Protocol):
    """Fills arguments into texts, and notes what is wrong, by key below the metric."""

    def filled(self, value: Json, *key: str) -> str: ...

    def complain(self, message: str, *key: str) -> None: ...


def read_job(raw: Json, reading: Filling) -> JobQuery:
    """The command of a metric's Job."""
    where = ("provider", "job", "spec", "template", "spec", "containers")
    spec = mapping_at(raw, "spec")
    containers = mappings_at(mapping_at(spec, "template", "spec"), "containers")
    if len(containers) != 1:
        reading.complain(f"give one container, not {len(containers)}: its command is what is run", *where)
    container: dict[str, Json] = containers[0] if containers else {}
    command = [reading.filled(item, *where, "command") for item in list_at(container, "command")]
    arguments = [reading.filled(item, *where, "args") for item in list_at(container, "args")]
    if containers and not command:
        reading.complain("give command: images are not run here, so the image's own is not known", *where)
    environment: list[tuple[str, str]] = []
    for item in mappings_at(container, "env"):
        if "valueFrom" in item:
            message = "valueFrom is not carried out; give a value with a secret argument (args[].valueFrom)"
            reading.complain(message, *where, "env")
        environment.append((text_at(item, "name"), reading.filled(item.get("value"), *where, "env")))
    timeout = int_at(spec, "activeDeadlineSeconds", _DEFAULT_SECONDS)
    if not 0 < timeout <= _MOST_SECONDS:
        reading.complain(
            f"must be from 1 to {_MOST_SECONDS}", "provider", "job", "spec", "activeDeadlineSeconds"
        )
    return JobQuery(
        command[0] if command else "", (*command[1:], *arguments), tuple(environment), float(timeout)
    )


def find_refused_jobs(pipeline: Pipeline, why_refused: Callable[[str], str]) -> Iterator[ConfigProblem]:
    """An error on every Stage whose verification runs a program that the operator does not allow."""
    for (project, name), stage in pipeline.stages.items():
        for kind, template in stage.verification.templates if stage.verification is not None else ():
            owner = project if kind == "AnalysisTemplate" else ""
            document = pipeline.analysis_templates.get((owner, template))
            if document is None:
                continue
            for program in _programs(dict(document.body)):
                refused = why_refused(program)
                if refused:
                    yield ConfigProblem(
                        document.metadata.source.path,
                        document.metadata.source.line,
                        "spec.metrics",
                        f"a job of the {kind} {template} runs {program}: {refused}",
                        stage=name,
                        project=project,
                    )


def _programs(body: dict[str, Json]) -> Iterator[str]:
    """The programs of a template's Jobs, except those that an argument names."""
    for metric in mappings_at(mapping_at(body, "spec"), "metrics"):
        containers = mapping_at(metric, "provider", "job", "spec", "template", "spec")
        for container in mappings_at(containers, "containers"):
            command = list_at(container, "command")
            if command and isinstance(command[0], str) and "{{" not in command[0]:
                yield command[0]
