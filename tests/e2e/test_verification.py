"""Freight is verified in a Stage only when its verification succeeded, and the next Stage waits for that."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import TAG, C, P, Seed, commit, stage, values
from tests.e2e.road import Road
from tests.e2e.talk import say
from tests.probe import open_probe

pytestmark = pytest.mark.e2e

TOKEN = "probe-token-4711-of-the-tests"
IMAGES_ONLY = (C, values(TAG), commit("Promote ${{ ctx.stage }}"), P)
VERIFICATION = """\
  verification:
    analysisTemplates:
      - name: healthy
    analysisRunMetadata:
      labels:
        team: web
    args:
      - name: version
        value: ${{ imageFrom('registry.sandbox.example/otel-app').Tag }}
"""
TEMPLATE = """\
apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata:
  name: healthy
  namespace: acme
spec:
  args:
    - name: version
    - name: token
      valueFrom:
        secretKeyRef:
          name: probe
          key: token
  metrics:
    - name: ok
      interval: 200ms
      count: 2
      consecutiveErrorLimit: 0
      successCondition: result.ok
      provider:
        web:
          url: PROBE/health?version={{ args.version }}
          headers:
            - key: Authorization
              value: Bearer {{ args.token }}
          jsonPath: "{$}"
"""


def seed(url: str) -> Seed:
    stages = stage("dev") + VERIFICATION + "---\n" + stage("staging", "dev")
    files = (("config/stages.yaml", stages), ("config/healthy.yaml", TEMPLATE.replace("PROBE", url)))
    return Seed(steps=IMAGES_ONLY, files=files)


async def wait_for_verification(road: Road, after: int, how: str) -> str:
    return (await road.wait_for_event("verification", f"verification {how}", after=after)).message


async def status_of(road: Road, pull: int, stage: str = "dev") -> str:
    """The line of a Stage in what `/status` answers."""
    comment = await road.comment(pull, "/status")

    async def answered() -> str | None:
        lines = [
            line
            for r in await road.replies()
            if f"lockstep:reply:{comment} " in r.body
            for line in r.body.split("\n")
        ]
        return next((line for line in lines if line.startswith(("| " + stage, f"| **{stage}**"))), None)

    return await road.until("the answer to /status", answered)


async def test_the_next_stage_waits_until_the_freight_is_verified(start_road: StartRoad) -> None:
    async with open_probe() as probe:
        probe.answer(503, "no entry for {authorization}")
        road = await start_road(seed(probe.url), LOCKSTEP_SECRET_ACME_PROBE_token=TOKEN)
        pull = await road.release()
        said = await wait_for_verification(road, 0, "could not be carried out")
        assert "the answer is 503: no entry for Bearer ***" in said
        assert probe.asked[0].startswith("GET /health?version=1.0.0 ")
        assert await road.pulls("staging") == []
        assert "verification could not be carried out" in await status_of(road, pull)

        probe.answer(200, {"ok": False})
        after = await road.last_event()
        await say(road, pull, "/verify dev")
        said = await wait_for_verification(road, after, "failed")
        assert 'metric "ok" assessed Failed due to failed (1) > failureLimit (0)' in said
        assert await road.pulls("staging") == []
        assert "no verification of dev is under way" in await say(
            road, pull, "/verify dev abort", answer="-1"
        )

        probe.answer(200, {"ok": True})
        after, asked = await road.last_event(), len(probe.asked)
        await say(road, pull, "/verify dev")
        await wait_for_verification(road, after, "succeeded")
        assert len(probe.asked) - asked == 2
        following = await road.wait_for_pull("staging")
        await road.approve(following.number)
        await road.wait_until_mergeable(following.number)
        assert "verified" in await status_of(road, pull)

        probe.answer(200, {"ok": False})
        after = await road.last_event()
        await say(road, pull, "/verify dev")
        await wait_for_verification(road, after, "failed")
        assert "verification failed" in await status_of(road, pull)
        # What failed since it was approved for the next Stage is not merged there.
        check = await road.wait_for_check(following.number, "lockstep", None)
        assert "verification failed in dev" in f"{check.title} {check.summary}"
        assert not any(TOKEN in body.text for body in road.bodies)
        assert TOKEN not in str(await road.events())
        assert TOKEN not in road.bot.log.read_text()
