"""Adding what is not there yet: new keys, new list items and containers as values, in the layout of their siblings."""

from __future__ import annotations

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.keys import join_key, parse_index, same_value, split_suffix
from bot.editors.yaml.locate import Place
from bot.editors.yaml.scalars import render_scalar
from bot.editors.yaml.stream import Kind, Stream, build, parse_stream

_STEP = 2


def create_value(stream: Stream, parts: list[str], place: Place, value: Json) -> str:
    """The text with `value` written where `place` and its `rest` lead, verified by reading it again.

    Follows the creating editor of Kargo: `-1` and indexes past the end append; a scalar on the way gives way to
    the new value or mapping. Differs for a null on the way, which becomes a mapping instead of being replaced by
    the value itself, since that would lose the key that was asked for. Raises EditError where the result would
    not be exactly the old document with that one value.
    """
    try:
        result = _write(stream, parts, place, value)
        expected = set_value(_root_value(stream), parts, value)
    except ValueError as error:
        raise EditError(f"key {join_key(parts)!r}: the new value is {error}") from error
    after = parse_stream(result)
    if not same_value(_root_value(after), expected):
        line = stream.line(place.index) if place.index >= 0 else None
        raise EditError(f"key {join_key(parts)!r} cannot be added here without changing something else", line)
    others = [build(stream, root) for root in stream.roots[1:]]
    if not same_value(others, [build(after, root) for root in after.roots[1:]]):
        raise EditError(f"key {join_key(parts)!r} cannot be added without changing another document")
    return result


def _root_value(stream: Stream) -> Json:
    return build(stream, stream.roots[0]) if stream.roots else None


def set_value(held: Json, parts: list[str], value: Json) -> Json:
    """A copy of a plain value with one path set, by the rules of `create_value`."""
    if not parts:
        return value
    head, rest = parts[0], parts[1:]
    if isinstance(held, dict):
        name, *indexes = split_suffix(head)
        if head not in held and indexes and name in held:
            head, rest = name, indexes + rest
        return {**held, head: set_value(held.get(head, {}) if rest else None, rest, value)}
    if isinstance(held, list):
        position = _position(head, len(held), parts)
        grown = [*held, {}] if position == len(held) else list(held)
        grown[position] = set_value(grown[position], rest, value)
        return grown
    if held is not None and not rest:
        return value
    return {head: set_value({}, rest, value)}


def _position(part: str, length: int, parts: list[str]) -> int:
    position = parse_index(part)
    if position is None or position < -1:
        raise EditError(f"key {join_key(parts)!r}: {part!r} is no index of a list of {length} items")
    return length if position == -1 or position > length else position


def render_flow(value: Json) -> str:
    """Any value on one line, in YAML's flow style."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)}: {render_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(render_flow, value)) + "]"
    return render_scalar(value, flow=True)


def _render(value: Json, *, flow: bool) -> str:
    return render_flow(value) if isinstance(value, list | dict) else render_scalar(value, flow=flow)


def _key(text: str) -> str:
    return render_scalar(text, flow=True)


def _nested(parts: list[str], value: Json) -> Json:
    for part in reversed(parts):
        value = {part: value}
    return value


def _write(stream: Stream, parts: list[str], place: Place, value: Json) -> str:
    if place.index < 0:
        return _append_document(stream, parts, value)
    kind = stream.kinds[place.index]
    if not place.rest:
        return _replace(stream, place, value)
    if kind is Kind.MAPPING:
        return _add_key(stream, place, value)
    if kind is Kind.SEQUENCE:
        return _add_item(stream, place, value, parts)
    if stream.read(place.index) is not None:
        return _replace(stream, place, value if len(place.rest) == 1 else _nested(place.rest, value))
    if stream.starts[place.index] == stream.ends[place.index]:
        if place.key is not None and not place.flow:
            column = stream.column(place.key)
            lines = _block(place.rest, value, column + _STEP)
            return _insert_lines(stream.text, stream.end(place.index), lines)
        if place.index == stream.roots[0]:
            return _append_document(stream, parts, value)
    return _replace(stream, place, _nested(place.rest, value))


def _append_document(stream: Stream, parts: list[str], value: Json) -> str:
    text = stream.text
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text or text.endswith("\n") else newline
    return text + gap + newline.join(_block(parts, value, 0)) + newline


def _block(parts: list[str], value: Json, column: int) -> list[str]:
    lines = [f"{' ' * (column + depth * _STEP)}{_key(part)}:" for depth, part in enumerate(parts)]
    lines[-1] += " " + _render(value, flow=False)
    return lines


def _insert_lines(text: str, position: int, lines: list[str]) -> str:
    """The text with whole lines added behind the line that holds `position`."""
    newline = "\r\n" if "\r\n" in text else "\n"
    block = newline.join(lines)
    if position > 0 and text[position - 1] == "\n":
        return text[:position] + block + newline + text[position:]
    end = text.find("\n", position)
    if end < 0:
        return text + newline + block + newline
    return text[: end + 1] + block + newline + text[end + 1 :]


def content_end(stream: Stream, index: int) -> int:
    """The character behind the last thing a node holds; block collections themselves end only at the next token."""
    at = stream.closing(index)
    while stream.kinds[at] is Kind.END:
        if stream.ends[at] > stream.starts[at]:
            return stream.ends[at]
        at -= 1
    end = stream.ends[at]
    if stream.style(at) in ("|", ">"):
        header = stream.text[stream.starts[at] : end].split("\n", 1)[0]
        if "+" not in header:
            return len(stream.text[:end].rstrip())
    return end


def _add_key(stream: Stream, place: Place, value: Json) -> str:
    if stream.is_flow(place.index):
        entry = f"{_key(place.rest[0])}: {render_flow(_nested(place.rest[1:], value))}"
        return _add_flow(stream, place.index, entry)
    column = stream.column(place.index + 1)
    lines = _block(place.rest, value, column)
    return _insert_lines(stream.text, content_end(stream, place.index), lines)


def _add_item(stream: Stream, place: Place, value: Json, parts: list[str]) -> str:
    items = list(stream.items(place.index))
    _position(place.rest[0], len(items), parts)
    entry = _nested(place.rest[1:], value)
    if stream.is_flow(place.index):
        return _add_flow(stream, place.index, render_flow(entry))
    text = stream.text
    dash = text.rfind("-", 0, max(stream.starts[items[0]], 1))
    pad = " " * (dash - text.rfind("\n", 0, dash) - 1)
    line = f"{pad}- {_render(entry, flow=False)}"
    return _insert_lines(text, content_end(stream, place.index), [line])


def _add_flow(stream: Stream, index: int, entry: str) -> str:
    text, close = stream.text, stream.end(index) - 1
    last = stream.closing(index) - 1
    if last == index:
        return text[:close] + entry + text[close:]
    end = stream.end(last)
    return f"{text[:end]}, {entry}{text[end:]}"


def _replace(stream: Stream, place: Place, value: Json) -> str:
    text, index = stream.text, place.index
    rendered = _render(value, flow=place.flow)
    end = content_end(stream, index)
    start = stream.starts[index]
    if place.key is not None and not stream.is_flow(index):
        colon = text.find(":", stream.end(place.key))
        if 0 <= colon < start or colon == start - 1:
            return f"{text[: colon + 1]} {rendered}{text[end:]}"
    gap = "" if start == 0 or text[start - 1] in " \t\n[{," else " "
    return f"{text[:start]}{gap}{rendered}{text[end:]}"
