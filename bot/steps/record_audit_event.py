"""`record-audit-event`: puts a line of the task's own into the timeline; the same step of a Promotion does so once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Protocol

from bot.domain.review import EffectRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Value, show
from bot.ports import Event
from bot.ports.store import PromotionStore
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult
from bot.steps.marks import message_text
from bot.steps.options import Options

KIND = StepKind("record-audit-event", StepClass.NOTE)


class EventStore(PromotionStore, Protocol):
    """Where the timeline is kept."""


@dataclass(frozen=True, slots=True)
class Config:
    """The message and what belongs to it; all may hold marks."""

    message: Value
    type: Value
    actor: Value
    data: Value


def parse(given: Given) -> Config:
    """The config of the step."""
    options = Options(KIND.name, given)
    return Config(options.text("message"), options.text("type"), options.text("actor"), options.value("data"))


@dataclass(frozen=True, slots=True)
class RecordAuditEvent:
    """Writes a note."""

    store: EventStore

    @property
    def kind(self) -> StepKind:
        """A note."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Show the line."""
        del context
        wanted = parse(config)
        details: tuple[tuple[str, Value], ...] = (
            ("message", wanted.message),
            ("type", wanted.type),
            ("actor", wanted.actor),
            ("data", wanted.data),
        )
        shown = tuple(detail for detail in details if detail[1] not in ("", None))
        return StepResult(record=EffectRecord("record an audit event", "Lockstep", shown, quiet=True))

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Write the line, unless an earlier run did."""
        wanted = parse(config)
        promotion = context.promotion
        kind = f"audit:{context.alias}"
        known = await self.store.list_events(project=promotion.project, promotion=promotion.id)
        if any(event.kind == kind for event in known):
            return StepResult(message="recorded already")
        await self.store.add_event(
            Event(context.now, promotion.project, promotion.stage, promotion.id, kind, _text(wanted))
        )
        return StepResult()


def _text(wanted: Config) -> str:
    """The line: type and actor in front, data behind, secrets masked."""
    parts = [message_text(wanted.message, "record-audit-event: message")]
    kind, actor = message_text(wanted.type, "type"), message_text(wanted.actor, "actor")
    if actor:
        parts.insert(0, f"{actor}:")
    if kind:
        parts.insert(0, f"[{kind}]")
    if wanted.data:
        parts.append(json.dumps(show(wanted.data), sort_keys=True, ensure_ascii=False))
    return " ".join(parts)
