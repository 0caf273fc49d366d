"""EventRouters with a real store, a server that speaks as Slack does, and a mail server."""

from __future__ import annotations

import email
import email.policy
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from bot.adapters.http import HttpClient
from bot.adapters.messages import MessageChannels
from bot.adapters.store.store import DatabaseStore, open_store
from bot.adapters.vault import KeyFileVault
from bot.app import load
from bot.domain.analysis import AnalysisRun, Phase
from bot.domain.pipeline import Pipeline
from bot.domain.problems import ConfigProblem, Severity
from bot.domain.promotion import Promotion, PromotionId, State
from bot.domain.values import Json
from bot.sandbox.serving import Listener
from bot.workflow.configuration import Configuration
from bot.workflow.event_routing import EventRouting
from tests.reports import views
from tests.steps.message_servers import CHANNELS, MailServer, Secrets, Slack, serve_mail

STAGE = """\
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Warehouse
metadata: {name: otel, namespace: acme}
spec: {subscriptions: [{image: {repoURL: ghcr.io/acme/app}}]}
---
apiVersion: kargo.akuity.io/v1alpha1
kind: Stage
metadata: {name: staging, namespace: acme}
spec:
  requestedFreight: [{origin: {kind: Warehouse, name: otel}, sources: {direct: true}}]
  promotionTemplate: {spec: {steps: [{uses: fail}]}}
"""
ROUTER = """\
---
apiVersion: ee.kargo.akuity.io/v1alpha1
kind: EventRouter
metadata: {name: told, namespace: acme}
spec:
"""


@dataclass
class Hands:
    """A clock that is turned by hand."""

    time: datetime = views.NOW

    def now(self) -> datetime:
        return self.time


@dataclass
class Source:
    """The pipeline's text, which the test sets."""

    text: str

    async def read(self) -> tuple[str, Mapping[str, str]]:
        return str(hash(self.text)), {"p.yaml": self.text}


def only_warned(files: Mapping[str, str], revision: str) -> tuple[Pipeline, tuple[ConfigProblem, ...]]:
    pipeline, problems = load(files, revision)
    assert {problem.severity for problem in problems} <= {Severity.WARNING}
    return pipeline, problems


@dataclass
class World:
    """Everything around one EventRouting."""

    store: DatabaseStore
    slack: Slack
    mail: MailServer
    http: HttpClient
    clock: Hands = field(default_factory=Hands)

    async def routing(self, spec: str) -> EventRouting:
        text = CHANNELS.replace("PORT", str(self.mail.port)) + STAGE + ROUTER + spec
        configuration = Configuration(Source(text), self.store, only_warned)
        await configuration.start()
        channels = MessageChannels(
            lambda: configuration.pipeline, Secrets(), self.http, slack_url=self.slack.url
        )
        return EventRouting(self.store, self.clock, configuration, channels)

    async def look(self, routing: EventRouting) -> None:
        """A look at the Stage, and everything that is due is sent."""
        stage = routing.configuration.stage("acme", "staging")
        assert stage is not None
        await routing.queue(stage)
        await routing.send_due()

    @property
    def said(self) -> list[Json]:
        return [body.get("text", body) for _, body in self.slack.got]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    slack, listener = Slack(), Listener()
    await listener.start(Starlette(routes=[Route("/api/chat.postMessage", slack.post, methods=["POST"])]))
    slack.url = f"http://{listener.host}/api/chat.postMessage"
    store = open_store(f"sqlite:///{tmp_path / 'lockstep.db'}", KeyFileVault(tmp_path / "vault.key"))
    async with serve_mail() as mail, HttpClient() as http:
        made = World(store, slack, mail, http)
        # The outbox keeps the time of day.
        made.clock.time = datetime.now(views.NOW.tzinfo) + timedelta(seconds=5)
        yield made
    store.close()
    await listener.stop()


def at(world: World, **changes: object) -> Promotion:
    made = views.promotion(created_at=world.clock.time, preview=0, pull=None)
    return replace(made, **changes)  # type: ignore[arg-type]


SLACK = "  channels: [{kind: MessageChannel, name: slack}]\n"


async def test_a_promotion_is_told_of_once_from_beginning_to_end(world: World) -> None:
    routing = await world.routing("  types: [PromotionCreated, PromotionFailed]\n" + SLACK)
    begun = at(world)
    await world.store.create_promotion(begun)
    await world.look(routing)
    await world.look(routing)
    assert world.said == ["Promotion of solar-marmot to acme/staging was created by lockstep"]
    ended = replace(begun, state=State.FAILED, reason="push: refused", finished_at=world.clock.time)
    await world.store.save_promotion(ended, expected=begun)
    await world.look(routing)
    # Another replica, or the same one after a restart.
    await world.look(await world.routing("  types: [PromotionCreated, PromotionFailed]\n" + SLACK))
    assert world.said[1:] == ["Promotion of solar-marmot to acme/staging failed: push: refused"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param("  types: [PromotionSucceeded]\n", [], id="only the types that are named"),
        pytest.param(
            "  types: [PromotionCreated]\n  when: event.stageName == 'prod'\n",
            [],
            id="only what is asked for",
        ),
        pytest.param(
            "  types: [PromotionCreated]\n  when: event.stageName == 'staging' && type == 'PromotionCreated'\n"
            "  output: '${{ event.freight.alias }} ${{ deref(event.actor) }} ${{ data.spec.stage }}'\n",
            ["solar-marmot lockstep staging"],
            id="in its own words",
        ),
        pytest.param(
            "  types: [PromotionCreated]\n  encodingType: json\n"
            '  output: \'{"blocks": ["${{ escape_json_string(event.name) }}"], "channel": "C9"}\'\n',
            [{"blocks": ["staging.01jx.1101101"], "channel": "C9"}],
            id="as a structure",
        ),
        pytest.param("  types: [PromotionCreated]\n  output: '${{ event.nothing.x }}'\n", [], id="no words"),
    ],
)
async def test_what_is_told(world: World, spec: str, said: list[Json]) -> None:
    routing = await world.routing(spec + SLACK)
    await world.store.create_promotion(at(world))
    await world.look(routing)
    assert world.said == said


async def test_what_others_said_mentions_nobody(world: World) -> None:
    routing = await world.routing("  types: [PromotionFailed]\n" + SLACK)
    failed = at(world, state=State.FAILED, reason="<!channel> a & b", finished_at=world.clock.time)
    await world.store.create_promotion(failed)
    await world.look(routing)
    (said,) = world.said
    assert str(said).endswith("failed: &lt;!channel&gt; a &amp; b")


async def test_old_news_is_not_told(world: World) -> None:
    routing = await world.routing("  types: [PromotionCreated]\n" + SLACK)
    await world.store.create_promotion(at(world, created_at=world.clock.time - timedelta(minutes=61)))
    await world.look(routing)
    assert world.said == []


async def test_a_channel_that_is_busy_is_asked_again(world: World) -> None:
    routing = await world.routing("  types: [PromotionCreated]\n" + SLACK)
    await world.store.create_promotion(at(world))
    world.slack.answer = JSONResponse({"ok": False, "error": "ratelimited"})
    await world.look(routing)
    world.slack.answer = None
    await world.look(routing)
    assert len(world.said) == 1
    world.clock.time += timedelta(minutes=2)
    await world.look(routing)
    await world.look(routing)
    assert len(world.said) == 2


async def test_messages_of_one_group_stand_in_one_thread(world: World) -> None:
    spec = "  types: [PromotionCreated]\n  groupingKey: '${{ event.freight.name }}'\n" + SLACK
    routing = await world.routing(spec)
    first = at(world)
    await world.store.create_promotion(first)
    await world.look(routing)
    ended = replace(first, state=State.ABORTED, finished_at=world.clock.time)
    await world.store.save_promotion(ended, expected=first)
    await world.store.create_promotion(at(world, id=PromotionId("staging.02jx.1101101")))
    await world.look(routing)
    assert [body.get("thread_ts") for _, body in world.slack.got] == [None, "1700000001.000100"]


async def test_each_channel_is_told_in_its_own_words(world: World) -> None:
    channels = (
        "  types: [PromotionCreated]\n  output: everybody\n  channels:\n"
        "    - {kind: MessageChannel, name: slack}\n"
        "    - kind: MessageChannel\n      name: mail\n      encodingType: yaml\n"
        "      output: |\n        subject: Begun\n        to: [a@example.com]\n        body: ${{ event.project }}\n"
    )
    await world.store.create_promotion(at(world))
    await world.look(await world.routing(channels))
    assert world.said == ["everybody"]
    (raw,) = world.mail.got
    mail = email.message_from_bytes(raw, policy=email.policy.default)
    assert (mail["Subject"], mail["To"]) == ("Begun", "a@example.com")
    assert mail.get_content().strip().removesuffix(".").strip() == "acme"
    assert mail["Message-ID"] == "<PromotionCreated.staging.01jx.1101101@lockstep>"


async def test_verifications_and_approvals_are_told_of(world: World) -> None:
    routing = await world.routing(
        "  types: [FreightVerificationFailed, FreightApproved]\n"
        "  output: '${{ type }} ${{ event.name[:7] }} ${{ event.message }}'\n" + SLACK
    )
    now = world.clock.time
    await world.store.add_freight(views.NEW)
    await world.store.change_freight_status(
        "acme", views.NEW.name, lambda status: replace(status, approved_for={"staging": now})
    )
    run = AnalysisRun(
        "staging.1", "acme", "staging", "c", (views.NEW.name,), "staging.01jx.1101101", now,
        phase=Phase.FAILED, message="too slow", started_at=now, finished_at=now, settled=True,
    )  # fmt: skip
    await world.store.add_run(run)
    await world.look(routing)
    name = views.NEW.name[:7]
    assert sorted(map(str, world.said))[0].startswith(f"FreightApproved {name} Freight ")
    assert sorted(map(str, world.said))[1] == f"FreightVerificationFailed {name} too slow"
