"""`tar`: packs a file or a directory of the work tree; the same files give the same archive."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from bot.domain.files import Mode
from bot.domain.step_kinds import StepClass, StepKind
from bot.steps.archives import pack
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.ignoring import parse_ignore
from bot.steps.options import Options
from bot.steps.worktree import clean_path, inside_path

KIND = StepKind("tar", StepClass.EDIT)


@dataclass(frozen=True, slots=True)
class Config:
    """What to pack, where to, and what is left out in the syntax of `.gitignore`."""

    in_path: str
    out_path: str
    compress: bool
    ignore: str


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    return Config(
        in_path=clean_path(options.address("inPath")),
        out_path=clean_path(options.address("outPath")),
        compress=options.flag("gzip"),
        ignore=options.address("ignore"),
    )


@dataclass(frozen=True, slots=True)
class Tar:
    """Edits the work tree only."""

    @property
    def kind(self) -> StepKind:
        """An edit."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Pack."""
        return await self._pack(parse(config), context)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Pack."""
        return await self._pack(parse(config), context)

    async def _pack(self, config: Config, context: StepContext) -> StepResult:
        found = await context.tree.files(config.in_path)
        if not found:
            return failed(context.alias, f"tar: {config.in_path!r} does not exist")
        rules = parse_ignore(config.ignore, "tar: ignore")
        packed = {}
        for path, file in found.items():
            inner = inside_path(config.in_path, path) or path
            name = posixpath.basename(path) if inner == "." else inner
            if path != config.out_path and file.mode is not Mode.SYMLINK and not rules.ignores(name):
                packed[name] = file
        context.tree.touch(config.out_path)
        await context.tree.write(config.out_path, pack(packed, compress=config.compress))
        return StepResult()
