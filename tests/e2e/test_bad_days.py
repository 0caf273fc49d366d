"""GitHub on a bad day: what it answers wrongly, late or never, and still there is one of everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.e2e import claims
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import TAG, C, P, S, Seed, commit, values
from tests.e2e.road import Road
from tests.e2e.talk import misbehave

pytestmark = pytest.mark.e2e

VALUES = "env/dev/helm/values.yaml"
PULLS, CHECKS, COMMENTS = "/pulls$", "/check-runs", "/comments"

REQUESTS: Mapping[str, Mapping[str, Any]] = {
    "opening the pull request fails": {"kind": "5xx-before", "method": "POST", "path": PULLS, "count": 2},
    "opening it works, and the answer is lost": {"kind": "5xx-after", "method": "POST", "path": PULLS},
    "posting checks fails": {"kind": "5xx-before", "method": "POST", "path": CHECKS, "count": 3},
    "checks are posted, and the answers are lost": {
        "kind": "5xx-after", "method": "POST", "path": CHECKS, "count": 3,
    },
    "posting comments fails": {"kind": "5xx-before", "method": "POST", "path": COMMENTS, "count": 3},
    "comments are posted, and the answers are lost": {
        "kind": "5xx-after", "method": "POST", "path": COMMENTS, "count": 3,
    },
    "new objects are not found at first": {
        "kind": "404-young", "method": "*", "path": "", "count": 8, "young_ms": 400,
    },
    "the secondary limit is met": {
        "kind": "secondary-limit", "method": "POST", "path": "", "count": 2, "retry_after": 1,
    },
}  # fmt: skip

WEBHOOKS: Mapping[str, Mapping[str, Any]] = {
    "doubled": {"kind": "doubled", "count": 0},
    "late": {"kind": "late", "delay": 1.0, "count": 0},
    "lost": {"kind": "lost", "count": 0},
    "reordered": {"kind": "reordered", "count": 0},
}


async def claim_a_release(road: Road) -> None:
    """A release of an image arrives, and there is one pull request, one plan comment, one outcome."""
    await road.publish(otel="1.1.0")
    await road.wait_for_pull(after=1)
    number = await road.release()
    assert [pull.number for pull in await road.pulls()] == [1, number]
    await claims.claim_comments(road, number)
    assert "tag: 1.1.0" in await road.read(VALUES)
    assert road.live()[0] == ["1.1.0"]


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_release_arrives_although(released: Road, name: str) -> None:
    await released.wait_until_quiet()
    await misbehave(released, **REQUESTS[name])
    await claim_a_release(released)


@pytest.mark.parametrize("name", WEBHOOKS)
async def test_a_release_arrives_with_webhooks_that_are(start_road: StartRoad, name: str) -> None:
    road = await start_road(
        Seed(steps=(C, values(TAG), commit("Promote ${{ ctx.stage }}"), P, S)),
        released=True,
        LOCKSTEP_SWEEP="2",
    )
    await road.wait_until_quiet()
    await misbehave(road, **WEBHOOKS[name])
    await claim_a_release(road)
