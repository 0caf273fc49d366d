"""`delete`: removes files and directories of the work tree."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.glob import compile_glob
from bot.domain.step_kinds import StepClass, StepKind
from bot.ports import TerminalError
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.options import Options
from bot.steps.worktree import clean_path

KIND = StepKind("delete", StepClass.EDIT)


@dataclass(frozen=True, slots=True)
class Config:
    """What to delete; with `strict` everything named must exist."""

    paths: tuple[str, ...]
    globs: bool
    strict: bool


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    named = (options.address("path"),) if options.has("path") else options.addresses("paths")
    return Config(
        tuple(clean_path(path) for path in named), options.flag("pathsAreGlobs"), options.flag("strict")
    )


@dataclass(frozen=True, slots=True)
class Delete:
    """Edits the work tree only."""

    @property
    def kind(self) -> StepKind:
        """An edit."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Delete."""
        return await self._delete(parse(config), context)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Delete."""
        return await self._delete(parse(config), context)

    async def _delete(self, config: Config, context: StepContext) -> StepResult:
        doomed: set[str] = set()
        for path in config.paths:
            found = _matching(path, context) if config.globs else set(context.tree.list(path))
            if not found and config.strict:
                return failed(context.alias, f"delete: {path!r} does not exist, and strict is set")
            context.tree.touch(path)
            doomed |= found
        await context.tree.put(dict.fromkeys(sorted(doomed)))
        return StepResult()


def _matching(glob: str, context: StepContext) -> set[str]:
    """The files that a glob names, or that lie below a directory that it names."""
    try:
        pattern = compile_glob(glob)
    except ValueError as error:
        raise TerminalError(f"delete: the glob {glob!r} is not valid: {error}") from error
    found = set()
    for path in context.tree.list("."):
        parts = path.split("/")
        if any(pattern.search("/".join(parts[:length])) for length in range(1, len(parts) + 1)):
            found.add(path)
    return found
