"""`send-message`: one message to Slack or by mail, once for each step of a Promotion.

What was sent is noted in the timeline at once, so that a second run finds it. A message whose fate is not known (its
answer was lost, or the bot died meanwhile) is not sent again: a note must neither be doubled nor hold up a release.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol, assert_never

from bot.domain.promotion import StepStatus
from bot.domain.review import EffectRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Json, Value, is_tainted
from bot.ports import Event, TerminalError
from bot.ports.messages import (
    Channel,
    Delivered,
    Mail,
    MailChannel,
    MaybeSent,
    Messages,
    NotSent,
    NotTaken,
    Sent,
    SlackChannel,
)
from bot.ports.store import PromotionStore
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.marks import message_text
from bot.steps.options import Options, known_text
from bot.steps.structured import read_structure

KIND = StepKind("send-message", StepClass.NOTE)

_MOST_TRIES = 20
_THREAD = re.compile(r"thread (\S+)$")


class EventStore(PromotionStore, Protocol):
    """Where the timeline is kept."""


@dataclass(frozen=True, slots=True)
class Config:
    """The channel, the message and its encoding (empty: plain text); the message and the options may hold marks."""

    kind: str
    name: str
    message: Value
    encoding: str
    slack: Options
    smtp: Options

    @property
    def address(self) -> str:
        """What a reviewer reads."""
        return f"{self.kind} {self.name}"


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address or encoding."""
    options = Options(KIND.name, given)
    channel = options.part("channel")
    encoding = options.address("encodingType")
    if encoding not in ("", "json", "yaml", "xml"):
        raise TerminalError(f"send-message: encodingType {encoding!r} is none of json, yaml and xml")
    return Config(
        channel.address("kind"),
        channel.address("name"),
        options.text("message"),
        encoding,
        options.part("slack"),
        options.part("smtp"),
    )


@dataclass(frozen=True, slots=True)
class SendMessage:
    """Writes a note."""

    messages: Messages
    store: EventStore

    @property
    def kind(self) -> StepKind:
        """A note."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Show the message; a channel that cannot be used fails now."""
        wanted = parse(config)
        self._channel(wanted, context)
        if wanted.encoding and not is_tainted(wanted.message):
            _body(wanted)
        details: list[tuple[str, Value]] = [("message", wanted.message)]
        for options in (wanted.slack, wanted.smtp) if not wanted.encoding else ():
            details += list(options.values.items())
        record = EffectRecord("send a message", wanted.address, tuple(details), quiet=True)
        return StepResult(None, {}, record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Send it, unless an earlier run did or may have."""
        wanted = parse(config)
        channel = self._channel(wanted, context)
        known = await self._recorded(context)
        if known is not None:
            return StepResult(output=_output(wanted, channel, known), message="sent already")
        if context.outcome_unknown:
            return StepResult(
                message="it may have been sent by a run that broke off, so it is not sent again"
            )
        match channel:
            case SlackChannel():
                outcome = await self.messages.post(channel, _slack_body(wanted, channel))
            case MailChannel():
                outcome = await self.messages.mail(channel, _mail(wanted, channel, context))
            case _:
                assert_never(channel)
        return await self._conclude(outcome, wanted, channel, context)

    def _channel(self, wanted: Config, context: StepContext) -> Channel:
        project = context.promotion.project
        channel = self.messages.find_channel(project, wanted.kind, wanted.name)
        if channel is None:
            where = f" in the project {project}" if wanted.kind == "MessageChannel" else ""
            raise TerminalError(f"send-message: there is no {wanted.kind} {wanted.name!r}{where}")
        return channel

    async def _conclude(
        self, outcome: Delivered, wanted: Config, channel: Channel, context: StepContext
    ) -> StepResult:
        match outcome:
            case Sent(thread=thread):
                await self._record(wanted, thread, context)
                return StepResult(output=_output(wanted, channel, thread))
            case NotSent(reason=reason, retry_after=wait):
                tries = context.detail.get("tries", 0)
                count = tries + 1 if isinstance(tries, int) else 1
                if count >= _MOST_TRIES:
                    return failed(context.alias, f"send-message: {reason} ({count} tries)")
                return StepResult(
                    StepStatus.RUNNING, message=reason, retry_after=wait, detail={"tries": count}
                )
            case NotTaken(reason=reason):
                return failed(context.alias, f"send-message: {reason}")
            case MaybeSent(reason=reason):
                await self._record(wanted, "", context)
                return StepResult(message=f"it may not have arrived ({reason}); it is not sent again")
            case _:
                assert_never(outcome)

    async def _recorded(self, context: StepContext) -> str | None:
        """The thread of the message that was sent (empty for none), None if none was."""
        promotion = context.promotion
        events = await self.store.list_events(project=promotion.project, promotion=promotion.id)
        for event in events:
            if event.kind == f"message:{context.alias}":
                found = _THREAD.search(event.message)
                return found[1] if found is not None else ""
        return None

    async def _record(self, wanted: Config, thread: str, context: StepContext) -> None:
        promotion = context.promotion
        text = f"message sent to {wanted.address}{f', thread {thread}' if thread else ''}"
        kind = f"message:{context.alias}"
        await self.store.add_event(
            Event(context.now, promotion.project, promotion.stage, promotion.id, kind, text)
        )


def _output(wanted: Config, channel: Channel, thread: str) -> dict[str, Value]:
    if not isinstance(channel, SlackChannel):
        return {}
    given = wanted.slack.value("threadTS") if not wanted.encoding else _body(wanted).get("thread_ts")
    return {"slack": {"threadTS": str(given) if given else thread}}


def _slack_body(wanted: Config, channel: SlackChannel) -> dict[str, Json]:
    if wanted.encoding:
        body = _body(wanted)
        return {**body, "channel": body.get("channel") or channel.channel_id}
    body = {
        "channel": _option(wanted.slack, "channelID") or channel.channel_id,
        "text": message_text(wanted.message, "send-message: message"),
    }
    thread = _option(wanted.slack, "threadTS")
    return {**body, "thread_ts": thread} if thread else body


def _mail(wanted: Config, channel: MailChannel, context: StepContext) -> Mail:
    promotion = context.promotion
    body = _body(wanted) if wanted.encoding else {}
    recipients = _recipients(_plain(body.get("to")) if wanted.encoding else wanted.smtp.value("to"))
    if not recipients and not channel.recipients:
        raise TerminalError(f"send-message: neither the step nor the {wanted.address} says to whom")
    subject = str(body.get("subject") or "") if wanted.encoding else _option(wanted.smtp, "subject")
    text = str(body.get("body") or "") if wanted.encoding else message_text(wanted.message, "message")
    html = body.get("html") in (True, "true") if wanted.encoding else wanted.smtp.flag("html")
    return Mail(
        recipients or channel.recipients,
        subject
        or f"{promotion.project}/{promotion.stage}: {promotion.freight.alias or promotion.freight.name}",
        text,
        f"{promotion.id}.{context.alias}".replace("::", "."),
        html,
    )


def _plain(value: Json) -> Value:
    return [str(item) for item in value] if isinstance(value, list) else str(value or "")


def _recipients(given: Value) -> tuple[str, ...]:
    if not given:
        return ()
    listed: list[Value] = given if isinstance(given, list) else [given]
    return tuple(known_text(item, "send-message: smtp.to") for item in listed)


def _option(options: Options, name: str) -> str:
    return message_text(options.text(name), f"{options.where}: {name}")


def _body(wanted: Config) -> dict[str, Json]:
    """The message as a structure; raises TerminalError if it is none."""
    text = message_text(wanted.message, "send-message: message")
    return read_structure(text, wanted.encoding, "send-message")
