"""A Warehouse of commits and charts that watches the very branch that its Stage writes to."""

from __future__ import annotations

import asyncio

import pytest

from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import C, M, P, Seed, values
from tests.e2e.road import Road

pytestmark = pytest.mark.e2e

WAREHOUSE = """\
apiVersion: kargo.akuity.io/v1alpha1
kind: Warehouse
metadata:
  name: otel
  namespace: acme
spec:
  subscriptions:
    - git:
        repoURL: https://github.sandbox.example/acme/operations.git
    - chart:
        repoURL: oci://registry.sandbox.example/charts/web
        semverConstraint: ^1.0.0
"""
COMMIT = "${{ quote(commitFrom(vars.repoURL).ID) }}"
CHART = "${{ quote(chartFrom('oci://registry.sandbox.example/charts/web').Version) }}"
MESSAGE = M.replace("otel-app: ${{ imageFrom(vars.image).Tag }}", "web").replace(
    "lambda-app: ${{ imageFrom(vars.lambda).Tag }}", "commit"
)
STEPS = (C, values(("image.tag", COMMIT), ("env.LAMBDA_URL", CHART)), MESSAGE.split("    Terraform:")[0], P)


async def made(road: Road) -> list[str]:
    """What is said of all Freight that was made."""
    return [event.message for event in await road.events() if event.kind == "freight"]


async def test_a_release_of_commits_and_charts_makes_no_release_of_itself(start_road: StartRoad) -> None:
    road = await start_road(Seed(STEPS, files=(("config/warehouse.yaml", WAREHOUSE),)), bot=False)
    for version in ("1.0.0", "1.1.0", "2.0.0"):
        await asyncio.to_thread(road.sandbox.registry.publish, "charts/web", version)
    first = await road.tip()
    await road.start_bot()
    number = await road.release()
    text = await road.read("env/dev/helm/values.yaml")
    assert first in text
    assert "1.1.0" in text
    assert road.issue(number).state == "closed"
    (said,) = await made(road)
    assert said.endswith(f": operations {first[:7]}, web 1.1.0")

    # The merge moved the branch, and the look that this caused found nothing new; a person's push is.
    after = await road.last_event()
    second = await road.push({"docs/note.md": "text\n"}, "Add a note")
    event = await road.wait_for_event("freight", stage="", after=after)
    assert event.message.endswith(f": operations {second[:7]}, web 1.1.0")
    assert len(await made(road)) == 2
