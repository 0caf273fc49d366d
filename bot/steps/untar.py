"""`untar`: unpacks an archive of the work tree; links and paths that leave it are refused."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.files import File
from bot.domain.step_kinds import StepClass, StepKind
from bot.steps.archives import unpack
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult
from bot.steps.ignoring import parse_ignore
from bot.steps.options import Options
from bot.steps.worktree import clean_path, join

KIND = StepKind("untar", StepClass.EDIT)


@dataclass(frozen=True, slots=True)
class Config:
    """The archive, where its files go, how many leading directories are dropped, and what is left out."""

    in_path: str
    out_path: str
    strip: int
    ignore: str


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    return Config(
        in_path=clean_path(options.address("inPath")),
        out_path=clean_path(options.address("outPath")),
        strip=int(options.number("stripComponents", 0)),
        ignore=options.address("ignore"),
    )


@dataclass(frozen=True, slots=True)
class Untar:
    """Edits the work tree only."""

    @property
    def kind(self) -> StepKind:
        """An edit."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Unpack."""
        return await self._unpack(parse(config), context)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Unpack."""
        return await self._unpack(parse(config), context)

    async def _unpack(self, config: Config, context: StepContext) -> StepResult:
        data = await context.tree.read(config.in_path)
        rules = parse_ignore(config.ignore, "untar: ignore")
        written: dict[str, File | None] = {
            join(config.out_path, path): file
            for path, file in unpack(data, config.in_path, strip=config.strip).items()
            if not rules.ignores(path)
        }
        context.tree.touch(config.out_path)
        await context.tree.put(written)
        return StepResult()
