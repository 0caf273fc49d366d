"""Telling message channels what happened, as the pipeline's EventRouters say.

What a Stage's Promotions, verifications and approvals amount to is looked at with the Stage; each event is queued under
a name that follows from it, so that the next look queues nothing new. The words are found when it is sent. An event
that is an hour old is not queued any more: late news misleads. A message whose fate is not known is not sent again.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import assert_never

from bot.domain.event_router import EventRouter, RoutedChannel, read_router
from bot.domain.model import Stage
from bot.domain.notices import Notice, approval_notice, promotion_notices, verification_notices
from bot.domain.values import Json
from bot.expressions.errors import ExpressionError
from bot.expressions.notices import matches_notice, word_notice
from bot.ports import Clock, Messages, Post, Store, TerminalError, TransientError
from bot.ports.messages import Delivered, Mail, MailChannel, MaybeSent, NotSent, NotTaken, Sent, SlackChannel
from bot.steps.structured import read_structure
from bot.workflow.configuration import Configuration

log = logging.getLogger(__name__)

POST = "message"
_NEWS = timedelta(hours=1)
_RANK = 9
_PROMOTIONS = 10
"""The newest Promotions of a Stage that are looked at; within an hour there are hardly more."""
_MOST_THREADS = 1000
_MOST_TRIES = 20


@dataclass(slots=True)
class EventRouting:
    """Queues and sends. `threads` maps a router, channel and grouping key to Slack's thread, as long as we run."""

    store: Store
    clock: Clock
    configuration: Configuration
    messages: Messages
    threads: OrderedDict[tuple[str, str, str], str] = field(default_factory=OrderedDict)

    # -- queueing --------------------------------------------------------------------------------------------------

    async def queue(self, stage: Stage) -> None:
        """Queue what is new of a Stage; the same event is queued once."""
        project, name = stage.metadata.namespace, stage.metadata.name
        routers = self._routers(project)
        if not routers:
            return
        wanted = frozenset().union(*(router.types for router in routers.values()))
        since = self.clock.now() - _NEWS
        for notice in await self._notices(stage, wanted):
            if notice.at < since or notice.type not in wanted:
                continue
            for router in routers.values():
                if notice.type in router.types:
                    await self._queue(project, name, router, notice)

    async def _queue(self, project: str, stage: str, router: EventRouter, notice: Notice) -> None:
        for index in range(len(router.channels)):
            key = f"{POST}/{project}/{router.metadata.name}/{index}/{notice.type}/{notice.subject}"
            payload: dict[str, Json] = {
                "project": project,
                "stage": stage,
                "router": router.metadata.name,
                "channel": index,
                "type": notice.type,
                "subject": notice.subject,
            }
            lane = f"{POST}/{project}/{router.metadata.name}"
            await self.store.queue_post(Post(key, POST, lane, _RANK, payload))

    async def _notices(self, stage: Stage, wanted: frozenset[str]) -> list[Notice]:
        project, name = stage.metadata.namespace, stage.metadata.name
        found: list[Notice] = []
        if any(kind.startswith("Promotion") for kind in wanted):
            verified = stage.verification is not None
            for promotion in await self.store.list_promotions(project, name, limit=_PROMOTIONS):
                found += promotion_notices(promotion, verified=verified)
        if any(kind.startswith("FreightVerification") for kind in wanted):
            for run in await self.store.list_runs(project, name):
                for freight in run.freight:
                    known = await self.store.get_freight(project, freight)
                    found += verification_notices(run, known[0]) if known is not None else []
        if "FreightApproved" in wanted:
            for freight_, status in await self.store.list_freight(project):
                at = status.approved_for.get(name)
                found += [approval_notice(freight_, name, at)] if at is not None else []
        return found

    def _routers(self, project: str) -> Mapping[str, EventRouter]:
        documents = self.configuration.pipeline.others
        return {
            document.metadata.name: read_router(document)
            for document in documents
            if document.kind == "EventRouter" and document.metadata.namespace == project
        }

    # -- sending ---------------------------------------------------------------------------------------------------

    async def send_due(self) -> int:
        """Send everything that is due; returns how many went out, or were dropped."""
        sent = 0
        for due in await self.store.list_due_posts(self.clock.now()):
            if due.post.kind != POST:
                continue
            try:
                await self.send(due.post.payload)
            except TransientError as error:
                if due.attempts < _MOST_TRIES:
                    pause = (
                        error.retry_after if error.retry_after is not None else 2.0 ** min(due.attempts, 8)
                    )
                    at = self.clock.now() + timedelta(seconds=pause)
                    await self.store.postpone_post(due, at, str(error))
                    continue
                log.error("an event could not be told", extra={"post": due.post.key, "error": str(error)})
            await self.store.finish_post(due)
            sent += 1
        return sent

    async def send(self, payload: Mapping[str, Json]) -> None:
        """Send one queued event. Raises TransientError to be tried again; what cannot be told is logged and dropped."""
        project, name, index = str(payload["project"]), str(payload["router"]), payload["channel"]
        router = self._routers(project).get(name)
        stage = self.configuration.stage(project, str(payload["stage"]))
        if router is None or stage is None or not isinstance(index, int) or index >= len(router.channels):
            return
        kind, subject = str(payload["type"]), str(payload["subject"])
        notices = await self._notices(stage, frozenset({kind}))
        notice = next((n for n in notices if (n.type, n.subject) == (kind, subject)), None)
        if notice is None or self.clock.now() - notice.at > 2 * _NEWS:
            return
        try:
            if matches_notice(router.when, notice):
                await self._tell(router, router.channels[index], notice)
        except (ExpressionError, TerminalError) as error:
            log.error(
                "an event could not be told", extra={"router": f"{project}/{name}", "error": str(error)}
            )

    async def _tell(self, router: EventRouter, wanted: RoutedChannel, notice: Notice) -> None:
        project = router.metadata.namespace
        channel = self.messages.find_channel(project, wanted.kind, wanted.name)
        if channel is None:
            raise TerminalError(f"there is no {wanted.kind} {wanted.name!r}")
        own = wanted.output
        encoding = wanted.encoding if own else router.encoding
        text = word_notice(own or router.output, notice) if own or router.output else notice.words
        where = f"EventRouter {router.metadata.name}"
        body = read_structure(text, encoding, where) if encoding and (own or router.output) else None
        match channel:
            case SlackChannel():
                if not (own or router.output):
                    text = escape_slack(text)
                await self._post(router, wanted, channel, notice, body or {"text": text})
            case MailChannel():
                self._judge(await self.messages.mail(channel, _mail(channel, notice, text, body)))
            case _:
                assert_never(channel)

    async def _post(
        self,
        router: EventRouter,
        wanted: RoutedChannel,
        channel: SlackChannel,
        notice: Notice,
        body: dict[str, Json],
    ) -> None:
        group = word_notice(router.grouping_key, notice) if router.grouping_key else ""
        place = (f"{router.metadata.namespace}/{router.metadata.name}", f"{wanted.kind}/{wanted.name}", group)
        thread: dict[str, Json] = (
            {"thread_ts": self.threads[place]} if group and place in self.threads else {}
        )
        sent = {**thread, **body, "channel": body.get("channel") or channel.channel_id}
        begun = self._judge(await self.messages.post(channel, sent))
        if group and begun and place not in self.threads:
            self.threads[place] = begun
            while len(self.threads) > _MOST_THREADS:
                self.threads.popitem(last=False)

    def _judge(self, outcome: Delivered) -> str:
        """The thread of a message that was sent."""
        match outcome:
            case Sent(thread=thread):
                return thread
            case NotSent(reason=reason, retry_after=wait):
                raise TransientError(reason, retry_after=wait)
            case NotTaken(reason=reason):
                raise TerminalError(reason)
            case MaybeSent(reason=reason):
                raise TerminalError(f"it may not have arrived, and is not sent again: {reason}")
            case _:
                assert_never(outcome)


def _mail(channel: MailChannel, notice: Notice, text: str, body: dict[str, Json] | None) -> Mail:
    given = body or {}
    to = given.get("to")
    listed = to if isinstance(to, list) else [to] if to else []
    recipients = tuple(str(item) for item in listed) or channel.recipients
    if not recipients:
        raise TerminalError("neither the message nor the channel says to whom the mail goes")
    place = f"{notice.event['project']}/{notice.event['stageName']}"
    return Mail(
        recipients,
        str(given.get("subject") or f"{place}: {notice.type}"),
        str(given.get("body") or "") if body is not None else text,
        f"{notice.type}.{notice.subject}".replace("/", "."),
        given.get("html") in (True, "true"),
    )


def escape_slack(text: str) -> str:
    """Our own words for Slack, in which names and reasons of others mention nobody (Slack, "Escaping text")."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
