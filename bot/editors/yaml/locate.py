"""Following a key path to a node of a parsed text."""

from __future__ import annotations

from dataclasses import dataclass

from bot.editors.errors import EditError, suggest
from bot.editors.keys import join_key, parse_index, split_suffix
from bot.editors.yaml.stream import Kind, Stream


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path led: `index` is the deepest node reached, `rest` the parts that lead on from there.

    `key` is the node's key (None in lists and at the root); `flow` whether it stands inside brackets or braces.
    """

    index: int
    key: int | None
    flow: bool
    rest: list[str]


def locate(stream: Stream, parts: list[str], *, follow: bool = False) -> Place:
    """The node that the parts lead to in the first document, or the last one on the way with what is missing.

    Aliases on the way are entered only with `follow`, since writing through one would change another place; one at
    the end is returned as it is. A key that stands twice raises EditError: readers disagree about which counts.
    """
    if not stream.roots:
        return Place(-1, None, False, list(parts))
    index, key, flow = stream.roots[0], None, False
    rest = list(parts)
    while rest:
        kind = stream.kinds[index]
        if kind is Kind.ALIAS:
            if not follow:
                raise through_alias(stream, index, join_key(parts))
            index = stream.targets[index]
            continue
        if kind is Kind.SCALAR:
            break
        flow = flow or stream.is_flow(index)
        step = _step(stream, index, rest, parts)
        if step is None:
            return Place(index, key, flow, rest)
        key, index, rest = step
    return Place(index, key, flow, rest)


def _step(
    stream: Stream, index: int, rest: list[str], parts: list[str]
) -> tuple[int | None, int, list[str]] | None:
    if stream.kinds[index] is Kind.MAPPING:
        found = _find_key(stream, index, rest[0], parts)
        if found is not None:
            return (*found, rest[1:])
        name, *indexes = split_suffix(rest[0])
        found = _find_key(stream, index, name, parts) if indexes else None
        return None if found is None else (*found, indexes + rest[1:])
    position = parse_index(rest[0])
    if position is None or position < 0:
        return None
    for at, item in enumerate(stream.items(index)):
        if at == position:
            return None, item, rest[1:]
    return None


def _find_key(stream: Stream, index: int, name: str, parts: list[str]) -> tuple[int, int] | None:
    found: tuple[int, int] | None = None
    for key, value in stream.pairs(index):
        if stream.key_text(key) != name:
            continue
        if found is not None:
            raise EditError(
                f"key {join_key(parts)!r}: {name!r} stands twice in one mapping, at lines"
                f" {stream.line(found[0])} and {stream.line(key)}; remove one of them",
                stream.line(key),
            )
        found = key, value
    return found


def through_alias(stream: Stream, index: int, key: str) -> EditError:
    """The error for a key that leads through the alias at `index`."""
    return EditError(
        f"key {key!r} leads through the alias *{stream.values[index]}; writing it would also change the anchor at"
        f" line {stream.line(stream.targets[index])}; name that place or write the value out here",
        stream.line(index),
    )


def not_found(stream: Stream, place: Place, parts: list[str]) -> EditError:
    """The error for a path that ended early: how far it went, what is there, which key was perhaps meant."""
    key = join_key(parts)
    if place.index < 0:
        return EditError(f"key {key!r} was not found: the text holds no document")
    reached = join_key(parts[: len(parts) - len(place.rest)])
    where = f"in {reached!r}" if reached else "at the top"
    kind, line = stream.kinds[place.index], stream.line(place.index)
    if kind is Kind.MAPPING:
        names = [
            name for key_at, _ in stream.pairs(place.index) if (name := stream.key_text(key_at)) is not None
        ]
        hint = suggest(place.rest[0], names)
        if "<<" in names:
            hint += "; keys merged by '<<' are written at their anchor"
        if not reached and _in_other_document(stream, place.rest[0]):
            hint += "; a later document has it, but only the first one is edited"
        return EditError(f"key {key!r} was not found: there is no {place.rest[0]!r} {where}{hint}", line)
    if kind is Kind.SEQUENCE:
        what = stream.describe(place.index)
        return EditError(
            f"key {key!r} was not found: {where} is {what}, and {place.rest[0]!r} names none", line
        )
    return EditError(
        f"key {key!r} was not found: {where} is a scalar, so {place.rest[0]!r} leads nowhere", line
    )


def _in_other_document(stream: Stream, name: str) -> bool:
    return any(
        stream.kinds[root] is Kind.MAPPING
        and any(stream.key_text(key) == name for key, _ in stream.pairs(root))
        for root in stream.roots[1:]
    )
