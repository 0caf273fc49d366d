"""Outputs as later steps see them, from a plan or from a state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bot.domain.terraform import Action, Output, Plan
from bot.domain.values import Sensitive, Text, Unknown, Value, as_value, find_sensitive


@dataclass(frozen=True, slots=True)
class Shown:
    """One output: its value with marks, whether it is sensitive, and Terraform's type of it."""

    value: Value
    sensitive: bool
    type: Value


def from_state(outputs: Mapping[str, Output]) -> dict[str, Shown]:
    """Outputs of a state; sensitive values become marks under the output's name."""
    return {
        name: Shown(
            Sensitive(name, output.value) if output.sensitive else as_value(output.value),
            output.sensitive,
            as_value(output.type),
        )
        for name, output in outputs.items()
    }


def from_plan(plan: Plan) -> dict[str, Shown]:
    """Outputs as they will be after the apply; those that will not exist are left out."""
    after: dict[str, Value] = dict(plan.unchanged_outputs)
    for output in plan.outputs:
        if output.absent or output.action is Action.DELETE:
            after.pop(output.name, None)
        else:
            after[output.name] = output.after
    return {name: _shown(name, value) for name, value in sorted(after.items())}


def unknown_named(shown: Mapping[str, Shown]) -> dict[str, Shown]:
    """The same outputs, with no value trusted: a plan on a state that is about to move may promise the wrong one."""
    return {
        name: replace(
            item, value=Unknown(f"known after apply: {name}", sensitive=name if item.sensitive else "")
        )
        for name, item in shown.items()
    }


def _shown(name: str, value: Value) -> Shown:
    # A plan does not tell an output's type.
    kind = Unknown(f"known after apply: type of {name}")
    return Shown(_named(name, value), bool(find_sensitive(value)), kind)


def _named(name: str, value: Value) -> Value:
    """The value with every mark under the output's name."""
    match value:
        case Unknown():
            return Unknown(f"known after apply: {name}", sensitive=name if value.sensitive else "")
        case Sensitive(value=inner):
            return Sensitive(name, inner)
        case Text(parts=parts):
            return Text(tuple(_part(name, part) for part in parts))
        case list():
            return [_named(name, item) for item in value]
        case dict():
            return {key: _named(name, item) for key, item in value.items()}
        case _:
            return value


def _part(name: str, part: str | Unknown | Sensitive) -> str | Unknown | Sensitive:
    marked = _named(name, part)
    return marked if isinstance(marked, str | Unknown | Sensitive) else part
