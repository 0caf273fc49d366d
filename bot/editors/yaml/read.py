"""Reading single values, all leaves and line numbers from YAML text."""

from __future__ import annotations

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.keys import split_key
from bot.editors.yaml.locate import locate, not_found
from bot.editors.yaml.stream import BOM, Kind, Stream, build, parse_stream

KeyPath = tuple[str | int, ...]
"""Map keys and list indexes from the top of a text to one value."""

_MAX_LEAVES = 500_000


def get_yaml(text: str, key: str) -> Json:
    """The value under a key of the first document, aliases followed, types as Go's YAML reader sees them.

    A missing key raises EditError that names the nearest ones.
    """
    stream = parse_stream(text.removeprefix(BOM))
    parts = split_key(key)
    place = locate(stream, parts, follow=True)
    if place.rest:
        raise not_found(stream, place, parts)
    return build(stream, place.index)


def line_of(text: str, key: str) -> int:
    """The line, from 1, on which the value under a key stands; a missing key raises EditError."""
    stream = parse_stream(text.removeprefix(BOM))
    parts = split_key(key)
    place = locate(stream, parts, follow=True)
    if place.rest:
        raise not_found(stream, place, parts)
    return stream.line(stream.targets.get(place.index, place.index))


def find_leaves(text: str) -> dict[KeyPath, Json]:
    """Every scalar of a text by its path, in the order of the text; empty lists and mappings are leaves too.

    Paths of a second and later document begin with `document 2` and so on. Aliases stand for what they name; a
    text that multiplies itself beyond half a million leaves, or holds itself, raises EditError.
    """
    stream = parse_stream(text.removeprefix(BOM))
    leaves: dict[KeyPath, Json] = {}
    for number, root in enumerate(stream.roots, 1):
        prefix: KeyPath = () if number == 1 else (f"document {number}",)
        _collect(stream, root, prefix, leaves)
    return leaves


def _collect(stream: Stream, root: int, prefix: KeyPath, leaves: dict[KeyPath, Json]) -> None:
    waiting: list[tuple[int, KeyPath]] = [(root, prefix)]
    visited = 0
    while waiting:
        index, path = waiting.pop()
        visited += 1
        kind = stream.kinds[index]
        if visited > _MAX_LEAVES or len(path) > 1000:
            raise EditError("this document is too large or too deep to be read", stream.line(index))
        if kind is Kind.SCALAR:
            leaves[path] = stream.read(index)
            continue
        if kind is Kind.ALIAS:
            waiting.append((stream.targets[index], path))
            continue
        children = _children(stream, index, path)
        if not children:
            leaves[path] = [] if kind is Kind.SEQUENCE else {}
        waiting += reversed(children)


def _children(stream: Stream, index: int, path: KeyPath) -> list[tuple[int, KeyPath]]:
    if stream.kinds[index] is Kind.MAPPING:
        return [
            (value, (*path, _name(stream, key)))
            for key, value in stream.pairs(index)
        ]  # fmt: skip
    return [(item, (*path, position)) for position, item in enumerate(stream.items(index))]


def _name(stream: Stream, key: int) -> str:
    if stream.kinds[key] is Kind.ALIAS:
        key = stream.targets[key]
    text = stream.key_text(key)
    return stream.text[stream.starts[key] : stream.end(key)] if text is None else text
