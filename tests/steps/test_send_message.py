"""send-message with the real adapter: a server that speaks as Slack does, and a mail server."""

from __future__ import annotations

import email
import email.policy
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.adapters.git import GitMirror
from bot.adapters.http import HttpClient
from bot.adapters.messages import MessageChannels
from bot.app import load
from bot.domain.promotion import StepRun, StepStatus
from bot.domain.review import EffectRecord
from bot.domain.values import Json, Sensitive, Text, Unknown, Value
from bot.ports import TerminalError
from bot.sandbox.serving import Listener
from bot.steps.contract import Config
from bot.steps.send_message import EventStore, SendMessage
from tests.steps.bench import Bench
from tests.steps.message_servers import CHANNELS, Secrets, Slack, Timeline, World, serve_mail

IN_YAML = "blocks: [{type: divider}]\nthread_ts: '17.2'\n"


async def no_token(url: str) -> str | None:
    return None


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(GitMirror(tmp_path / "mirrors", no_token))


@pytest.fixture
async def world() -> AsyncIterator[World]:
    slack, timeline, listener = Slack(), Timeline(), Listener()
    await listener.start(Starlette(routes=[Route("/api/chat.postMessage", slack.post, methods=["POST"])]))
    async with serve_mail() as mail, HttpClient() as http:
        slack.url = f"http://{listener.host}/api/chat.postMessage"
        pipeline, problems = load({"p.yaml": CHANNELS.replace("PORT", str(mail.port))}, "1")
        assert problems == ()
        channels = MessageChannels(lambda: pipeline, Secrets(), http, slack_url=slack.url)
        yield World(slack, mail, timeline, SendMessage(channels, cast(EventStore, timeline)))
    await listener.stop()


def sending(name: str = "slack", message: Value = "dev is done", **more: Value) -> Config:
    kind = "ClusterMessageChannel" if name == "everywhere" else "MessageChannel"
    return {"channel": {"kind": kind, "name": name}, "message": message, **more}


# -- Slack -------------------------------------------------------------------------------------------------------


async def test_a_message_is_shown_and_then_sent_once(bench: Bench, world: World) -> None:
    shown = await bench.preview(world.step, sending())
    assert isinstance(shown.record, EffectRecord)
    assert shown.record.quiet
    assert world.slack.got == []
    bench.again()
    done = await bench.fulfil(world.step, sending())
    again = await bench.fulfil(world.step, sending())
    assert world.slack.got == [("Bearer xoxb-1", {"channel": "C1", "text": "dev is done"})]
    assert done.output == again.output == {"slack": {"threadTS": "1700000001.000100"}}
    await bench.fulfil(world.step, sending(), "another")
    assert len(world.slack.got) == 2


@pytest.mark.parametrize(
    ("config", "token", "body"),
    [
        pytest.param(
            sending("everywhere"), "xoxb-2", {"channel": "C2", "text": "dev is done"}, id="for all projects"
        ),
        pytest.param(
            sending(slack={"channelID": "C9", "threadTS": "17.1"}),
            "xoxb-1",
            {"channel": "C9", "text": "dev is done", "thread_ts": "17.1"},
            id="another channel and thread",
        ),
        pytest.param(
            sending(
                message="blocks: [{type: divider}]\nthread_ts: '17.2'\n",
                encodingType="yaml",
                slack={"channelID": "C9"},
            ),
            "xoxb-1",
            {"channel": "C1", "blocks": [{"type": "divider"}], "thread_ts": "17.2"},
            id="in YAML, which says all there is",
        ),
        pytest.param(
            sending(message='{"channel": "C7", "text": "x"}', encodingType="json"),
            "xoxb-1",
            {"channel": "C7", "text": "x"},
            id="in JSON",
        ),
        pytest.param(
            sending(
                message="<m><text>x</text><blocks><type>a</type></blocks><blocks><type>b</type></blocks></m>",
                encodingType="xml",
            ),
            "xoxb-1",
            {"channel": "C1", "text": "x", "blocks": [{"type": "a"}, {"type": "b"}]},
            id="in XML",
        ),
        pytest.param(
            sending(message=Text(("key ", Sensitive("token", "hunter2")))),
            "xoxb-1",
            {"channel": "C1", "text": "key <sensitive: token>"},
            id="secrets are masked",
        ),
    ],
)
async def test_what_slack_gets(
    bench: Bench, world: World, config: Config, token: str, body: dict[str, Json]
) -> None:
    await bench.fulfil(world.step, config)
    assert world.slack.got == [(f"Bearer {token}", body)]


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        pytest.param(
            JSONResponse({"ok": False, "error": "channel_not_found"}),
            StepStatus.FAILED,
            "Slack says channel_not_found",
            id="no such channel",
        ),
        pytest.param(
            Response(status_code=429, headers={"retry-after": "7"}),
            StepStatus.RUNNING,
            "asks to wait",
            id="too many",
        ),
        pytest.param(
            Response(status_code=503),
            StepStatus.SUCCEEDED,
            "it is not sent again",
            id="an answer without sense",
        ),
    ],
)
async def test_what_slack_answers_decides(
    bench: Bench, world: World, answer: Response, status: StepStatus, said: str
) -> None:
    world.slack.answer = answer
    result = await bench.fulfil(world.step, sending())
    assert (result.status, said in result.message) == (status, True), result.message
    world.slack.answer = None
    again = await bench.fulfil(world.step, sending())
    assert again.status is StepStatus.SUCCEEDED
    assert len(world.slack.got) == (1 if status is StepStatus.SUCCEEDED else 2)


async def test_a_message_that_a_dead_bot_may_have_sent_is_not_sent(bench: Bench, world: World) -> None:
    name = world.step.kind.name
    bench.journal[name] = StepRun(name, name, 1, StepStatus.RUNNING, begun_at=bench.now)
    result = await bench.fulfil(world.step, sending())
    assert (result.status, world.slack.got) == (StepStatus.SUCCEEDED, [])
    assert "may have been sent" in result.message


async def test_an_unreachable_server_is_tried_again_but_not_for_ever(bench: Bench, world: World) -> None:
    world.mail.replies["EHLO"] = world.mail.replies["HELO"] = "421 busy"
    result = await bench.fulfil(world.step, sending("mail"))
    assert (result.status, result.detail) == (StepStatus.RUNNING, {"tries": 1})
    for _ in range(18):
        assert (await bench.fulfil(world.step, sending("mail"))).status is StepStatus.RUNNING
    assert (await bench.fulfil(world.step, sending("mail"))).status is StepStatus.FAILED


# -- mail --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "to", "subject", "kind", "body"),
    [
        pytest.param(
            sending("mail"),
            "ops@example.com",
            "acme/dev: calm-otter",
            "text/plain",
            "dev is done",
            id="plain",
        ),
        pytest.param(
            sending(
                "mail", smtp={"to": ["a@example.com", "b@example.com"], "subject": "Done 🚀", "html": True}
            ),
            "a@example.com, b@example.com",
            "Done 🚀",
            "text/html",
            "dev is done",
            id="with options",
        ),
        pytest.param(
            sending(
                "mail",
                '{"to": ["c@example.com"], "subject": "S", "body": "<b>x</b>", "html": true}',
                encodingType="json",
                smtp={"subject": "ignored"},
            ),
            "c@example.com",
            "S",
            "text/html",
            "<b>x</b>",
            id="in JSON",
        ),
    ],
)
async def test_what_is_mailed(
    bench: Bench, world: World, config: Config, to: str, subject: str, kind: str, body: str
) -> None:
    done = await bench.fulfil(world.step, config)
    assert (done.status, done.output) == (StepStatus.SUCCEEDED, {})
    await bench.fulfil(world.step, config)
    (raw,) = world.mail.got
    mail = email.message_from_bytes(raw, policy=email.policy.default)
    assert (mail["To"], mail["Subject"], mail["From"]) == (to, subject, "bot@example.com")
    assert mail["Message-ID"] == "<dev.01abc.fffffff.send-message@lockstep>"
    assert (mail.get_content_type(), mail.get_content().strip().removesuffix(".").strip()) == (kind, body)


@pytest.mark.parametrize(
    ("replies", "status", "said"),
    [
        pytest.param({"RCPT": "550 nobody"}, StepStatus.FAILED, "answered 550 nobody", id="no such person"),
        pytest.param({"RCPT": "451 later"}, StepStatus.RUNNING, "answered 451 later", id="greylisted"),
        pytest.param({"END": "554 spam"}, StepStatus.FAILED, "answered 554 spam", id="refused as spam"),
        pytest.param(
            {"END": ""}, StepStatus.SUCCEEDED, "it is not sent again", id="hung up after all was said"
        ),
    ],
)
async def test_what_a_mail_server_answers_decides(
    bench: Bench, world: World, replies: dict[str, str], status: StepStatus, said: str
) -> None:
    world.mail.replies.update(replies)
    result = await bench.fulfil(world.step, sending("mail"))
    assert (result.status, said in result.message) == (status, True), result.message


async def test_a_subject_cannot_add_headers(bench: Bench, world: World) -> None:
    result = await bench.fulfil(world.step, sending("mail", smtp={"subject": "x\nBcc: all@example.com"}))
    assert (result.status, world.mail.got) == (StepStatus.FAILED, [])


# -- what is refused before anything is sent ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "said"),
    [
        pytest.param(
            sending("nobody"), "there is no MessageChannel 'nobody' in the project acme", id="no channel"
        ),
        pytest.param(sending("web"), "neither for Slack nor for mail", id="another kind of channel"),
        pytest.param(sending("tokenless"), "lacks the key apiKey in its Secret", id="no token"),
        pytest.param(sending("secretless"), "names the Secret 'gone', which is not in acme", id="no Secret"),
        pytest.param(sending(message="{", encodingType="json"), "is no valid json", id="bad JSON"),
        pytest.param(sending(encodingType="toml"), "none of json, yaml and xml", id="another encoding"),
    ],
)
async def test_a_preview_names_what_cannot_be_sent(
    bench: Bench, world: World, config: Config, said: str
) -> None:
    with pytest.raises(TerminalError, match=said):
        await bench.preview(world.step, config)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        pytest.param(sending(message="{", encodingType="json"), "is no valid json", id="bad JSON"),
        pytest.param(sending(message="- a", encodingType="yaml"), "must be a mapping", id="a list"),
        pytest.param(
            sending(message="<!DOCTYPE m [<!ENTITY a 'b'>]><m/>", encodingType="xml"),
            "document type",
            id="entities",
        ),
        pytest.param(sending(message=Unknown("known after apply: x")), "not known", id="an unknown value"),
    ],
)
async def test_what_is_no_message_is_refused(bench: Bench, world: World, config: Config, said: str) -> None:
    with pytest.raises(TerminalError, match=said):
        await bench.fulfil(world.step, config)
    assert world.slack.got == []
