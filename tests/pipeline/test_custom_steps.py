"""CustomPromotionStep: what is admitted, what it comes to, and what a Stage that uses one is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.adapters.commands import AllowList
from bot.app import load
from bot.domain.custom_steps import CustomStep, OutputFormat, OutputSource
from bot.domain.problems import Severity
from bot.domain.step_kinds import StepClass

PIPELINE = """
apiVersion: kargo.akuity.io/v1alpha1
kind: Project
metadata: {name: shop}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Warehouse
metadata: {name: apps, namespace: shop}
spec: {subscriptions: [{image: {repoURL: reg.example/app}}]}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Stage
metadata: {name: dev, namespace: shop}
spec:
  requestedFreight: [{origin: {kind: Warehouse, name: apps}, sources: {direct: true}}]
  promotionTemplate: {spec: {steps: [STEPS]}}
---
apiVersion: ee.kargo.akuity.io/v1alpha1
kind: CustomPromotionStep
metadata: {name: scan, annotations: ANNOTATIONS}
spec: SPEC
"""
USE = "{uses: scan, config: {path: charts}}"
SPEC = "{image: acme/scan, command: [scan, '${{ config.path }}']}"
IMAGE = (
    "the image is not pulled: the command runs on the bot's machine, isolated as Terraform is, and its program must be "
    "one that the operator allows (LOCKSTEP_CUSTOM_STEPS)"
)


@pytest.fixture
def programs(tmp_path: Path) -> AllowList:
    (tmp_path / "scan").write_text("#!/bin/sh\n")
    (tmp_path / "scan").chmod(0o755)
    return AllowList((tmp_path,))


def told(
    spec: str = SPEC, steps: str = USE, annotations: str = "{}", programs: AllowList | None = None
) -> list[tuple[str, str, str]]:
    """Stage, key and message of every problem but the warning of the image."""
    text = PIPELINE.replace("SPEC", spec).replace("STEPS", steps).replace("ANNOTATIONS", annotations)
    _, found = load({"p.yaml": text}, "1", programs=programs)
    assert all(p.path == "p.yaml" and p.line for p in found)
    return [(p.stage, p.key, p.message) for p in found if p.message != IMAGE]


def defined(spec: str, annotations: str = "{}") -> CustomStep:
    text = PIPELINE.replace("SPEC", spec).replace("STEPS", USE).replace("ANNOTATIONS", annotations)
    return load({"p.yaml": text}, "1")[0].custom_steps["scan"]


def test_the_image_is_said_not_to_be_pulled_at_its_line(programs: AllowList) -> None:
    text = PIPELINE.replace("SPEC", SPEC).replace("STEPS", USE).replace("ANNOTATIONS", "{}")
    _, found = load({"p.yaml": text}, "1", programs=programs)
    assert [(p.line, p.key, p.severity, p.message) for p in found] == [
        (21, "spec.image", Severity.WARNING, IMAGE)
    ]


def test_everything_of_a_definition_is_read() -> None:
    step = defined(
        "{image: i, command: [scan, '${{ config.path }}'], env: [{name: LEVEL, value: high}], defaultTimeout: 2m, "
        "defaultErrorThreshold: 3, output: {source: {type: File, path: out.json}, format: JSON, transform: {n: "
        "'len(output)'}}}",
        "{lockstep.dev/preview: read}",
    )
    assert (step.command, step.env) == (("scan", "${{ config.path }}"), (("LEVEL", "high"),))
    assert (step.source, step.path, step.format) == (OutputSource.FILE, "out.json", OutputFormat.JSON)
    assert (step.transform, step.timeout, step.error_threshold) == ({"n": "len(output)"}, 120.0, 3)
    assert step.step_class is StepClass.READ


def test_what_is_not_said_is_as_in_kargo_and_acts() -> None:
    step = defined("{image: i, command: [scan]}")
    assert (step.source, step.format, step.step_class) == (
        OutputSource.PIPE,
        OutputFormat.KEY_VALUE,
        StepClass.ACT,
    )


@pytest.mark.parametrize(
    ("spec", "key", "said"),
    [
        pytest.param("{command: [scan]}", "spec.image", "'image' is missing", id="no image"),
        pytest.param("{image: i, comand: [scan]}", "spec.comand", "unknown key", id="a misspelt key"),
        pytest.param(
            "{image: i, command: ['${{ config.program }}']}",
            "spec.command[0]",
            "without expressions",
            id="a computed program",
        ),
        pytest.param(
            "{image: i, command: [scan, '${{ config. }}']}",
            "spec.command[1]",
            "cannot be read",
            id="a broken expression",
        ),
        pytest.param(
            "{image: i, command: [scan, '${{ ctx.stage }}']}",
            "spec.command[1]",
            "ctx is not known here",
            id="ctx in a command",
        ),
        pytest.param(
            "{image: i, env: [{name: LD_PRELOAD, value: x}]}",
            "spec.env[0].name",
            "LD_PRELOAD cannot be set",
            id="LD_PRELOAD",
        ),
        pytest.param(
            "{image: i, env: [{name: PATH, value: x}]}", "spec.env[0].name", "cannot be set", id="PATH"
        ),
        pytest.param(
            "{image: i, env: [{name: PYTHONSTARTUP, value: x}]}",
            "spec.env[0].name",
            "cannot be set",
            id="PYTHON…",
        ),
        pytest.param(
            "{image: i, env: [{name: BASH_ENV, value: x}]}",
            "spec.env[0].name",
            "cannot be set",
            id="BASH_ENV",
        ),
        pytest.param(
            "{image: i, env: [{name: A, value: x}, {name: A, value: z}]}",
            "spec.env[1].name",
            "used by an earlier",
            id="a variable twice",
        ),
        pytest.param(
            "{image: i, output: {format: XML}}", "spec.output.format", "XML", id="an unknown format"
        ),
        pytest.param(
            "{image: i, output: {source: {type: File}}}",
            "spec.output.source.path",
            "'path' is missing",
            id="a file without a path",
        ),
        pytest.param(
            "{image: i, output: {source: {type: File, path: ../x}}}",
            "spec.output.source.path",
            "leaves the work tree",
            id="a path out",
        ),
        pytest.param(
            "{image: i, output: {source: {type: File, path: /etc/x}}}",
            "spec.output.source.path",
            "leaves the work tree",
            id="an absolute path",
        ),
        pytest.param(
            "{image: i, output: {transform: {n: 'output.'}}}",
            "spec.output.transform.n",
            "cannot be read",
            id="a broken transform",
        ),
        pytest.param(
            "{image: i, defaultTimeout: 2h}", "spec.defaultTimeout", "50m at most", id="a timeout too long"
        ),
        pytest.param(
            "{image: i, defaultTimeout: soon}",
            "spec.defaultTimeout",
            "no duration",
            id="a timeout that is none",
        ),
        pytest.param(
            "{image: i, capabilities: [root]}", "spec.capabilities[0]", "root", id="an unknown capability"
        ),
        pytest.param(
            "{image: i, resources: {limits: {cpu: 1}}}",
            "spec.resources",
            "for containers",
            id="resources, a warning",
        ),
    ],
)
def test_a_wrong_definition_is_told_at_its_key(spec: str, key: str, said: str) -> None:
    found = [message for _, where, message in told(spec) if where == key]
    assert any(said in message for message in found), told(spec)


def test_the_annotation_is_edit_or_read(programs: AllowList) -> None:
    assert told(annotations="{lockstep.dev/preview: edit}", programs=programs) == []
    assert ("", "metadata.annotations.lockstep.dev/preview") in [
        (stage, key) for stage, key, _ in told(annotations="{lockstep.dev/preview: reed}", programs=programs)
    ]


def test_a_definition_cannot_take_the_name_of_a_step(programs: AllowList) -> None:
    text = PIPELINE.replace("SPEC", SPEC).replace("STEPS", "{uses: git-clear, config: {path: x}}")
    text = text.replace("ANNOTATIONS", "{}").replace("name: scan", "name: git-clear")
    pipeline, found = load({"p.yaml": text}, "1", programs=programs)
    assert pipeline.custom_steps == {}
    assert any(p.key == "metadata.name" and "already" in p.message for p in found)


STEPS = "spec.promotionTemplate.spec.steps"
HERE = "the step scan is understood, but cannot be carried out here: "


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param(
            "{image: i, command: [other, '${{ config.path }}']}",
            "the program 'other' is not among those that the operator of this bot allows, or is not executable; add "
            "it to LOCKSTEP_CUSTOM_STEPS",
            id="a program that is not allowed",
        ),
        pytest.param(
            "{image: i, command: [/bin/sh, -c, '${{ config.path }}']}",
            "the program '/bin/sh' is not among those that the operator of this bot allows, or is not executable; add "
            "it to LOCKSTEP_CUSTOM_STEPS",
            id="a shell",
        ),
        pytest.param(
            "{image: i, command: [scan, '${{ config.path }}'], capabilities: [access-argocd]}",
            "it asks for access-argocd, access to Kargo's control plane or to Argo CD, which no command gets here; "
            "remove `capabilities`, and use argocd-update and argocd-wait",
            id="a capability",
        ),
        pytest.param(
            "{image: i, env: [{name: P, value: '${{ config.path }}'}]}",
            "the image alone says what it runs, and images are not run here; give `command`",
            id="an image without a command",
        ),
    ],
)
def test_what_cannot_be_carried_out_stops_its_stage(spec: str, said: str, programs: AllowList) -> None:
    assert told(spec, programs=programs) == [("dev", STEPS, HERE + said)]


def test_without_an_allow_list_nothing_runs() -> None:
    (found,) = told()
    assert found[:2] == ("dev", STEPS)
    assert "the operator of this bot allows no program for custom steps" in found[2]


def test_a_definition_that_no_stage_uses_stops_none() -> None:
    assert told("{image: i, command: [other]}", "{uses: git-clear, config: {path: x}}") == []


@pytest.mark.parametrize(
    ("command", "config", "said"),
    [
        pytest.param("${{ config.path }}", "{path: x}", [], id="what is needed"),
        pytest.param(
            "${{ config.path }}",
            "{paht: x}",
            [
                "\"path\" is missing: the command of scan needs it; did you mean 'paht'?",
                "unknown key \"paht\": nothing of scan reads it; did you mean 'path'?",
            ],
            id="a misspelt key",
        ),
        pytest.param("${{ config?.path }}", "{}", [], id="a key that may be missing"),
        pytest.param("${{ config.path ?? 'x' }}", "{}", [], id="a key with a default"),
        pytest.param("${{ toJSON(config) }}", "{any: 1}", [], id="the config as a whole"),
        pytest.param('${{ config["path"] }}', "{path: x}", [], id="a key in brackets"),
        pytest.param(
            "constant", "{path: x}", ['unknown key "path": nothing of scan reads it'], id="no config at all"
        ),
    ],
)
def test_a_config_is_held_to_what_the_definition_reads(
    command: str, config: str, said: list[str], programs: AllowList
) -> None:
    spec = (
        f"{{image: i, command: [scan, {command!r}]}}"
        if '"' not in command
        else f"{{image: i, command: [scan, '{command}']}}"
    )
    if "'" in command:
        spec = f'{{image: i, command: [scan, "{command}"]}}'
    found = told(spec, f"{{uses: scan, config: {config}}}", programs=programs)
    assert [message for _, _, message in found] == said


def test_an_act_before_the_review_stops_its_stage(programs: AllowList) -> None:
    steps = f"{USE}, {{uses: git-open-pr, config: {{repoURL: 'https://e/r', targetBranch: main, sourceBranch: b}}}}, "
    steps += "{uses: git-wait-for-pr, config: {repoURL: 'https://e/r', prNumber: 1}}"
    acting = [message for _, _, message in told(steps=steps, programs=programs)]
    assert any("scan stands before git-wait-for-pr" in message for message in acting)
    edits = told(steps=steps, annotations="{lockstep.dev/preview: edit}", programs=programs)
    assert not any("stands before" in message for _, _, message in edits)
