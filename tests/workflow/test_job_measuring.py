"""The provider `job`: real programs, allowed by the operator and isolated."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from bot.adapters.commands import AllowedCommands, AllowList
from bot.app import load
from bot.domain.analysis import JobQuery, Measurement, Metric, Phase
from bot.pipeline.analysis import merge_templates
from bot.ports import Http
from bot.workflow.measuring import Meter

SECRETS = {"token": "s3cret-token"}
PROBE = """\
#!/bin/sh
echo "asked $1 with $TOKEN as $NAME"
[ "$1" = good ] && exit 0
[ "$1" = slow ] && sleep 30
exit 3
"""


class Hands:
    """A clock that stands still."""

    def now(self) -> datetime:
        return datetime(2026, 5, 1, tzinfo=UTC)


async def measure(directory: Path, query: JobQuery) -> Measurement:
    program = directory / "probe"
    program.write_text(PROBE)
    program.chmod(0o700)
    commands = AllowedCommands(directory / "runs", AllowList((program,)))
    return await Meter(cast(Http, None), Hands(), commands).measure(Metric("probe", query), SECRETS)


def job(argument: str, timeout: float = 60.0, program: str = "probe") -> JobQuery:
    environment = (("TOKEN", "{{ args.token }}"), ("NAME", "lockstep"))
    return JobQuery(program, (argument,), environment, timeout)


@pytest.mark.parametrize(
    ("query", "phase", "said"),
    [
        pytest.param(
            job("good"), Phase.SUCCESSFUL, "asked good with <sensitive: TOKEN> as", id="it ends well"
        ),
        pytest.param(
            job("bad"),
            Phase.FAILED,
            "probe ended with code 3: asked bad with <sensitive: TOKEN>",
            id="it ends badly",
        ),
        pytest.param(job("slow", 0.3), Phase.FAILED, "probe was stopped: ", id="it takes too long"),
        pytest.param(job("good", program="sh"), Phase.ERROR, "", id="it is not allowed"),
        pytest.param(
            job("{{ args.token }}"),
            Phase.ERROR,
            "a secret argument stands in the command",
            id="a secret in it",
        ),
    ],
)
async def test_its_end_is_the_measurement(tmp_path: Path, query: JobQuery, phase: Phase, said: str) -> None:
    found = await measure(tmp_path, query)
    assert found.phase is phase, found.message
    assert found.message.startswith(said)
    assert "s3cret" not in found.message
    assert found.message


TEMPLATE = """\
apiVersion: kargo.akuity.io/v1alpha1
kind: Project
metadata: {name: acme}
---
apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: smoke, namespace: acme}
spec:
  args: [{name: stage}]
  metrics:
    - name: smoke
      provider:
        job:
          metadata: {labels: {a: b}}
          spec:
            backoffLimit: 0
            activeDeadlineSeconds: 90
            template:
              spec:
                restartPolicy: Never
                containers:
                  - name: main
                    image: alpine
                    command: [PROGRAM, --all]
                    args: ["{{ args.stage }}"]
                    env: [{name: A, value: b}]
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Warehouse
metadata: {name: w, namespace: acme}
spec: {subscriptions: [{image: {repoURL: ghcr.io/acme/app}}]}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Stage
metadata: {name: dev, namespace: acme}
spec:
  requestedFreight: [{origin: {kind: Warehouse, name: w}, sources: {direct: true}}]
  promotionTemplate: {spec: {steps: [{uses: fail}]}}
  verification: {analysisTemplates: [{name: smoke}], args: [{name: stage, value: dev}]}
"""


def test_a_job_as_rollouts_users_write_it_is_read(tmp_path: Path) -> None:
    program = tmp_path / "probe"
    program.write_text(PROBE)
    program.chmod(0o700)
    text = TEMPLATE.replace("PROGRAM", "probe")
    pipeline, problems = load({"p.yaml": text}, "r", programs=AllowList((program,)))
    assert problems == ()
    spec = pipeline.analysis_templates["acme", "smoke"].body["spec"]
    assert isinstance(spec, dict)
    (metric,) = merge_templates([spec], {"stage": "dev"}).metrics
    assert metric.query == JobQuery("probe", ("--all", "dev"), (("A", "b"),), 90.0)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        pytest.param(
            "PROGRAM", "probe", "a job of the AnalysisTemplate smoke runs probe: ", id="not allowed"
        ),
        pytest.param("90", "9000", "must be from 1 to 600", id="too long"),
        pytest.param("command: [PROGRAM, --all]", "", "give command", id="no command"),
        pytest.param(
            "value: b}]", "valueFrom: {fieldRef: {}}}]", "valueFrom is not carried out", id="a reference"
        ),
    ],
)
def test_what_cannot_be_run_is_an_error_on_the_stage(old: str, new: str, why: str) -> None:
    _, problems = load({"p.yaml": TEMPLATE.replace(old, new)}, "r")
    told = [problem for problem in problems if why in problem.message]
    assert [problem.stage for problem in told] == ["dev"]
