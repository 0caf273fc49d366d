"""A git subscription that watches what the pipeline's own Stages write is pointed out where it stands."""

from __future__ import annotations

import pytest

from bot.domain.problems import Severity
from bot.pipeline import STEP_SCHEMAS, load_pipeline

PIPELINE = """\
apiVersion: kargo.akuity.io/v1alpha1
kind: Project
metadata: {name: acme}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Warehouse
metadata: {name: code, namespace: acme}
spec:
  subscriptions:
    - git: {WATCH}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Stage
metadata: {name: dev, namespace: acme}
spec:
  requestedFreight:
    - origin: {kind: Warehouse, name: code}
      sources: {direct: true}
  promotionTemplate:
    spec:
      vars:
        - {name: repo, value: "https://github.com/acme/ops.git"}
        - {name: branch, value: BRANCH}
      steps:
        - task: {name: promote}
          vars: [{name: file, value: "env/${{ ctx.stage }}/values.yaml"}]
---
apiVersion: kargo.akuity.io/v1alpha1
kind: PromotionTask
metadata: {name: promote, namespace: acme}
spec:
  vars: [{name: file}]
  steps:
    - uses: git-clone
      config:
        repoURL: ${{ vars.repo }}
        checkout: [{branch: main, path: ./src}]
    - uses: yaml-update
      config:
        path: ./src/${{ vars.file }}
        updates: [{key: revision, value: "${{ commitFrom(vars.repo).ID }}"}]
    - uses: git-commit
      as: commit
      config: {path: ./src, message: promote}
    - uses: git-push
      config: {path: ./src, targetBranch: "${{ vars.branch }}"}
"""


def warnings(watch: str, branch: str = "main") -> list[str]:
    """What is said about the Warehouse."""
    text = PIPELINE.replace("{WATCH}", watch).replace("BRANCH", branch)
    loaded = load_pipeline({"pipeline.yaml": text}, revision="", step_schemas=STEP_SCHEMAS)
    assert [item for item in loaded.problems if item.severity is Severity.ERROR] == []
    return [item.message for item in loaded.problems if item.key == "spec.subscriptions[0].git"]


@pytest.mark.parametrize(
    "watch",
    [
        pytest.param("{repoURL: https://github.com/acme/ops}", id="the whole repository"),
        pytest.param("{repoURL: https://github.com/ACME/Ops.git, branch: main}", id="its branch by name"),
        pytest.param(
            "{repoURL: https://github.com/acme/ops, includePaths: [env]}", id="the folder that is written"
        ),
        pytest.param(
            "{repoURL: https://github.com/acme/ops, excludePaths: [env/prod]}", id="all but another folder"
        ),
    ],
)
def test_what_a_stage_writes_is_watched(watch: str) -> None:
    (said,) = warnings(watch)
    assert 'Stage "dev" writes to "env/dev/values.yaml", which is watched here' in said


@pytest.mark.parametrize(
    ("watch", "branch"),
    [
        pytest.param("{repoURL: https://github.com/acme/app}", "main", id="another repository"),
        pytest.param("{repoURL: https://github.com/acme/ops, branch: dev}", "main", id="another branch"),
        pytest.param(
            "{repoURL: https://github.com/acme/ops}", "env/dev", id="branches that Stages do not write"
        ),
        pytest.param(
            "{repoURL: https://github.com/acme/ops, includePaths: [src]}", "main", id="other folders"
        ),
        pytest.param(
            "{repoURL: https://github.com/acme/ops, excludePaths: [env]}", "main", id="all but that"
        ),
        pytest.param(
            "{repoURL: https://github.com/acme/ops, commitSelectionStrategy: NewestTag}", "main", id="tags"
        ),
    ],
)
def test_what_no_stage_writes_is_watched_in_peace(watch: str, branch: str) -> None:
    assert warnings(watch, branch) == []
