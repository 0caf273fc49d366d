"""`file-write`: writes a text into a file of the work tree.

Kargo's rules for `permissions` hold (no executable and no world-writable file); Git itself keeps none of these bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.files import Mode
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Value
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.marks import file_value
from bot.steps.options import Options
from bot.steps.updates import repository_path
from bot.steps.worktree import clean_path

KIND = StepKind("file-write", StepClass.EDIT)


@dataclass(frozen=True, slots=True)
class Config:
    """Path, contents (which may hold marks) and mode."""

    path: str
    contents: Value
    permissions: int
    overwrite: bool


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    return Config(
        path=clean_path(options.address("path")),
        contents=options.text("contents"),
        permissions=int(options.address("permissions", "0600"), 8),
        overwrite=options.flag("overwrite"),
    )


@dataclass(frozen=True, slots=True)
class FileWrite:
    """Edits the work tree only."""

    @property
    def kind(self) -> StepKind:
        """An edit."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Write the file; unknown values are written as sentinels."""
        return await self._write(parse(config), context)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Write the file."""
        return await self._write(parse(config), context)

    async def _write(self, config: Config, context: StepContext) -> StepResult:
        path = config.path
        where = repository_path(path, context)
        if config.permissions & 0o113:
            return failed(
                context.alias,
                f"file-write: permissions {config.permissions:04o} of {path!r} make it executable or writable for "
                "everybody; use 0600 or 0644",
                path=where,
            )
        if not config.overwrite and await context.tree.find_file(path) is not None:
            return failed(
                context.alias,
                f"file-write: {path!r} exists already; set overwrite: true to replace it",
                path=where,
            )
        text = file_value(config.contents, context, f"file-write: the contents of {path!r}")
        context.tree.touch(path)
        await context.tree.write(path, str(text).encode(), mode=Mode.FILE)
        return StepResult()
