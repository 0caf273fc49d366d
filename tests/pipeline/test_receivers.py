"""What is said of webhook receivers that cannot do what their author wants."""

from __future__ import annotations

import pytest

from bot.pipeline import STEP_SCHEMAS, load_pipeline


def told(receiver: str, kind: str = "ProjectConfig") -> list[str]:
    """Every problem of one receiver, as severity, key and message."""
    namespace = "\n  namespace: shop" if kind == "ProjectConfig" else ""
    name = "shop" if kind == "ProjectConfig" else "cluster"
    text = (
        f"apiVersion: kargo.akuity.io/v1alpha1\nkind: {kind}\nmetadata:\n  name: {name}{namespace}\n"
        f"spec:\n  webhookReceivers:\n    - {receiver}\n"
    )
    loaded = load_pipeline({"a.yaml": text}, revision="r", step_schemas=STEP_SCHEMAS)
    prefix = "spec.webhookReceivers[0]."
    return [
        f"{problem.severity.value} {problem.key.removeprefix(prefix)}: {problem.message}"
        for problem in loaded.problems
        if problem.key.startswith(prefix)
    ]


@pytest.mark.parametrize(
    "receiver",
    [
        "{name: r, quay: {secretRef: {name: s}}}",
        "{name: r, distribution: {secretRef: {name: s}, registry: 'r.example:5000'}}",
        "{name: r, ecr: {secretRef: {name: s}}}",
        "{name: r, gar: {audience: a, serviceAccount: s@example.com}}",
        "{name: r, nexus: {secretRef: {name: s}, registry: n.example}}",
        "{name: r, ci: {secretRef: {name: s}}}",
        "{name: r, ci: {oidc: {audience: a, claims: {repository_owner_id: '7', ref: 'glob:refs/heads/*'}}}}",
        "{name: r, ci: {oidc: {issuer: 'https://gitlab.com', audience: a, claims: {project_path: 'acme/api'}}}}",
        "{name: r, generic: {secretRef: {name: s}, actions: [{action: Refresh, whenExpression: 'request.body.a == 1',"
        " targetSelectionCriteria: [{kind: Warehouse, name: '${{ request.body.name }}'}]}]}}",
    ],
)
@pytest.mark.parametrize("kind", ["ProjectConfig", "ClusterConfig"])
def test_a_receiver_that_can_work_is_no_problem(receiver: str, kind: str) -> None:
    assert told(receiver, kind) == []


@pytest.mark.parametrize(
    ("receiver", "expected"),
    [
        (
            "{name: r, quay: {secretRef: {}}}",
            "warning quay.secretRef: no Secret is named, so the receiver accepts no event",
        ),
        ("{name: r, ci: {}}", "error ci: give secretRef (signed bodies), oidc (ID tokens) or both"),
        (
            "{name: r, ci: {oidc: {audience: a, claims: {ref: refs/heads/main}}}}",
            "error ci.oidc.claims: give at least one claim that says whose job it is: repository, ",
        ),
        (
            "{name: r, ci: {oidc: {audience: a, issuer: 'http://i.example', claims: {sub: x}}}}",
            "error ci.oidc.issuer: the issuer's keys must come by https",
        ),
        ("{name: r, ci: {oidc: {audience: a, claims: {sub: 'regex:('}}}}", "error ci.oidc.claims.sub: "),
        ("{name: r, ci: {oidc: {claims: {sub: x}}}}", "error ci.oidc.audience: "),
        ("{name: r, gar: {audience: a}}", "error gar.serviceAccount: "),
        ("{name: r, nexus: {secretRef: {name: s}}}", "error nexus.registry: "),
        (
            "{name: r, generic: {secretRef: {name: s}, actions: [{action: Refresh, whenExpression: 'a ==',"
            " targetSelectionCriteria: [{kind: Warehouse, name: x}]}]}}",
            "warning generic.actions[0].whenExpression: the expression cannot be read: ",
        ),
        (
            "{name: r, generic: {secretRef: {name: s}, actions: [{action: Refresh,"
            " targetSelectionCriteria: [{kind: Warehouse, name: '${{ a. }}'}]}]}}",
            "warning generic.actions[0].targetSelectionCriteria[0].name: the expression cannot be read: ",
        ),
        (
            "{name: r, generic: {secretRef: {name: s}, actions: [{action: Refresh,"
            ' whenExpression: \'request.header("Authorization") == "x"\','
            " targetSelectionCriteria: [{kind: Warehouse, name: x}]}]}}",
            "warning generic.actions[0].whenExpression: the header Authorization is not kept",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["ProjectConfig", "ClusterConfig"])
def test_what_keeps_a_receiver_from_working_is_said(receiver: str, expected: str, kind: str) -> None:
    (problem,) = told(receiver, kind)
    assert problem.startswith(expected)
