"""What is understood and does nothing here is named, and stops nothing."""

from __future__ import annotations

import pytest

from bot.app import load
from bot.domain.problems import Severity
from bot.pipeline import STEP_SCHEMAS, find_not_carried_out, load_pipeline

BASE = """\
apiVersion: kargo.akuity.io/v1alpha1
kind: Project
metadata: {name: acme}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Warehouse
metadata: {name: w, namespace: acme}
spec:
  subscriptions:
    - image: {repoURL: ghcr.io/acme/app}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Stage
metadata: {name: dev, namespace: acme}
spec:
  requestedFreight:
    - origin: {kind: Warehouse, name: w}
      sources: {direct: true}
  promotionTemplate:
    spec:
      steps:
        - uses: git-clone
          config:
            repoURL: https://github.com/acme/ops
            checkout: [{path: ./src}]
            EXTRA
---
"""
CLUSTER = "apiVersion: kargo.akuity.io/v1alpha1\nkind: ClusterConfig\nmetadata: {name: cluster}\nspec:\n"
POLICY = """\
apiVersion: lockstep.dev/v1alpha1
kind: ReviewPolicy
metadata: {name: all, namespace: acme}
spec:
"""
OPENING = """\
apiVersion: kargo.akuity.io/v1alpha1
kind: PromotionTask
metadata: {{name: open, namespace: acme}}
spec:
  steps:
    - uses: git-push
      config: {{path: ./src, generateTargetBranch: true, provider: {}}}
"""
ROUTER = """\
apiVersion: ee.kargo.akuity.io/v1alpha1
kind: EventRouter
metadata: {name: told, namespace: acme}
spec: {types: [PromotionFailed], channels: [{kind: MessageChannel, name: slack}]}
"""


CHANNEL = """\
---
apiVersion: ee.kargo.akuity.io/v1alpha1
kind: MessageChannel
metadata: {name: slack, namespace: acme}
spec: {slack: {channelID: C1}}
"""


@pytest.mark.parametrize(
    ("extra", "more", "wanted"),
    [
        pytest.param("", "", [], id="nothing of the kind"),
        pytest.param(
            "insecureSkipTLSVerify: true",
            "",
            ["insecureSkipTLSVerify has no effect"],
            id="an unverified server",
        ),
        pytest.param(
            "blobless: true", "", ["blobless has no effect, nothing is cloned"], id="a partial clone"
        ),
        pytest.param("insecureSkipTLSVerify: false", "", [], id="a verified server"),
        pytest.param(
            "author: {name: A, email: a@x.example, signingKey: k}",
            "",
            ["author.signingKey has no effect"],
            id="a key of git-clone",
        ),
        pytest.param(
            "",
            CLUSTER + "  gitClient: {name: A, email: a@x.example, signingKeySecret: {name: k}}\n",
            ["commits are not signed with a key"],
            id="a key for all commits",
        ),
        pytest.param("", CLUSTER + "  gitClient: {name: A, email: a@x.example}\n", [], id="an author"),
        pytest.param(
            "",
            CLUSTER + "  stageLinks: [{title: go, url: 'http://x.example/'}]\n",
            ["only https addresses are shown"],
            id="a link that is not shown",
        ),
        pytest.param("", POLICY + "  autoMerge: true\n", [], id="a merge without an approval"),
        pytest.param(
            "",
            POLICY + "  autoMerge: {allow: [destroy]}\n  approvals: {count: 1}\n",
            ["is not asked for with autoMerge"],
            id="approvals where none is needed",
        ),
        pytest.param("", OPENING.format("github"), [], id="the provider that is meant"),
        pytest.param(
            "", OPENING.format("gitlab"), ["provider has no effect, 'gitlab'"], id="another provider"
        ),
        pytest.param("", ROUTER + CHANNEL, [], id="an event router"),
        pytest.param("", ROUTER, ["there is no MessageChannel 'slack'"], id="a router without its channel"),
        pytest.param(
            "",
            ROUTER.replace("PromotionFailed", "PromotionBroke") + CHANNEL,
            ["PromotionBroke is no type of event"],
            id="a router of what never happens",
        ),
        pytest.param(
            "",
            ROUTER.replace("spec: {", "spec: {when: 'event.', output: '${{ a( }}', ") + CHANNEL,
            ["cannot be filled in", "cannot be read"],
            id="a router whose texts cannot be read",
        ),
    ],
)
def test_what_does_nothing_is_warned_of(extra: str, more: str, wanted: list[str]) -> None:
    loaded = load_pipeline(
        {"p.yaml": BASE.replace("EXTRA", extra) + more}, revision="r", step_schemas=STEP_SCHEMAS
    )
    problems = [*loaded.problems, *find_not_carried_out(loaded.pipeline)]
    assert {problem.severity for problem in problems} <= {Severity.WARNING}
    assert len(problems) == len(wanted)
    for problem, text in zip(problems, wanted, strict=True):
        assert text in problem.message


@pytest.mark.parametrize("name", ["a <b>", "a\\nb", "  "])
def test_a_name_that_git_would_not_take_is_refused(name: str) -> None:
    text = BASE.replace("EXTRA", "") + CLUSTER + f'  gitClient: {{name: "{name}", email: a@x.example}}\n'
    loaded = load_pipeline({"p.yaml": text}, revision="r", step_schemas=STEP_SCHEMAS)
    (problem,) = loaded.problems
    assert (problem.key, problem.severity) == ("spec.gitClient.name", Severity.ERROR)


@pytest.mark.parametrize(
    ("step", "policy", "said"),
    [
        pytest.param(
            "get-user-input\n          config: {schema: {type: object}}",
            "",
            "get-user-input cannot ask what its schema says: it has no properties",
            id="a question that asks nothing",
        ),
        pytest.param(
            "wait-for-approval",
            "review: None",
            "review: None, so that there is none",
            id="an approval without a pull request",
        ),
    ],
)
def test_a_step_that_cannot_ask_people_is_an_error_on_the_stage(step: str, policy: str, said: str) -> None:
    text = BASE.replace("            EXTRA\n---\n", "").rstrip() + f"\n        - uses: {step}\n---\n"
    if policy:
        head = "apiVersion: lockstep.dev/v1alpha1\nkind: ReviewPolicy\nmetadata: {name: p, namespace: acme}\n"
        text += f"{head}spec:\n  {policy}\n"
    _, problems = load({"p.yaml": text}, "r")
    (problem,) = problems
    assert (problem.stage, problem.severity) == ("dev", Severity.ERROR)
    assert said in problem.message
