"""Pipelines of the scenarios: the steps of the shipped task by their letters, and the files that hold a pipeline.

The letters are those of the scenario table: C clone, H hcl-update, A apply, O output, Y values with the tag, YU values
with the tag and the function's URL, M commit, P push, S sync. `STEPS` is the shipped task, `C H A O YU M P S`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.sandbox.seed import FOLDER

ENVIRONMENT = """\
env:
  - name: AWS_REGION
    value: eu-central-1
  - name: AWS_ACCESS_KEY_ID
    value: ${{ secret('lambda-demo').accessKeyID }}
  - name: AWS_SECRET_ACCESS_KEY
    value: ${{ secret('lambda-demo').secretAccessKey }}
"""


def indent(text: str, width: int) -> str:
    """The text with every line moved to the right."""
    return "".join(f"{' ' * width}{line}\n" if line else "\n" for line in text.splitlines())


def clone(branch: str = "${{ vars.branch }}") -> str:
    return f"""\
uses: git-clone
config:
  repoURL: ${{{{ vars.repoURL }}}}
  checkout:
    - branch: {branch}
      path: ./src
"""


def hcl(key: str = "image_uri", value: str = "${{ vars.lambda }}:${{ imageFrom(vars.lambda).Tag }}") -> str:
    return f"""\
uses: hcl-update
config:
  path: ./src/env/${{{{ ctx.stage }}}}/terraform/env.auto.tfvars
  updates:
    - key: {key}
      value: {value}
"""


def apply(extra: str = "", directory: str = "./src/env/${{ ctx.stage }}/terraform") -> str:
    return f"""\
uses: tf-apply
as: tf-apply
config:
  dir: {directory}
{indent(ENVIRONMENT + extra, 2)}"""


def output(extra: str = "") -> str:
    return f"""\
uses: tf-output
as: tf-output
config:
  dir: ./src/env/${{{{ ctx.stage }}}}/terraform
{indent(ENVIRONMENT + extra, 2)}"""


def values(*updates: tuple[str, str], condition: str = "", path: str = "helm/values.yaml") -> str:
    """A yaml-update of the Stage's values; `condition` is its `if`."""
    wanted = "".join(f"    - key: {key}\n      value: {value}\n" for key, value in updates)
    head = f"if: {condition}\n" if condition else ""
    return f"uses: yaml-update\n{head}config:\n  path: ./src/env/${{{{ ctx.stage }}}}/{path}\n  updates:\n{wanted}"


def commit(*lines: str) -> str:
    text = lines or (
        "Promote ${{ ctx.stage }} to ${{ ctx.targetFreight.name }}",
        "",
        "otel-app: ${{ imageFrom(vars.image).Tag }}",
        "lambda-app: ${{ imageFrom(vars.lambda).Tag }}",
        "",
        "Terraform:",
        "${{ task.outputs['tf-apply'].result }}",
    )
    message = indent("\n".join(text), 4)
    return f"uses: git-commit\nas: commit\nconfig:\n  path: ./src\n  message: |\n{message}"


TAG = ("image.tag", "${{ quote(imageFrom(vars.image).Tag) }}")
URL = ("env.LAMBDA_URL", "${{ task.outputs['tf-output'].lambda_url.value }}")

C = clone()
H = hcl()
A = apply()
O = output()  # noqa: E741 - the letter of the scenario table
Y = values(TAG)
YU = values(TAG, URL)
M = commit()
P = "uses: git-push\nconfig:\n  path: ./src\n  targetBranch: ${{ vars.branch }}\n"
S = """\
uses: argocd-update
config:
  apps:
    - name: otel-app-${{ ctx.stage }}
      sources:
        - repoURL: ${{ vars.repoURL }}
          desiredRevision: ${{ task.outputs['commit'].commit }}
"""
STEPS = (C, H, A, O, YU, M, P, S)


def task(steps: Sequence[str] = STEPS) -> str:
    """The PromotionTask `promote` with these steps."""
    listed = "".join("    - " + indent(step, 6).lstrip() for step in steps)
    return f"""\
apiVersion: kargo.akuity.io/v1alpha1
kind: PromotionTask
metadata:
  name: promote
  namespace: acme
spec:
  vars:
    - name: image
    - name: lambda
    - name: repoURL
    - name: branch
      value: main
  steps:
{listed}"""


def stage(name: str, upstream: str = "") -> str:
    """A Stage that runs the task `promote`, of Freight from its Warehouse or from another Stage."""
    sources = f"stages: [{upstream}]" if upstream else "direct: true"
    return f"""\
apiVersion: kargo.akuity.io/v1alpha1
kind: Stage
metadata:
  name: {name}
  namespace: acme
spec:
  requestedFreight:
    - origin:
        kind: Warehouse
        name: otel
      sources:
        {sources}
  promotionTemplate:
    spec:
      steps:
        - task:
            name: promote
          as: promote
          vars:
            - name: image
              value: registry.sandbox.example/otel-app
            - name: lambda
              value: registry.sandbox.example/lambda-app
            - name: repoURL
              value: https://github.sandbox.example/acme/operations.git
"""


def policy(spec: str = "") -> str:
    """A ReviewPolicy for every Stage: one approval by a person, and a short settle time, unless `spec` says more."""
    text = "stageSelector:\n  name: regex:^.*$\nargocd:\n  settle: 0.3s\n" + spec
    return f"""\
apiVersion: lockstep.dev/v1alpha1
kind: ReviewPolicy
metadata:
  name: everywhere
  namespace: acme
spec:
{indent(text, 2)}"""


@dataclass(frozen=True, slots=True)
class Seed:
    """What the operations repository holds when the bot starts, beside and instead of what is shipped.

    `stages` maps a Stage to the one that it takes Freight from (empty: the Warehouse). `files` are added or replaced,
    None removes one; placeholders of the shipped files become the sandbox's addresses. `review` is added to the policy.
    """

    steps: Sequence[str] = STEPS
    stages: tuple[tuple[str, str], ...] = (("dev", ""),)
    review: str = ""
    files: tuple[tuple[str, str | None], ...] = ()

    def texts(self) -> Mapping[str, str | None]:
        """All files, with placeholder addresses."""
        return {
            "config/promote.yaml": task(self.steps),
            "config/stages.yaml": "---\n".join(stage(name, upstream) for name, upstream in self.stages),
            "config/review.yaml": policy(self.review),
            **dict(self.files),
        }


def shipped(path: str) -> str:
    """A file of the operations repository as it is shipped, with placeholder addresses."""
    return (FOLDER / path).read_text()


def replaced(path: str, *pairs: tuple[str, str]) -> tuple[str, str]:
    """A shipped file with some text replaced, as `Seed.files` takes it; every text must be there."""
    text = shipped(path)
    for old, new in pairs:
        assert old in text, f"{path} does not hold {old!r}"
        text = text.replace(old, new)
    return path, text
