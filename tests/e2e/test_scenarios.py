"""What the product is for, as its users tell it: gates on the world outside, and Git as the only meeting point.

The release of a container and a function is told in test_releases.py.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from bot.sandbox.argocd import NewApplication
from bot.sandbox.cloud import CloudFaults
from bot.sandbox.seed.demo import PROJECT
from tests.e2e import claims
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import ENVIRONMENT, TAG, A, C, H, M, O, P, S, Seed, indent, replaced, values
from tests.e2e.road import OPERATIONS, Road
from tests.e2e.talk import say

pytestmark = pytest.mark.e2e

TFVARS = "env/dev/terraform/env.auto.tfvars"
VALUES = "env/dev/helm/values.yaml"

# -- a custom domain: the name must resolve before a certificate is asked for ----------------------------------------

RECORD = """
output "domain" {
  description = "The name that the ingress and its certificate are for."
  value       = "otel-dev.example"
}

output "load_balancer" {
  description = "What the name's record points to."
  value       = "lb-${terraform_data.function_url.id}.example"
}

output "lambda_url" {"""
DNS = """\
uses: dns-wait
as: resolves
config:
  name: ${{ task.outputs['tf-output'].domain.value }}
  target: ${{ task.outputs['tf-output'].load_balancer.value }}
  pollInterval: 1s
"""
HOST = ("ingress.host", "${{ task.outputs['tf-output'].domain.value }}")
DOMAIN = "otel-dev.example"


class Names:
    """The names that resolve on the bot's machine."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.point()

    def point(self, *answer: str) -> None:
        """Give the domain a canonical name and addresses, or none."""
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps({DOMAIN: answer} if answer else {}))
        new.replace(self.file)


async def start_with_names(start_road: StartRoad, directory: Path) -> tuple[Road, Names]:
    """A road whose task gates the values on the domain, and the names that its bot can resolve."""
    names = Names(directory / "names.json")
    outputs = replaced("env/dev/terraform/outputs.tf", ('output "lambda_url" {', RECORD.lstrip()))
    held = replaced(VALUES, ("# Environment of", 'ingress:\n  host: ""\n\n# Environment of'))
    seed = Seed(steps=(C, H, A, O, DNS, values(TAG, HOST), M, P, S), files=(outputs, held))
    road = await start_road(seed, bot=False, NAMES_FILE=str(names.file))
    road.bot.command = (sys.executable, "-m", "tests.e2e.names", "serve")
    await road.start_bot()
    return road, names


async def test_a_certificate_is_not_asked_for_before_its_name_resolves(
    start_road: StartRoad, tmp_path: Path
) -> None:
    road, names = await start_with_names(start_road, tmp_path)
    pull = await road.wait_for_pull()
    await road.wait_until_quiet()
    assert await claims.lane(road) == "coordinated"
    assert list(await road.files(pull.number)) == [TFVARS]
    assert "+  host: otel-dev.example" in claims.deferred(road, pull.number)
    assert claims.on_merge(road, pull.number) == [
        "tf-apply", "tf-output", "resolves", "yaml-update", "commit", "git-push", "argocd-update",
    ]  # fmt: skip

    await road.approve(pull.number)
    await road.wait_until_mergeable(pull.number)
    merge = await road.merge(pull.number)
    await road.until("the apply to end", lambda: is_applied(road))
    await road.wait_for_event("waits", DOMAIN)
    await road.wait_until_quiet()
    # The infrastructure is there, and nothing that trusts it.
    assert road.applies() == 1
    await claim_nothing_trusts_it(road, merge)

    names.point("old-lb.example", "192.0.2.1")
    await road.wait_until_quiet(2.0)
    await road.bot.kill()
    await road.start_bot()
    await claim_nothing_trusts_it(road, merge)

    names.point(str(road.outputs()["load_balancer"]), "192.0.2.7")
    await road.wait_for_success()
    (release,) = await road.commits_since(merge)
    assert f"host: {DOMAIN}" in await road.read(VALUES)
    assert "Apply complete! Resources: 4 added" in release.message
    assert road.applies() == 1
    assert road.operation()["syncResult"]["revision"] == release.sha

    # A new image needs no gate of its own: what it hinges on is there already, so all of it is in the diff.
    before = await claims.look_before(road)
    await road.publish(otel="1.1.0")
    second = await road.wait_for_pull(after=pull.number)
    await road.wait_until_quiet()
    assert await claims.lane(road) == "complete"
    assert list(await road.files(second.number)) == [VALUES]
    await road.release()
    assert (road.terraform().get("POST", 0), road.live()[0]) == (0, ["1.1.0"])
    assert await road.changed(before.tip) == [
        f"{VALUES}:-  tag: 1.0.0  # written by a promotion",
        f"{VALUES}:+  tag: 1.1.0  # written by a promotion",
    ]


async def is_applied(road: Road) -> bool:
    return road.applies() == 1 and "load_balancer" in road.outputs()


async def claim_nothing_trusts_it(road: Road, merge: str) -> None:
    """Neither Git nor the cluster has what hinges on the name."""
    assert await road.tip() == merge
    assert DOMAIN not in await road.read(VALUES)
    assert road.operation().get("syncResult", {}).get("revision") != merge
    assert road.live()[0] == ["0.9.0"]


# -- Terraform stops at the cloud's API, Argo CD starts at the cluster's ---------------------------------------------

APP = "clusters/dev/apps/shop"
KUSTOMIZATION = f"{APP}/kustomization.yaml"
CLUSTER = (
    (f"{APP}/deployment.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: shop\n"),
    (
        KUSTOMIZATION,
        "# The shop in dev.\nresources:\n  - deployment.yaml\nimages:\n"
        "  - name: registry.sandbox.example/lambda-app  # moved by its own team\n    newTag: 0.9.0\n"
        '  - name: registry.sandbox.example/otel-app\n    newTag: "0.9.0"  # written by a promotion\n',
    ),
)
ONCE = """\
uses: compose-output
as: release
config:
  tag: ${{ imageFrom(vars.image).Tag }}
"""
SET_IMAGE = """\
uses: kustomize-set-image
config:
  path: ./src/clusters/${{ ctx.stage }}/apps/shop
  images:
    - image: ${{ vars.image }}
      tag: ${{ task.outputs['release'].tag }}
"""
COMMIT = """\
uses: git-commit
as: commit
config:
  path: ./src
  message: Shop ${{ task.outputs['release'].tag }} in ${{ ctx.stage }}
"""
SYNC = S.replace("name: otel-app-", "name: shop-")
IMAGE_ONLY = (C, ONCE, SET_IMAGE, COMMIT, P, SYNC)


def shop(road: Road) -> list[str]:
    """The images that the shop runs, without their registry."""
    return sorted(image.rpartition("/")[2] for image in road.sandbox.argocd.live("shop-dev")[0])


async def start_shop(start_road: StartRoad, seed: Seed) -> Road:
    """A road with an Application of the shop, synced to what main holds at first."""
    road = await start_road(seed, bot=False)
    new = NewApplication(
        "shop-dev",
        PROJECT,
        f"{road.sandbox.github_url}/{OPERATIONS}.git",
        APP,
        target_revision="main",
        annotations={"kargo.akuity.io/authorized-stage": f"{PROJECT}:dev"},
    )
    await road.sandbox.argocd.create_application(new)
    await road.start_bot()
    return road


def tag_lines(old: str, new: str) -> list[str]:
    return [
        f"{KUSTOMIZATION}:-    newTag: {old}  # written by a promotion",
        f"{KUSTOMIZATION}:+    newTag: {new}  # written by a promotion",
    ]


async def test_an_image_alone_goes_forth_and_back_whatever_the_infrastructure_is_like(
    start_road: StartRoad,
) -> None:
    road = await start_shop(start_road, Seed(steps=IMAGE_ONLY, files=CLUSTER))
    # Nothing could be read of the infrastructure, so nothing can hinge on it.
    road.sandbox.cloud.faults = CloudFaults(down=True)
    assert shop(road) == ["lambda-app:0.9.0", "otel-app:0.9.0"]
    before = await claims.look_before(road)
    pull = await road.wait_for_pull()
    assert await claims.lane(road) == "complete"
    assert claims.on_merge(road, pull.number) == ["argocd-update"]
    await road.release()
    assert await road.changed(before.tip) == tag_lines('"0.9.0"', "1.0.0")
    assert road.git.commit(pull.head_sha).message.startswith("Shop 1.0.0 in dev")
    assert shop(road) == ["lambda-app:0.9.0", "otel-app:1.0.0"]

    # The same release again: nothing to change, so nothing to commit, review or sync.
    tip, pushes, after = await road.tip(), len(await road.requests()), await road.last_event()
    await say(road, pull.number, "/promote dev")
    await road.wait_for_success(after=after)
    assert await road.tip() == tip
    assert [r for r in await road.requests_of_bot(pushes) if "receive-pack" in r or "/pulls" in r] == []

    await road.publish(otel="1.1.0")
    newer = await road.wait_for_pull(after=pull.number)
    await road.release()
    assert shop(road) == ["lambda-app:0.9.0", "otel-app:1.1.0"]

    await say(road, newer.number, "/rollback dev")
    back = await road.wait_for_pull(after=newer.number)
    assert await claims.lane(road) == "complete"
    assert claims.on_merge(road, back.number) == ["argocd-update"]
    tip = await road.tip()
    await road.release(reviewer="olivia")
    assert await road.changed(tip) == tag_lines("1.1.0", "1.0.0")
    assert shop(road) == ["lambda-app:0.9.0", "otel-app:1.0.0"]
    assert road.terraform() == {}
    await claims.claim_no_leak(road)


CHART = """
# Argo CD's own chart, once and for all.
resource "helm_release" "monitoring" {
  input = { chart = "kube-prometheus-stack", version = "70.4.2" }
}
"""
STAND_IN = """\
#!/bin/sh
# Terraform with a provider of helm_release, for which terraform_data stands in.
for file in *.tf; do
  [ -f "$file" ] && sed -i 's/"helm_release" "monitoring"/"terraform_data" "monitoring"/' "$file"
done
if [ "$1 $2" = "show -json" ]; then
  TERRAFORM "$@" | sed -E \\
    's/"terraform_data\\.monitoring"/"helm_release.monitoring"/g;
     s/("address":"helm_release\\.monitoring","mode":"managed","type":)"terraform_data"/\\1"helm_release"/g'
else
  exec TERRAFORM "$@"
fi
"""


async def test_terraform_that_deploys_into_the_cluster_is_pointed_out(
    start_road: StartRoad, tmp_path: Path
) -> None:
    stand_in = tmp_path / "terraform-with-helm"
    real = shutil.which("terraform")
    assert real is not None
    stand_in.write_text(STAND_IN.replace("TERRAFORM", real))
    stand_in.chmod(0o755)
    plan = f"uses: tf-apply\nas: tf-apply\nconfig:\n  dir: ./src/env/dev/terraform\n{indent(ENVIRONMENT, 2)}"
    main = "env/dev/terraform/main.tf"
    text = replaced(main, ("# A new image is", CHART.lstrip() + "\n# A new image is"))
    road = await start_road(
        Seed(steps=(C, H, plan, values(TAG), M, P, S), files=(text,)), LOCKSTEP_TERRAFORM=str(stand_in)
    )
    pull = await road.wait_for_pull()
    line = text[1].splitlines().index('resource "helm_release" "monitoring" {') + 1
    said = "".join(comment.body for comment in road.comments(pull.number, "plan"))
    assert "Terraform deploys into the cluster" in f"{road.issue(pull.number).body}{said}"
    noted = [
        (a["path"], a["start_line"], a["annotation_level"], a["message"])
        for check in road.checks(pull.head_sha).values()
        for a in check.annotations
    ]
    assert noted == [
        (
            main,
            line,
            "warning",
            "helm_release.monitoring is deployed into the cluster by Terraform, where Argo CD deploys, too",
        )
    ]
    # It is said, not forbidden.
    await road.release()
    assert "Apply complete!" in (await road.commits_since(pull.base_sha))[0].message
