"""What becomes of marked values when a step writes them into a file or a message."""

from __future__ import annotations

from collections.abc import Iterable

from bot.domain.values import Json, Sensitive, Text, Unknown, Value, find_sensitive, is_tainted
from bot.ports import TerminalError
from bot.steps.contract import StepContext
from bot.steps.options import open_value


def file_value(value: Value, context: StepContext, where: str) -> Json:
    """A value as it is written into a file: sentinels for what is unknown.

    Raises TerminalError if it holds a secret whose name the policy does not list: files may be committed.
    """
    secrets = sorted(find_sensitive(value) - set(context.policy.sensitive_outputs))
    if secrets:
        raise TerminalError(
            f"{where} would write the sensitive value {', '.join(secrets)} into a file that can be committed; "
            "pass it another way, or list its name under sensitiveOutputs of the ReviewPolicy"
        )
    return _open(value, context)


def _open(value: Value, context: StepContext) -> Json:
    match value:
        case Unknown():
            return context.tree.sentinels.write(value)
        case Text():
            return context.tree.sentinels.write_text(value)
        case Sensitive():
            return open_value(value)
        case list():
            return [_open(item, context) for item in value]
        case dict():
            return {key: _open(item, context) for key, item in value.items()}
        case _:
            return value


def join_text(parts: Iterable[Value]) -> Value:
    """One text of several values: secrets are masked, unknown values stay holes."""
    joined: list[str | Unknown | Sensitive] = []
    for part in parts:
        for piece in part.parts if isinstance(part, Text) else (part,):
            shown = piece if isinstance(piece, Unknown) else show_scalar(piece)
            if isinstance(shown, str) and joined and isinstance(joined[-1], str):
                joined[-1] += shown
            else:
                joined.append(shown)
    if all(isinstance(piece, str) for piece in joined):
        return "".join(str(piece) for piece in joined)
    return Text(tuple(joined))


def show_scalar(value: Value) -> str:
    """A value in a message: secrets masked, booleans in lower case."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def message_text(value: Value, where: str) -> str:
    """A message for the outside world: secrets are masked; raises TerminalError if anything is unknown still."""
    if is_tainted(value):
        raise TerminalError(f"{where} still holds a value that is not known: {value}")
    return show_scalar(value) if not isinstance(value, Text) else str(value)
