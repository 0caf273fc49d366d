"""Analysis templates: what they come to, and what is wrong with them at its place."""

from __future__ import annotations

import pytest
import yaml

from bot.domain.analysis import PrometheusQuery, WebQuery
from bot.domain.problems import Severity
from bot.domain.values import Json
from bot.pipeline import STEP_SCHEMAS, load_pipeline
from bot.pipeline.analysis import AnalysisError, fill, merge_templates

BASE = """\
apiVersion: kargo.akuity.io/v1alpha1
kind: Project
metadata: {name: shop}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Warehouse
metadata: {name: apps, namespace: shop}
spec:
  subscriptions:
    - image: {repoURL: reg.example/app, constraint: ^1.0.0}
"""
DEV = """\
apiVersion: kargo.akuity.io/v1alpha1
kind: Stage
metadata: {name: dev, namespace: shop}
spec:
  vars:
    - {name: host, value: probe.example}
  requestedFreight:
    - origin: {kind: Warehouse, name: apps}
      sources: {direct: true}
  promotionTemplate:
    spec:
      steps:
        - {uses: fail, config: {message: x}}
"""
STAGE = (
    DEV
    + """\
  verification:
    analysisTemplates:
      - name: healthy
    args:
      - {name: host, value: "${{ vars.host }}"}
"""
)
TEMPLATE = """\
apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: healthy, namespace: shop}
spec:
  args:
    - name: host
    - {name: count, value: "5"}
    - name: token
      valueFrom: {secretKeyRef: {name: probe, key: token}}
  metrics:
    - name: ok
      interval: 1m30s
      count: "{{ args.count }}"
      failureLimit: 1
      successCondition: result == "{{ args.host }}"
      provider:
        web:
          url: https://{{args.host}}/ok
          headers:
            - {key: Authorization, value: "Bearer {{ args.token }}"}
          jsonPath: "{$.host}"
  dryRun:
    - metricName: o.*
  measurementRetention:
    - {metricName: ok, limit: 30}
"""


def told(stage: str = STAGE, template: str = TEMPLATE) -> list[str]:
    """Problems of the configuration: file, line, key and the beginning of what is said; warnings are marked."""
    files = {"base.yaml": BASE, "stage.yaml": stage, "template.yaml": template}
    loaded = load_pipeline(files, revision="r", step_schemas=STEP_SCHEMAS)
    assert not loaded.is_broken
    return [
        f"{'~' if p.severity is Severity.WARNING else ''}{p.path}:{p.line} {p.key}: {p.message} [{p.stage}]"
        for p in loaded.problems
    ]


def spec(text: str = TEMPLATE) -> dict[str, Json]:
    made: dict[str, Json] = yaml.safe_load(text)["spec"]
    return made


def test_a_template_with_its_arguments_filled_in() -> None:
    made = merge_templates([spec()], {"host": "h.example", "other": "ignored"})
    (metric,) = made.metrics
    assert (metric.interval, metric.count, metric.failure_limit) == (90.0, 5, 1)
    assert metric.success == 'result == "h.example"'
    assert metric.query == WebQuery(
        "https://h.example/ok",
        headers=(("Authorization", "Bearer {{ args.token }}"),),
        json_path="{$.host}",
    )
    assert (made.dry_run, made.kept) == (frozenset({"ok"}), {"ok": 30})
    assert [(s.name, s.secret, s.key) for s in made.secrets] == [("token", "probe", "token")]


def test_values_never_become_part_of_a_json_body() -> None:
    text = TEMPLATE.replace(
        'jsonPath: "{$.host}"', 'method: POST\n          jsonBody: {host: "{{ args.host }}"}'
    )
    text = text.replace('successCondition: result == "{{ args.host }}"', "successCondition: result")
    (metric,) = merge_templates([spec(text)], {"host": '", "admin": "'}).metrics
    assert isinstance(metric.query, WebQuery)
    assert yaml.safe_load(metric.query.body) == {"host": '", "admin": "'}
    assert ("Content-Type", "application/json") in metric.query.headers


def test_a_query_of_prometheus() -> None:
    provider: Json = {
        "prometheus": {"address": "http://{{args.host}}:9090/", "query": "up{a='{{ args.host }}'}"}
    }
    given = spec()
    given["metrics"] = [{"name": "up", "provider": provider}]
    given["dryRun"] = given["measurementRetention"] = []
    (metric,) = merge_templates([given], {"host": "h"}).metrics
    assert metric.query == PrometheusQuery("http://h:9090", "up{a='h'}")
    assert metric.wanted == 1


def test_several_templates_share_their_arguments() -> None:
    other: dict[str, Json] = {
        "args": [{"name": "host", "value": "fallback"}],
        "metrics": [{"name": "b", "provider": {"web": {"url": "https://{{ args.host }}/b"}}}],
    }
    made = merge_templates([spec(), other], {})
    assert [m.query.url for m in made.metrics if isinstance(m.query, WebQuery)] == [
        "https://fallback/ok",
        "https://fallback/b",
    ]
    with pytest.raises(AnalysisError, match='two metrics are called "ok"'):
        merge_templates([spec(), spec()], {"host": "h"})


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("", "", 'the argument "host" has no value'),
        ("args.host }}/ok", "args.nope }}/ok", ""),
        ('value: "5"', 'value: "many"', "no whole number"),
        ('count: "{{ args.count }}"', 'count: "{{ args.token }}"', "no whole number"),
        ("metricName: o.*", "metricName: x", 'no metric is called "x"'),
    ],
)
def test_what_makes_no_run(old: str, new: str, says: str) -> None:
    given = {} if not old else {"host": "h"}
    if old.startswith("args.host"):
        old, new, says = "https://{{args.host}}/ok", "https://{{args.nope}}/ok", "no argument for"
    with pytest.raises(AnalysisError, match=says):
        merge_templates([spec(TEMPLATE.replace(old, new) if old else TEMPLATE)], given)


def test_filling_in_leaves_what_is_not_known() -> None:
    assert fill("{{args.a}} {{ args.b }} {{ x }}", {"a": "1"}) == "1 {{ args.b }} {{ x }}"


@pytest.mark.parametrize(
    "condition",
    [
        'result == "{{ args.host }}"',
        "result < {{ args.host }}",
        "result.{{ args.host }} > 1",
        "{{ args.host }}",
    ],
)
def test_a_condition_may_use_an_argument_that_is_not_known_yet(condition: str) -> None:
    text = TEMPLATE.replace('result == "{{ args.host }}"', f"'{condition}'")
    assert told(template=text) == []


@pytest.mark.parametrize(
    ("part", "old", "new", "expected"),
    [
        pytest.param(
            "template",
            'successCondition: result == "{{ args.host }}"',
            "successCondition: result >",
            "template.yaml:15 spec.metrics[0].successCondition: the expression cannot be read: unexpected the end",
            id="a condition that cannot be read",
        ),
        pytest.param(
            "template",
            'successCondition: result == "{{ args.host }}"',
            'successCondition: result === "{{ args.host }}"',
            "template.yaml:15 spec.metrics[0].successCondition: the expression cannot be read",
            id="a condition that cannot be read whatever its argument will be",
        ),
        pytest.param(
            "template",
            'successCondition: result == "{{ args.host }}"',
            "failureCondition: rate(result) > 1",
            "template.yaml:15 spec.metrics[0].failureCondition: there is no function rate()",
            id="a function that is not there",
        ),
        pytest.param(
            "stage",
            "- name: healthy",
            "- name: helthy",
            'stage.yaml:16 spec.verification.analysisTemplates[0].name: there is no AnalysisTemplate "helthy"; '
            "did you mean 'healthy'?",
            id="a template that is not there",
        ),
        pytest.param(
            "stage",
            '    args:\n      - {name: host, value: "${{ vars.host }}"}\n',
            "",
            'stage.yaml:14 spec.verification.args: the argument "host" has no value',
            id="an argument without a value",
        ),
        pytest.param(
            "stage",
            'name: host, value: "${{ vars.host }}"',
            "name: hots, value: x",
            '~stage.yaml:18 spec.verification.args[0].name: no template has an argument "hots"',
            id="an argument that nobody asks for",
        ),
        pytest.param(
            "stage",
            "${{ vars.host }}",
            "${{ secret('probe').token }}",
            "stage.yaml:18 spec.verification.args[0].value: people see arguments",
            id="a secret as an argument",
        ),
        pytest.param(
            "stage",
            "    analysisTemplates:\n      - name: healthy\n",
            "",
            "stage.yaml:14 spec.verification: give at least one analysis template",
            id="no template at all",
        ),
        pytest.param(
            "template",
            "https://{{args.host}}/ok",
            "https://{{args.hots}}/ok",
            'template.yaml:18 spec.metrics[0].provider.web.url: there is no argument for "{{args.hots}}"',
            id="a placeholder without an argument",
        ),
        pytest.param(
            "template",
            "interval: 1m30s",
            "interval: often",
            "template.yaml:12 spec.metrics[0].interval: 'often' is no duration",
            id="an interval that is none",
        ),
        pytest.param(
            "template",
            "      interval: 1m30s\n",
            "",
            "spec.metrics[0].interval: an interval must be given where count is more than 1",
            id="several measurements without an interval",
        ),
        pytest.param(
            "template",
            "failureLimit: 1",
            "failureLimit: 7",
            "template.yaml:14 spec.metrics[0].failureLimit: must not be more than count (5)",
            id="a limit above count",
        ),
        pytest.param(
            "template",
            "failureLimit: 1",
            "failureLimit: -1",
            "spec.metrics[0].failureLimit: one of failureLimit and consecutiveSuccessLimit must apply",
            id="no limit applies",
        ),
        pytest.param(
            "template",
            '      count: "{{ args.count }}"\n',
            "",
            "~template.yaml:12 spec.metrics[0].interval: without count it is measured until it fails",
            id="a metric without an end",
        ),
        pytest.param(
            "template",
            'jsonPath: "{$.host}"',
            "jsonPath: $.host",
            "template.yaml:21 spec.metrics[0].provider.web.jsonPath: write the path in braces",
            id="a path without braces",
        ),
        pytest.param(
            "template",
            'jsonPath: "{$.host}"',
            "authentication: {oauth2: {tokenUrl: https://x.example}}",
            "spec.metrics[0].provider.web.authentication: oauth2 and sigv4 are not carried out",
            id="authentication that is not there",
        ),
        pytest.param(
            "template",
            "        web:\n",
            "        datadog:\n",
            'template.yaml:17 spec.metrics[0].provider.datadog: the provider "datadog" needs a client',
            id="another provider",
        ),
        pytest.param(
            "template",
            "failureLimit: 1",
            "failureLimt: 1",
            "~template.yaml:14 spec.metrics[0].failureLimt: unknown key 'failureLimt'; did you mean 'failureLimit'?",
            id="a key that is misspelled",
        ),
        pytest.param(
            "template",
            "failureLimit: 1",
            "failureLimit: [1]",
            "template.yaml:14 spec.metrics[0].failureLimit: must be a whole number",
            id="a list for a number",
        ),
        pytest.param(
            "template",
            "metricName: o.*",
            "metricName: x",
            'spec.dryRun[0].metricName: no metric is called "x"',
            id="a dry run of nothing",
        ),
        pytest.param(
            "template",
            "  dryRun:",
            "  templates:\n    - {templateName: other}\n  dryRun:",
            "spec.templates: templates within templates are not carried out",
            id="templates within templates",
        ),
    ],
)
def test_what_is_wrong_is_told_at_its_place(part: str, old: str, new: str, expected: str) -> None:
    stage, template = STAGE, TEMPLATE
    if part == "stage":
        assert old in stage
        stage = stage.replace(old, new)
    else:
        assert old in template
        template = template.replace(old, new)
    found = told(stage, template)
    assert any(expected in line and line.endswith("[dev]") for line in found), found


def test_a_template_of_the_cluster_serves_every_project() -> None:
    template = TEMPLATE.replace("kind: AnalysisTemplate", "kind: ClusterAnalysisTemplate").replace(
        "name: healthy, namespace: shop", "name: healthy"
    )
    assert (
        told(STAGE.replace("- name: healthy", "- {name: healthy, kind: ClusterAnalysisTemplate}"), template)
        == []
    )


def test_a_template_that_nobody_uses_stops_nothing() -> None:
    stage = STAGE[: STAGE.index("  verification:")]
    (line,) = told(stage, TEMPLATE.replace("metricName: o.*", "metricName: x"))
    assert line.startswith("~template.yaml:")


def test_a_control_flow_stage_does_not_run_its_verification() -> None:
    start, end = STAGE.index("  promotionTemplate:"), STAGE.index("  verification:")
    (line,) = told(STAGE[:start] + STAGE[end:])
    assert line.startswith("~stage.yaml:")
    assert "control-flow" in line
