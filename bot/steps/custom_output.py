"""What a custom step's command left as its output, read by its format and turned by its `transform` (Kargo)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bot.domain.custom_steps import OUTPUT_LIMIT, CustomStep, OutputFormat
from bot.domain.values import Json, Sensitive, Unknown, Value
from bot.editors.errors import EditError
from bot.editors.json import parse_json
from bot.expressions.errors import ExpressionError
from bot.expressions.functions import TEMPLATE_FUNCTIONS
from bot.expressions.templates import Scope, evaluate_template, has_expression
from bot.ports import TerminalError
from bot.steps.parsing import parse_yaml
from bot.steps.queries import evaluate

TEXT_OUTPUT = "output"
"""The name of the output that a text becomes without `transform`."""


class OutputError(Exception):
    """The output cannot be read; the message says why, and at which line."""


def read_output(step: CustomStep, data: bytes, find_secret: Callable[[str], str]) -> Mapping[str, Value]:
    """The outputs by name; texts in which `find_secret` finds a secret are sensitive by its name.

    An empty output has no outputs, unless `transform` says what to make of it. Raises OutputError.
    """
    if len(data) > OUTPUT_LIMIT:
        raise OutputError(f"it is longer than {OUTPUT_LIMIT >> 10} KiB, the most that is read")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OutputError(f"it is not UTF-8 text: {error.reason} at byte {error.start}") from error
    value = _mark(_parse(step.format, text), find_secret)
    if step.transform:
        return {name: _transform(name, source, value) for name, source in step.transform.items()}
    if isinstance(value, dict):
        return value
    if step.format is OutputFormat.TEXT:
        return {TEXT_OUTPUT: value} if text else {}
    if value is None and not text.strip():
        return {}
    raise OutputError(
        "it is no mapping of names to values; write one, or say in `transform` what to make of it"
    )


def unknown_output(step: CustomStep, alias: str) -> Mapping[str, Value]:
    """The outputs of a command that was not run, as far as their names are known; without names all is unknown."""
    names = [*step.transform] or ([TEXT_OUTPUT] if step.format is OutputFormat.TEXT else [])
    return {name: Unknown(f"known after step: {alias}.{name}") for name in names}


def _parse(format_: OutputFormat, text: str) -> Json:
    try:
        match format_:
            case OutputFormat.JSON:
                return parse_json(text) if text.strip() else None
            case OutputFormat.YAML:
                return parse_yaml(text)
            case OutputFormat.KEY_VALUE:
                return _pairs(text)
            case OutputFormat.TEXT:
                return text.removesuffix("\n").removesuffix("\r")
    except EditError as error:
        raise OutputError(str(error)) from error


def _pairs(text: str) -> dict[str, Json]:
    """`KEY=VALUE` line by line; empty lines and those that begin with `#` are passed over, a later key wins."""
    found: dict[str, Json] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, separator, value = line.partition("=")
        if not separator or not key.strip():
            raise OutputError(f"line {number} is not KEY=VALUE; another format is set by output.format")
        found[key.strip()] = value.strip()
    return found


def _mark(value: Json, find_secret: Callable[[str], str]) -> Value:
    match value:
        case str():
            name = find_secret(value)
            return Sensitive(name, value) if name else value
        case list():
            return [_mark(item, find_secret) for item in value]
        case dict():
            hidden = sorted(key for key in value if find_secret(key))
            if hidden:
                raise OutputError("a key of it holds a secret; keys are shown, so that only values may")
            return {key: _mark(item, find_secret) for key, item in value.items()}
        case _:
            return value


def _transform(name: str, source: str, value: Value) -> Value:
    where = f"transform {name}"
    try:
        if not has_expression(source):
            return evaluate(source, {"output": value}, where)
        return evaluate_template(source, Scope({"output": value}, TEMPLATE_FUNCTIONS))
    except TerminalError as error:
        raise OutputError(str(error)) from error
    except ExpressionError as error:
        raise OutputError(f"{where}: the expression {source!r} cannot be evaluated: {error}") from error
