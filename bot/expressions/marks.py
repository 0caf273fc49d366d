"""How "not known yet" and "sensitive" travel through a computation (review gate, propagation of unknown values).

What is computed from an unknown value is unknown; what is computed from a sensitive one is sensitive; both is
unknown and remembers whose secret it will hold. `lift` applies that rule to any computation on plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from bot.domain.values import Json, Sensitive, Text, Unknown
from bot.expressions.errors import BudgetExceededError, ExpressionError
from bot.expressions.meter import Meter
from bot.expressions.operands import AnyMap, Operand, StringMap, Struct

_PLAIN = frozenset({type(None), bool, int, float, str})
_CONTAINERS = frozenset({list, dict, StringMap, AnyMap})


@dataclass(frozen=True, slots=True)
class Marks:
    """What marks a value holds: the origins of unknown parts and the names of sensitive ones, in order."""

    origins: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def unknown(self) -> Unknown:
        """One unknown value that stands for all of them."""
        return Unknown(join_names(self.origins), join_names(self.names))


NO_MARKS = Marks()


def join_names(names: Iterable[str]) -> str:
    """The names, each once, with commas between."""
    return ", ".join(dict.fromkeys(part for name in names if name for part in name.split(", ")))


def scan(values: Sequence[Operand], meter: Meter) -> Marks:
    """All marks anywhere inside the values."""
    for value in values:
        if type(value) not in _PLAIN:
            break
    else:
        return NO_MARKS
    origins: list[str] = []
    names: list[str] = []
    waiting: list[tuple[Operand, int]] = [(value, 0) for value in reversed(values)]
    while waiting:
        value, depth = waiting.pop()
        kind = type(value)
        if kind in _PLAIN:
            continue
        if isinstance(value, Unknown):
            origins.append(value.origin)
            names.append(value.sensitive)
        elif isinstance(value, Sensitive):
            names.append(value.name)
        else:
            parts = _list_parts(value)
            meter.elements(len(parts))
            meter.depth(depth)
            waiting.extend((part, depth + 1) for part in reversed(parts))
    return Marks(tuple(origins), tuple(names)) if origins or names else NO_MARKS


def _list_parts(value: Operand) -> list[Operand]:
    if isinstance(value, list):
        return value
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, Text):
        return list(value.parts)
    if isinstance(value, Struct):
        return list(value.fields.values())
    return []


def is_unknown(value: Operand) -> bool:
    """Whether the value as a whole is unknown: a mark, or a text with an unknown part."""
    return isinstance(value, Unknown) or (
        isinstance(value, Text) and any(isinstance(part, Unknown) for part in value.parts)
    )


def sensitive(names: Iterable[str], value: Operand) -> Operand:
    """The value under a sensitive mark of these names; marks that it holds already are joined into the new one."""
    name = join_names(names)
    if not name:
        return value
    marks = scan((value,), Meter())
    if marks.origins:
        return Unknown(join_names(marks.origins), join_names((name, *marks.names)))
    # Json is the declared type; inside an evaluation the value may be any operand.
    return Sensitive(join_names((name, *marks.names)), cast(Json, uncover(value)))


def uncover(value: Operand) -> Operand:
    """The value with all sensitive marks opened; unknown ones stay."""
    match value:
        case Sensitive(value=inner):
            return inner
        case Text(parts=parts):
            if any(isinstance(part, Unknown) for part in parts):
                return value
            return "".join(str(uncover(part)) for part in parts)
        case StringMap() | AnyMap():
            return type(value)({key: uncover(item) for key, item in value.items()})  # type: ignore[misc]
        case list():
            return [uncover(item) for item in value]
        case dict():
            return {key: uncover(item) for key, item in value.items()}
        case _:
            return value


def lift(values: Sequence[Operand], meter: Meter, compute: Callable[[Sequence[Operand]], Operand]) -> Operand:
    """`compute` on the plain values, and its result under the marks that the values hold.

    With an unknown value anywhere inside nothing is computed. An error about sensitive values does not repeat
    what was computed, since errors are shown.
    """
    marks = scan(values, meter)
    if marks is NO_MARKS:
        return compute(values)
    if marks.origins:
        return marks.unknown()
    plain = [uncover(value) for value in values]
    try:
        return sensitive(marks.names, compute(plain))
    except BudgetExceededError:
        raise
    except ExpressionError as error:
        raise ExpressionError(
            f"computing with <sensitive: {join_names(marks.names)}> failed", error.position
        ) from None
