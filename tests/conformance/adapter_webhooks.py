"""Area 11: addresses of webhook receivers, and what a delivery to one refreshes.

A delivery goes through the real route to the stored row, and from there through the real intake to the Warehouses and
Promotions that are looked at. Kargo answers a delivery after its work, we before it: 202 to everything authentic. What
Kargo says by 200, 400 or 501 is therefore read off the verdict of the reader: understood, not what its sender would
send, or an event of a kind that tells nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx
import yaml
from starlette.applications import Starlette

from bot.adapters.clock import SystemClock
from bot.adapters.secrets import SecretStore
from bot.domain.model import Document, Metadata, ProjectConfig, WebhookReceiver
from bot.domain.pipeline import Pipeline
from bot.domain.promotion import State, StepRun, StepStatus
from bot.domain.receiving import (
    PullRequestEnded,
    find_warehouses,
    receiver_path,
    waits_for_pull,
)
from bot.payloads import PayloadProblem
from bot.payloads.reading import UnsupportedEventError
from bot.payloads.receivers import read_notices
from bot.pipeline import STEP_SCHEMAS, load_pipeline
from bot.ports import Delivery
from bot.web.receivers import Receivers
from bot.workflow.receivers import ReceiverBook

Case = dict[str, Any]
PROJECT, NAME = "proj", "rcv"
UNSUPPORTED = {"artifactory": 501, "gitea": 501}
"""What Kargo answers to an event of a kind that it does not take; 400 for all other vendors."""

DECISIONS = {
    "webhooks/github-30": "a wrong pattern in one Warehouse keeps no other from being looked at, and is itself "
    "looked at, so that its problem is said",
    "webhooks/bitbucket-11": "Bitbucket's addresses are compared in their normal spelling, as all others are",
}
OURS: dict[str, object] = {
    "webhooks/github-30": {
        "status": 200,
        "refreshed_warehouses": ["bad", "good"],
        "refreshed_promotions": [],
    },
    "webhooks/bitbucket-11": {
        "status": 200,
        "refreshed_warehouses": ["b-inc", "b-main"],
        "refreshed_promotions": [],
    },
}


def receiver_urls(case: Case) -> Case:
    receiver = WebhookReceiver(case.get("receiver_name", NAME), case["provider"], "s")
    base = case.get("base_url", "").rstrip("/")
    path = receiver_path(case.get("project", PROJECT), receiver, case["secret"])
    return {"path": urlsplit(base).path + path, "url": base + path}


@dataclass
class Kept:
    """Deliveries as they were stored."""

    deliveries: list[Delivery] = field(default_factory=list)

    async def store_delivery(self, delivery: Delivery) -> bool:
        self.deliveries.append(delivery)
        return True


class NoTokens:
    """Nobody is known by a token here."""

    async def verify(self, token: str, *, issuer: str, audience: str) -> Mapping[str, Any] | None:
        return None


def webhooks(case: Case) -> Case:
    config = {"virtualRepoName": case["virtual_repo"]} if case.get("virtual_repo") else {}
    receiver = WebhookReceiver(NAME, case["provider"], "s", config)
    status, delivery = asyncio.run(_deliver(case, receiver))
    if delivery is None:
        return _answer(status)
    try:
        notices = read_notices(delivery.source, delivery.event, delivery.body, config)
    except UnsupportedEventError:
        return _answer(UNSUPPORTED.get(case["provider"], 400))
    except PayloadProblem:
        return _answer(400)
    pipeline = _load(case.get("warehouses") or [])
    found = {name for item in notices for _, name in find_warehouses(item, pipeline.warehouses, PROJECT)}
    pages = [item.url for item in notices if isinstance(item, PullRequestEnded)]
    waiting = {
        promotion["name"]
        for promotion in case.get("promotions") or []
        if promotion.get("namespace", PROJECT) == PROJECT and any(_waits(promotion, page) for page in pages)
    }
    return _answer(200, found, waiting)


def _answer(status: int, warehouses: Iterable[str] = (), promotions: Iterable[str] = ()) -> Case:
    return {
        "status": status,
        "refreshed_warehouses": sorted(warehouses),
        "refreshed_promotions": sorted(promotions),
    }


async def _deliver(case: Case, receiver: WebhookReceiver) -> tuple[int, Delivery | None]:
    document = Document("v1", "Secret", Metadata("s", PROJECT), {"stringData": case["secret"]})
    pipeline = Pipeline(
        project_configs={PROJECT: ProjectConfig(Metadata(PROJECT), webhook_receivers=(receiver,))},
        secrets={(PROJECT, "s"): document},
    )
    secrets, kept = SecretStore(lambda: pipeline), Kept()
    book = ReceiverBook(lambda: pipeline, secrets, SystemClock())
    receivers = Receivers(kept, lambda: None, book, NoTokens(), SystemClock())
    transport = httpx.ASGITransport(Starlette(routes=receivers.routes()))
    async with httpx.AsyncClient(transport=transport, base_url="http://bot.example", headers={}) as client:
        client.headers.pop("user-agent")
        path = receiver_path(PROJECT, receiver, case["secret"])
        answer = await client.post(path, content=case["body"].encode(), headers=case["headers"])
    return answer.status_code, kept.deliveries[0] if kept.deliveries else None


def _load(warehouses: list[Case]) -> Pipeline:
    documents = [
        {
            "apiVersion": "kargo.akuity.io/v1alpha1",
            "kind": "Warehouse",
            "metadata": {"namespace": PROJECT, **item["metadata"]},
            "spec": item["spec"],
        }
        for item in warehouses
    ]
    return load_pipeline(
        {"case.yaml": yaml.safe_dump_all(documents)}, revision="", step_schemas=STEP_SCHEMAS
    ).pipeline


PHASES = {
    "Running": State.FULFILLING,
    "Pending": State.QUEUED,
    "Succeeded": State.SUCCEEDED,
    "Failed": State.FAILED,
    "Errored": State.ERRORED,
    "Aborted": State.ABORTED,
}


def _waits(promotion: Case, page: str) -> bool:
    begun = promotion["steps"][: promotion["current_step"] + 1]
    runs = [
        StepRun(
            step["as"],
            step["uses"],
            1,
            StepStatus.RUNNING,
            output=promotion["outputs"].get(step["as"], {}),
            begun_at=datetime(2026, 5, 1, tzinfo=UTC),
        )
        for step in begun
    ]
    return waits_for_pull(PHASES[promotion["phase"]], runs, page)
