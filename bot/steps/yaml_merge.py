"""`yaml-merge`: lays YAML files over one another; see `merge_yaml` for what merges and what is replaced."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.step_kinds import StepClass, StepKind
from bot.editors.errors import EditError
from bot.editors.yaml import merge_yaml
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult
from bot.steps.options import Options
from bot.steps.updates import read_text, refuse_edit

KIND = StepKind("yaml-merge", StepClass.EDIT)


@dataclass(frozen=True, slots=True)
class Config:
    """The files, later ones winning, and the file to write."""

    in_files: tuple[str, ...]
    out_file: str
    ignore_missing: bool


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    return Config(
        options.addresses("inFiles"), options.address("outFile"), options.flag("ignoreMissingFiles")
    )


@dataclass(frozen=True, slots=True)
class YamlMerge:
    """Edits the work tree only."""

    @property
    def kind(self) -> StepKind:
        """An edit."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Merge."""
        return await self._merge(parse(config), context)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Merge."""
        return await self._merge(parse(config), context)

    async def _merge(self, config: Config, context: StepContext) -> StepResult:
        texts: list[str] = []
        used: list[str] = []
        for path in config.in_files:
            if config.ignore_missing and await context.tree.find_file(path) is None:
                continue
            text = await read_text(KIND.name, path, context)
            if isinstance(text, StepResult):
                return text
            texts.append(text)
            used.append(path)
        try:
            merged = merge_yaml(texts)
        except EditError as error:
            return refuse_edit(KIND.name, config.out_file, error, context)
        context.tree.touch(config.out_file)
        await context.tree.write(config.out_file, merged.encode())
        lines = "".join(f"\n- {path}" for path in used)
        return StepResult(output={"commitMessage": f"Merged YAML files to {config.out_file}\n{lines}"})
