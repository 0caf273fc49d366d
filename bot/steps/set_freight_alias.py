"""`set-freight-alias`: gives Freight another alias."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.review import EffectRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Value
from bot.ports.store import FreightStore
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.options import Options, known_text

KIND = StepKind("set-freight-alias", StepClass.NOTE)


@dataclass(frozen=True, slots=True)
class Config:
    """The Freight, by name or alias, and its new alias, which may hold marks."""

    name: str
    alias: Value


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    return Config(options.address("name"), options.value("alias"))


@dataclass(frozen=True, slots=True)
class SetFreightAlias:
    """Writes a note; the last write wins."""

    store: FreightStore

    @property
    def kind(self) -> StepKind:
        """A note."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Show the alias."""
        del context
        wanted = parse(config)
        record = EffectRecord(
            f"rename Freight {wanted.name}", "Lockstep", (("alias", wanted.alias),), quiet=True
        )
        return StepResult(record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Rename it; an alias that it has already counts as done."""
        wanted = parse(config)
        project = context.promotion.project
        alias = known_text(wanted.alias, "set-freight-alias: alias")
        found = await self.store.get_freight(project, wanted.name)
        if found is None:
            return failed(
                context.alias, f"set-freight-alias: project {project} has no Freight {wanted.name!r}"
            )
        freight, _ = found
        if freight.alias == alias or await self.store.rename_freight(project, freight.name, alias):
            return StepResult()
        return failed(
            context.alias,
            f"set-freight-alias: other Freight of project {project} is called {alias!r} already",
        )
