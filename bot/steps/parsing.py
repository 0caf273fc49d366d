"""What the parse steps (`yaml-parse`, `json-parse`, `toml-parse`) have in common.

A sentinel that is read back is the unknown value again that was written.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from datetime import date, datetime, time

from bot.domain.values import Json, Unknown, Value
from bot.editors.errors import EditError
from bot.editors.json import parse_json
from bot.editors.yaml.stream import BOM, build, parse_stream
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult
from bot.steps.options import Options
from bot.steps.queries import read_outputs, unknown_outputs
from bot.steps.updates import read_text, refuse_edit
from bot.steps.worktree import Sentinels

Parser = Callable[[str], Json]


def parse_yaml(text: str) -> Json:
    """The first document; raises EditError."""
    stream = parse_stream(text.removeprefix(BOM))
    return build(stream, stream.roots[0]) if stream.roots else None


def parse_toml(text: str) -> Json:
    """The document, dates and times as text; raises EditError."""
    try:
        return _plain(tomllib.loads(text.removeprefix(BOM)))
    except tomllib.TOMLDecodeError as error:
        raise EditError(f"this is no valid TOML: {error}") from error


def _plain(value: object) -> Json:
    match value:
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case datetime() | date() | time():
            return value.isoformat()
        case bool() | int() | float() | str():
            return value
        case _:
            raise EditError(f"a value of the type {type(value).__name__} has no form in JSON")


async def run_parse(step: str, given: Given, context: StepContext, parser: Parser) -> StepResult:
    """Read the file and evaluate the outputs over it; what is wrong with the file is named with its line."""
    options = Options(step, given)
    path = options.address("path")
    text = await read_text(step, path, context)
    if isinstance(text, StepResult):
        return text
    if isinstance(context.tree.sentinels.read(text.strip()), Unknown):
        return StepResult(output=unknown_outputs(options, context.alias))
    try:
        document = with_marks(parser(text), context.tree.sentinels)
    except EditError as error:
        return refuse_edit(step, path, error, context)
    names: dict[str, object] = dict(document) if isinstance(document, dict) else {}
    return StepResult(output=read_outputs(options, names))


def with_marks(value: Json, sentinels: Sentinels) -> Value:
    """A document with the unknown values in place of their sentinels."""
    match value:
        case str():
            return sentinels.read(value)
        case list():
            return [with_marks(item, sentinels) for item in value]
        case dict():
            return {key: with_marks(item, sentinels) for key, item in value.items()}
        case _:
            return value


__all__ = ["parse_json", "parse_toml", "parse_yaml", "run_parse", "with_marks"]
