"""A release that only a CI job reports: the real bot, its configuration's receiver, and the road behind it."""

from __future__ import annotations

import hashlib
import hmac
import json

import httpx
import pytest

from bot.domain.model import WebhookReceiver
from bot.domain.receiving import receiver_path
from tests.e2e.conftest import StartRoad
from tests.e2e.pipelines import Seed, shipped

pytestmark = pytest.mark.e2e

SECRET = "0123456789abcdef"
PROJECT = (
    shipped("config/project.yaml")
    + "  webhookReceivers:\n"
    + "    - name: jobs\n"
    + "      ci: {secretRef: {name: jobs}}\n"
)


async def test_a_release_is_found_because_its_job_says_so(start_road: StartRoad) -> None:
    # No sweep comes in time, and what the registry tells is refused.
    road = await start_road(
        Seed(files=(("config/project.yaml", PROJECT),)),
        LOCKSTEP_SWEEP="3600",
        LOCKSTEP_RECEIVER_SECRET="of nobody",
        LOCKSTEP_SECRET_ACME_JOBS_SECRET=SECRET,
    )
    await road.wait_for_event("freight", "otel-app 1.0.0", stage="")
    await road.publish(otel="1.1.0", lambda_="1.1.0")
    body = json.dumps({"image": f"{road.sandbox.registry_host}/otel-app", "tag": "1.1.0"}).encode()
    path = receiver_path("acme", WebhookReceiver("jobs", "ci", "jobs"), {"secret": SECRET})
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    async with httpx.AsyncClient(base_url=road.bot.url) as job:
        refused = await job.post(path, content=body, headers={"X-Signature": "sha256=0"})
        assert not [event for event in await road.events() if "1.1.0" in event.message]
        taken = await job.post(path, content=body, headers={"X-Signature": f"sha256={signature}"})
    assert (refused.status_code, taken.status_code) == (401, 202)
    await road.wait_for_event("freight", "otel-app 1.1.0", stage="")
