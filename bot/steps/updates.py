"""What the update steps (`yaml-update`, `json-update`, `toml-update`, `hcl-update`) have in common."""

from __future__ import annotations

import difflib
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.domain.values import Value
from bot.editors.errors import EditError
from bot.editors.keys import Update
from bot.editors.yaml import quote_scalar
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.marks import file_value, join_text
from bot.steps.options import Options

Editor = Callable[[str, Sequence[Update]], str]


@dataclass(frozen=True, slots=True)
class Config:
    """A file and the values to write into it; keys are known, values may hold marks."""

    path: str
    updates: tuple[tuple[str, Value], ...]


def parse(step: str, given: Given) -> Config:
    """The config of an update step; raises TerminalError for an unknown address."""
    options = Options(step, given)
    updates = tuple((item.address("key"), item.value("value")) for item in options.each("updates"))
    return Config(options.address("path"), updates)


async def run_updates(step: str, given: Given, context: StepContext, editor: Editor) -> StepResult:
    """Edit the file; the answer has Kargo's `commitMessage`, or says which key of which file is wrong."""
    config = parse(step, given)
    text = await read_text(step, config.path, context)
    if isinstance(text, StepResult):
        return text
    updates = [
        Update(key, file_value(value, context, f"{step}: key {key!r} of {config.path}"))
        for key, value in config.updates
    ]
    try:
        edited = editor(text, updates)
    except EditError as error:
        return refuse_edit(step, config.path, error, context)
    context.tree.touch(config.path)
    await context.tree.write(config.path, edited.encode())
    return StepResult(output={"commitMessage": _message(config)})


async def read_text(step: str, path: str, context: StepContext) -> str | StepResult:
    """A file's text, or the failure that names the file and those that are like it."""
    if await context.tree.find_file(path) is None:
        folder = posixpath.dirname(posixpath.normpath(path)) or "."
        siblings = context.tree.list(folder)
        near = difflib.get_close_matches(posixpath.normpath(path), siblings, n=2, cutoff=0.6)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        if not siblings:
            hint = f"; the folder {folder!r} does not exist either"
        where = _where(path, context)
        return failed(
            context.alias,
            f"{step}: {path!r} does not exist{where}{hint}",
            path=repository_path(path, context),
        )
    return await context.tree.read_text(path)


def refuse_edit(step: str, path: str, error: EditError, context: StepContext) -> StepResult:
    """The failure of an edit that the editor refused."""
    line = f", line {error.line}" if error.line else ""
    return failed(
        context.alias,
        f"{step}: {path}{line}: {error.message}",
        path=repository_path(path, context),
        line=error.line or 0,
    )


def repository_path(path: str, context: StepContext) -> str:
    """A path of the work tree as its repository has it, for annotations."""
    found = context.tree.find_checkout(path)
    return found[2] if found is not None else path


def _where(path: str, context: StepContext) -> str:
    found = context.tree.find_checkout(path)
    if found is None:
        return " (it lies in no checkout)"
    pin = found[1].pin
    return f" in {pin.url} at {pin.branch or (pin.commit or '')[:12]}"


def _message(config: Config) -> Value:
    parts: list[Value] = [f"Updated {config.path}\n"]
    for key, value in config.updates:
        shown = quote_scalar(value) if isinstance(value, str) else value
        parts += [f"\n- {key}: ", shown]
    return join_text(parts)
