"""Steps that cannot be carried out are an error on the Stage that uses them, when the pipeline is read."""

from __future__ import annotations

import pytest

from bot.app import load
from bot.domain.problems import Severity
from bot.ports.rendering import RenderTool
from bot.steps import NOT_CARRIED_OUT

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
  promotionTemplate: {spec: {steps: [STEP]}}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Stage
metadata: {name: prod, namespace: shop}
spec:
  requestedFreight: [{origin: {kind: Warehouse, name: apps}, sources: {stages: [dev]}}]
"""
TASK = """---
apiVersion: kargo.akuity.io/v1alpha1
kind: PromotionTask
metadata: {name: t, namespace: shop}
spec: {steps: [STEP]}
"""
CONFIGS = {
    "jira": "{credentials: {secretName: j}, createIssue: {projectKey: P, summary: s, issueType: Task}}",
    "jfrog-evidence": "{}",
    "snow-create": "{}",
    "snow-delete": "{}",
    "snow-query-for-records": "{}",
    "snow-update": "{}",
    "snow-wait-for-condition": "{}",
}
HELM = "{path: c, outPath: o, releaseName: r}"
MISSING = {RenderTool.HELM: "helm is not there", RenderTool.KUSTOMIZE: "kustomize is not there"}


def problems(
    step: str, config: str, missing: dict[RenderTool, str] | None = None, *, in_task: bool = False
) -> list[tuple[str, str, str]]:
    """Stage, key and message of every error."""
    written = f"{{uses: {step}, config: {config}}}"
    text = PIPELINE.replace("STEP", "{task: {name: t}}" if in_task else written)
    text += TASK.replace("STEP", written) if in_task else ""
    _, found = load({"p.yaml": text}, "1", missing=missing)
    return [(p.stage, p.key, p.message) for p in found if p.severity is Severity.ERROR]


def test_the_kinds_that_are_not_carried_out_are_those_that_are_tested() -> None:
    assert set(CONFIGS) == NOT_CARRIED_OUT


@pytest.mark.parametrize("in_task", [False, True], ids=["in the Stage", "in a task"])
@pytest.mark.parametrize("kind", sorted(CONFIGS))
def test_a_kind_that_is_not_carried_out_stops_its_stage(kind: str, in_task: bool) -> None:
    found = problems(kind, CONFIGS[kind], in_task=in_task)
    message = (
        f"the step {kind} is understood, but cannot be carried out here: remove it, or use the step http to call what "
        "it calls"
    )
    assert ("dev", "spec.promotionTemplate.spec.steps", message) in found
    assert {stage for stage, _, _ in found} == {"dev"}


def test_its_configuration_is_validated_all_the_same() -> None:
    found = problems("jira", "{credentials: {secretName: j}, createIsue: {}}")
    assert any("createIsue" in message for _, _, message in found)
    assert any("cannot be carried out" in message for _, _, message in found)


@pytest.mark.parametrize(
    ("kind", "config", "said"),
    [
        pytest.param("helm-template", HELM, "helm is not there", id="helm-template"),
        pytest.param("helm-update-chart", "{path: c}", "helm is not there", id="helm-update-chart"),
        pytest.param(
            "kustomize-build", "{path: k, outPath: o}", "kustomize is not there", id="kustomize-build"
        ),
    ],
)
def test_a_missing_program_stops_the_stage_that_needs_it(kind: str, config: str, said: str) -> None:
    assert problems(kind, config) == []
    message = f"the step {kind} is understood, but cannot be carried out here: {said}"
    assert problems(kind, config, MISSING) == [("dev", "spec.promotionTemplate.spec.steps", message)]


def test_a_missing_program_stops_no_stage_that_does_without() -> None:
    assert problems("git-clear", "{path: x}", MISSING) == []


CHANNEL = """---
apiVersion: ee.kargo.akuity.io/v1alpha1
kind: MessageChannel
metadata: {name: slack, namespace: shop}
spec: {slack: {channelID: C1}}
"""


@pytest.mark.parametrize(
    ("channel", "said"),
    [
        pytest.param("{kind: MessageChannel, name: slack}", "", id="one that exists"),
        pytest.param("{kind: MessageChannel, name: '${{ ctx.stage }}'}", "", id="one that is not known yet"),
        pytest.param(
            "{kind: MessageChannel, name: slak}",
            "send-message names the MessageChannel 'slak', which does not exist",
            id="one that does not exist",
        ),
        pytest.param(
            "{kind: ClusterMessageChannel, name: slack}",
            "send-message names the ClusterMessageChannel 'slack', which does not exist",
            id="one of another kind",
        ),
    ],
)
def test_a_channel_must_exist(channel: str, said: str) -> None:
    written = f"{{uses: send-message, config: {{channel: {channel}, message: m}}}}"
    _, found = load({"p.yaml": PIPELINE.replace("STEP", written) + CHANNEL}, "1")
    assert [(p.stage, p.message) for p in found] == ([("dev", said)] if said else [])
