"""Promotions that a receiver's delivery concerns: by their pull request, or by name."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from bot.adapters.clock import SystemClock
from bot.adapters.github.app import GitHubApp
from bot.adapters.github.connection import GitHubSettings
from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.domain.model import Metadata, ProjectConfig, WebhookReceiver
from bot.domain.pipeline import Pipeline
from bot.domain.promotion import PromotionId, State, StepRun, StepStatus, Target
from bot.domain.values import Json
from bot.payloads.generic import write_envelope
from bot.ports import Delivery
from bot.workflow.receivers import ReceivedIntake
from tests.reports import views

PAGE = "https://github.com/acme/operations/pull/7"
ELSEWHERE = "https://gitlab.example/acme/operations/-/merge_requests/7"
STAGING = ("stage", "acme/staging")


def choosing(kind: str, name: str, **more: Json) -> WebhookReceiver:
    """A generic receiver whose one action chooses this."""
    target: Json = {"kind": kind, "name": name, **more}
    actions: Json = [{"action": "Refresh", "targetSelectionCriteria": [target]}]
    return WebhookReceiver("r", "generic", "s", {"actions": actions})


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[DatabaseStore]:
    opened = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", KeyFileVault(tmp_path / "vault.key"))
    await opened.add_freight(views.NEW)
    yield opened
    opened.close()


@cache
def make_github() -> GitHubApp:
    """Our adapter, which is asked for nothing but addresses here."""
    return GitHubApp(GitHubSettings(7, "", "https://api.github.com/", "https://github.com/"), SystemClock())


async def tell(
    store: DatabaseStore, receiver: WebhookReceiver, event: str, body: bytes, project: str = "acme"
) -> tuple[set[tuple[str, str]], str]:
    """What follows from one delivery to a receiver of a project, empty for the cluster."""
    config = ProjectConfig(Metadata(project), webhook_receivers=(receiver,))
    pipeline = Pipeline(project_configs={project: config}) if project else Pipeline(cluster_config=config)
    github = make_github()
    at = datetime(2026, 5, 7, tzinfo=UTC)
    delivery = Delivery("d", receiver.vendor, event, body, at, receiver=f"{project}/{receiver.name}")
    looks, note = await ReceivedIntake(store, github, lambda: pipeline).read(delivery)
    assert all(look.reason for look in looks)
    return {(look.kind, look.key) for look in looks}, note


def closed(page: str) -> bytes:
    return json.dumps({"action": "closed", "pull_request": {"html_url": page}}).encode()


GITHUB = WebhookReceiver("r", "github", "s")


@pytest.mark.parametrize(
    ("page", "project", "expected"),
    [
        pytest.param(PAGE, "acme", {STAGING}, id="its own"),
        pytest.param(PAGE, "", {STAGING}, id="by the cluster's receiver"),
        pytest.param(PAGE, "other", set(), id="by another project's receiver"),
        pytest.param(f"{PAGE}7", "acme", set(), id="another number"),
        pytest.param(PAGE.replace("operations", "other"), "acme", set(), id="another repository"),
        pytest.param(PAGE.replace("github.com", "evil.example"), "acme", set(), id="another host"),
        pytest.param("not an address", "acme", set(), id="no address"),
        pytest.param("", "acme", set(), id="nothing"),
    ],
)
async def test_a_promotion_whose_pull_request_ended_is_looked_at(
    store: DatabaseStore, page: str, project: str, expected: set[tuple[str, str]]
) -> None:
    target = Target("https://github.com/acme/operations.git", "main")
    assert await store.create_promotion(views.promotion(target=target))
    found, note = await tell(store, GITHUB, "pull_request", closed(page), project)
    assert found == expected
    assert note == ("" if expected else "of no interest")


@pytest.mark.parametrize(
    ("url", "project", "expected"),
    [(ELSEWHERE, "acme", {STAGING}), (f"{ELSEWHERE}7", "acme", set()), (ELSEWHERE, "other", set())],
    ids=["the one it waits for", "another one", "in another project"],
)
async def test_a_step_that_waits_for_a_pull_request_is_woken(
    store: DatabaseStore, url: str, project: str, expected: set[tuple[str, str]]
) -> None:
    promotion = views.promotion(state=State.FULFILLING)
    assert await store.create_promotion(promotion)
    at = views.NOW
    run = StepRun("wait", "git-wait-for-pr", 1, StepStatus.RUNNING, begun_at=at)
    await store.begin_step(promotion.id, run)
    done = StepRun(
        "wait",
        "git-wait-for-pr",
        1,
        StepStatus.RUNNING,
        output={"pr": {"url": ELSEWHERE}},
        begun_at=at,
        finished_at=at,
    )
    await store.finish_step(promotion.id, done)
    body = json.dumps({"object_attributes": {"action": "merge", "url": url}}).encode()
    receiver = WebhookReceiver("r", "gitlab", "s")
    assert (await tell(store, receiver, "Merge Request Hook", body, project))[0] == expected


@pytest.mark.parametrize(
    ("receiver", "project", "expected"),
    [
        pytest.param(choosing("Promotion", "staging.01jx.1101101"), "acme", {STAGING}, id="by its name"),
        pytest.param(
            choosing("Promotion", "${{ request.body.name }}"), "acme", {STAGING}, id="by an expression"
        ),
        pytest.param(choosing("Promotion", "staging.01jx.1101101"), "other", set(), id="of another project"),
        pytest.param(choosing("Promotion", "another"), "acme", set(), id="by another name"),
        pytest.param(choosing("Promotion", ""), "acme", set(), id="without a name"),
        pytest.param(
            choosing("Promotion", "staging.01jx.1101101", labelSelector={"matchLabels": {"a": "b"}}),
            "acme",
            set(),
            id="by labels, which it has none of",
        ),
        pytest.param(
            choosing("Warehouse", "staging.01jx.1101101"), "acme", set(), id="a Warehouse of that name"
        ),
    ],
)
async def test_a_generic_receiver_may_name_a_promotion(
    store: DatabaseStore, receiver: WebhookReceiver, project: str, expected: set[tuple[str, str]]
) -> None:
    promotion = views.promotion()
    assert promotion.id == PromotionId("staging.01jx.1101101")
    assert await store.create_promotion(promotion)
    body = write_envelope("POST", "/", [], json.dumps({"name": promotion.id}).encode())
    assert (await tell(store, receiver, "", body, project))[0] == expected


async def test_a_promotion_that_has_ended_is_left_alone(store: DatabaseStore) -> None:
    target = Target("https://github.com/acme/operations.git", "main")
    ended = views.promotion(target=target, state=State.SUCCEEDED, finished_at=views.NOW)
    assert await store.create_promotion(ended)
    assert (await tell(store, GITHUB, "pull_request", closed(PAGE)))[0] == set()
    chosen = choosing("Promotion", ended.id)
    body = write_envelope("POST", "/", [], b"{}")
    assert (await tell(store, chosen, "", body))[0] == set()
