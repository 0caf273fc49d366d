"""A Stage whose release fails its verification goes back by itself, once, and by a pull request like any other."""

from __future__ import annotations

import asyncio

import pytest

from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import TAG, C, P, Seed, commit, stage, values
from tests.e2e.talk import say
from tests.probe import open_probe

pytestmark = pytest.mark.e2e

IMAGES_ONLY = (
    C,
    values(TAG),
    commit("Promote ${{ ctx.stage }}, rollback ${{ ctx.meta.promotion.rollback }}"),
    P,
)
VERIFICATION = """\
  verification:
    analysisTemplates:
      - name: healthy
"""
TEMPLATE = """\
apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata:
  name: healthy
  namespace: acme
spec:
  metrics:
    - name: ok
      successCondition: result.ok
      provider:
        web:
          url: PROBE/health
          jsonPath: "{$}"
"""
PROJECT = """\
apiVersion: kargo.akuity.io/v1alpha1
kind: ProjectConfig
metadata:
  name: acme
  namespace: acme
spec:
  promotionPolicies:
    - stageSelector:
        name: dev
      autoPromotionEnabled: true
      autoRollback: {}
"""


async def test_a_release_that_fails_its_verification_goes_back_once(start_road: StartRoad) -> None:
    async with open_probe() as probe:
        probe.answer(200, {"ok": True})
        files = (
            ("config/stages.yaml", stage("dev") + VERIFICATION),
            ("config/healthy.yaml", TEMPLATE.replace("PROBE", probe.url)),
            ("config/project.yaml", PROJECT),
        )
        road = await start_road(Seed(steps=IMAGES_ONLY, files=files))
        first = await road.release()
        await road.wait_for_event("verification", "verification succeeded")

        probe.answer(200, {"ok": False})
        await road.publish(otel="1.1.0", lambda_="1.1.0")
        pull = await road.wait_for_pull(after=first)
        await road.approve(pull.number)
        await road.wait_until_mergeable(pull.number)
        await road.merge(pull.number)

        back = await road.wait_for_pull(after=pull.number)
        assert "roll back otel-app 1.1.0 → 1.0.0" in road.issue(back.number).title
        body = road.issue(back.number).body or ""
        assert "Rolls **dev** back" in body
        assert "autoRollback:" in body
        assert "verification failed" in body
        # The policy asks for it, a person approves it.
        await road.wait_for_check(back.number, "lockstep", None)
        after = await road.last_event()
        await road.approve(back.number)
        await road.wait_until_mergeable(back.number)
        await road.merge(back.number)
        await road.wait_for_success(after=after)
        await road.wait_for_event("verification", "verification failed", after=after)
        written = await road.read("env/dev/helm/values.yaml")
        assert "1.0.0" in written
        assert "1.1.0" not in written
        assert "rollback true" in await asyncio.to_thread(road.git.text, "log", "--format=%B", "main")

        # What it left is not tried again, and a rollback that fails is not rolled back.
        await say(road, back.number, "/explain")
        await road.wait_until_quiet()
        assert [p.number for p in await road.pulls()] == [first, pull.number, back.number]
