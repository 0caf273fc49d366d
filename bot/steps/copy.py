"""`copy`: copies a file or a directory inside the work tree; symbolic links and `.git` are passed over (Kargo)."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.files import File, Mode
from bot.domain.step_kinds import StepClass, StepKind
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.ignoring import parse_ignore
from bot.steps.options import Options
from bot.steps.worktree import clean_path, inside_path, join

KIND = StepKind("copy", StepClass.EDIT)


@dataclass(frozen=True, slots=True)
class Config:
    """From where to where, and what is left out, in the syntax of `.gitignore`."""

    in_path: str
    out_path: str
    ignore: str


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    return Config(
        clean_path(options.address("inPath")),
        clean_path(options.address("outPath")),
        options.address("ignore"),
    )


@dataclass(frozen=True, slots=True)
class Copy:
    """Edits the work tree only."""

    @property
    def kind(self) -> StepKind:
        """An edit."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Copy."""
        return await self._copy(parse(config), context)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Copy."""
        return await self._copy(parse(config), context)

    async def _copy(self, config: Config, context: StepContext) -> StepResult:
        found = await context.tree.files(config.in_path)
        if not found:
            return failed(context.alias, f"copy: {config.in_path!r} does not exist")
        rules = parse_ignore(config.ignore, "copy: ignore")
        copied: dict[str, File | None] = {}
        for path, file in found.items():
            inner = inside_path(config.in_path, path)
            if inner is None or file.mode is Mode.SYMLINK or (inner != "." and rules.ignores(inner)):
                continue
            copied[join(config.out_path, inner)] = file
        context.tree.touch(config.out_path)
        await context.tree.put(copied)
        return StepResult()
