"""`set-metadata`: writes values into the metadata of Stages and Freight."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from bot.domain.freight import FreightStatus
from bot.domain.review import EffectRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Json, Value, find_sensitive, is_tainted, reveal
from bot.ports import TerminalError
from bot.ports.store import FreightStore, StageRecord, StageStore
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.options import Options

KIND = StepKind("set-metadata", StepClass.NOTE)


class MetadataStore(FreightStore, StageStore, Protocol):
    """Where metadata is kept."""


@dataclass(frozen=True, slots=True)
class Update:
    """Values for one Stage or piece of Freight."""

    kind: str
    name: str
    values: dict[str, Value]


def parse(given: Given) -> tuple[Update, ...]:
    """The config of the step; raises TerminalError for an unknown address."""
    updates = []
    for item in Options(KIND.name, given).each("updates"):
        values = item.value("values")
        updates.append(
            Update(
                item.address("kind"), item.address("name"), dict(values) if isinstance(values, dict) else {}
            )
        )
    return tuple(updates)


@dataclass(frozen=True, slots=True)
class SetMetadata:
    """Writes notes; the last write wins."""

    store: MetadataStore

    @property
    def kind(self) -> StepKind:
        """A note."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Show what will be written; secrets are refused, since metadata is shown."""
        del context
        details: list[tuple[str, Value]] = []
        for update in parse(config):
            _refuse_secrets(update)
            details += [
                (f"{update.kind} {update.name}: {key}", value) for key, value in update.values.items()
            ]
        return StepResult(record=EffectRecord("set metadata", "Lockstep", tuple(details), quiet=True))

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Write it."""
        project = context.promotion.project
        for update in parse(config):
            _refuse_secrets(update)
            values = _plain(update)
            if update.kind == "Stage":
                await self.store.change_stage(project, update.name, partial(_with_metadata, values=values))
                continue
            found = await self.store.get_freight(project, update.name)
            if found is None:
                return failed(
                    context.alias, f"set-metadata: project {project} has no Freight {update.name!r}"
                )
            await self.store.change_freight_status(
                project, found[0].name, partial(_with_freight_metadata, values=values)
            )
        return StepResult()


def _refuse_secrets(update: Update) -> None:
    names = sorted(find_sensitive(update.values))
    if names:
        raise TerminalError(
            f"set-metadata: the value of {', '.join(names)} is sensitive, and metadata is shown to everybody; "
            "leave it out"
        )


def _plain(update: Update) -> dict[str, Json]:
    if is_tainted(update.values):
        raise TerminalError(f"set-metadata: a value for {update.kind} {update.name} is not known")
    return {key: reveal(value) for key, value in update.values.items()}


def _with_freight_metadata(status: FreightStatus, values: dict[str, Json]) -> FreightStatus:
    return replace(status, metadata={**status.metadata, **values})


def _with_metadata(stage: StageRecord, values: dict[str, Json]) -> StageRecord:
    return replace(stage, metadata={**(stage.metadata or {}), **values})
