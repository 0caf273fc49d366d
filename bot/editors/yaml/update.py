"""Surgical changes of scalars in YAML: every byte but the value's stays as it was."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.keys import Update, is_scalar, split_key
from bot.editors.yaml.create import create_value
from bot.editors.yaml.locate import Place, locate, not_found, through_alias
from bot.editors.yaml.scalars import double_quoted, render_scalar
from bot.editors.yaml.stream import BOM, STANDARD_TAGS, Kind, Stream, compare_streams, parse_stream

YamlUpdate = Update
"""One value to write: a dotted key and a JSON scalar (with `create`, any JSON value)."""

_PREFIX = re.compile(r"(?:(?:![^\s<]?<[^>]*>|!<[^>]*>|[&!][^\s,\[\]{}]*)(?:(?:\s|(?<=\s)#[^\n]*\n)+|$))+")
_TAG = re.compile(r"(?:!<[^>]*>|![^\s,\[\]{}]*)\s*")
_BLOCK_HEADER = re.compile(r"([|>])([-+0-9]*)([^\r\n]*)(\r?\n|$)")


@dataclass(frozen=True, slots=True)
class _Splice:
    index: int
    start: int
    end: int
    text: str
    value: Json


def update_yaml(text: str, updates: Sequence[Update], *, create: bool = False) -> str:
    r"""The text with each key's value replaced, comments, quotes, anchors and line ends of all else kept.

    A key must lead to a scalar of the first document; `.0` and `[0]` name list items. Of two updates of one key
    the last counts. With `create`, missing keys are added with their siblings' indentation, lists grow at `-1`
    or past their end, values may be lists and mappings, an alias at the end of a key is replaced and one on the
    way leads to its anchor. What cannot be done without harm raises EditError: aliases, keys that stand twice,
    private tags, a result that would be read as something else.

    Kargo rewrites the rest of the line. Where that ruins data ours differs: comments behind the value stay, flow
    collections and block scalars stay whole, line ends and anchors stay, strings are quoted if any YAML reader
    would take them for another type (`yes`, `~`, `0x1F`, the empty string), numbers keep their digits. As in Kargo
    a quoted value becomes bare where that is safe, and a last line without end gets one.
    """
    bom, body = (BOM, text[1:]) if text.startswith(BOM) else ("", text)
    if create:
        for update in updates:
            body = _create_one(body, update)
        return bom + body
    stream = parse_stream(body)
    splices: dict[int, _Splice] = {}
    for update in updates:
        parts = split_key(update.key)
        place = locate(stream, parts)
        if place.rest:
            raise not_found(stream, place, parts)
        splice = _plan(stream, place, update)
        splices[splice.index] = splice
    return bom + _apply(stream, list(splices.values()))


def _create_one(body: str, update: Update) -> str:
    parts = split_key(update.key)
    stream = parse_stream(body)
    place = locate(stream, parts, follow=True)
    is_there = place.index >= 0 and not place.rest and stream.kinds[place.index] is Kind.SCALAR
    if is_there and is_scalar(update.value):
        return _apply(stream, [_plan(stream, place, update)])
    return create_value(stream, parts, place, update.value)


def _plan(stream: Stream, place: Place, update: Update) -> _Splice:
    if not is_scalar(update.value):
        raise EditError(
            f"key {update.key!r}: the new value is a list or mapping; only scalars can be written here"
        )
    line = stream.line(place.index)
    if stream.kinds[place.index] is Kind.ALIAS:
        raise through_alias(stream, place.index, update.key)
    if stream.kinds[place.index] is not Kind.SCALAR:
        raise EditError(
            f"key {update.key!r} holds {stream.describe(place.index)}; only scalars are replaced", line
        )
    try:
        return _splice(stream, place, update.value)
    except ValueError as error:
        raise EditError(f"key {update.key!r}: the new value is {error}", line) from error


def _splice(stream: Stream, place: Place, value: Json) -> _Splice:
    start, end = stream.starts[place.index], stream.end(place.index)
    raw = stream.text[start:end]
    found = _PREFIX.match(raw)
    prefix = found[0] if found else ""
    body = raw[len(prefix) :]
    prefix = _keep_tag(stream.tags.get(place.index), prefix, value, stream.line(place.index))
    style = stream.style(place.index) if body else ""
    if style in ("|", ">"):
        return _Splice(place.index, start, end, prefix + _render_block(stream, place, body, value), value)
    rendered = prefix + render_scalar(value, style, flow=place.flow)
    if not body:
        end = _skip_blanks(stream.text, end)
        rendered = _gap(stream, place, start, prefix) + rendered
        if prefix and not prefix[-1].isspace():
            rendered = rendered.replace(prefix, prefix + " ", 1)
    return _Splice(place.index, start, end, rendered, value)


def _skip_blanks(text: str, position: int) -> int:
    """The end of the line if only blanks are left on it; behind an empty value they would end up behind the new one."""
    stop = text.find("\n", position)
    rest = text[position : len(text) if stop < 0 else stop].rstrip("\r")
    return position if rest.strip(" \t") else position + len(rest)


def _gap(stream: Stream, place: Place, start: int, prefix: str) -> str:
    if prefix:
        return ""
    if place.key is not None and place.flow and ":" not in stream.text[stream.end(place.key) : start]:
        return ": "
    return "" if start == 0 or stream.text[start - 1] in " \t\n[{," else " "


def _keep_tag(tag: str | None, prefix: str, value: Json, line: int) -> str:
    """The prefix with a standard tag dropped that the new value would contradict."""
    if tag is None:
        return prefix
    if tag not in STANDARD_TAGS and tag != "!":
        raise EditError(f"the value carries the tag {tag}, whose meaning is not known here", line)
    if isinstance(value, str) and tag in ("!", "tag:yaml.org,2002:str"):
        return prefix
    return _TAG.sub("", prefix, count=1)


def _render_block(stream: Stream, place: Place, body: str, value: Json) -> str:
    """A block scalar's new text: still a block if the value has lines, else one scalar on the header's line."""
    header = _BLOCK_HEADER.match(body)
    if header is None:
        raise EditError("the head of this block scalar is not understood", stream.line(place.index))
    newline = header[4] or "\n"
    content = body[header.end() :]
    # Blank lines behind the content belong to the layout of what follows.
    tail = content[len(content.rstrip("\r\n \t")) :]
    tail = tail[tail.find("\n") + 1 :] if "\n" in tail else ""
    indent = re.match(r"(?:[ \t]*\r?\n)*( +)", content)
    if isinstance(value, str) and indent and _fits_block(value):
        pad = indent[1]
        chomp = "" if value.endswith("\n") else "-"
        lines = value.removesuffix("\n").split("\n")
        block = newline.join(pad + line if line else "" for line in lines)
        return f"|{chomp}{header[3]}{newline}{block}{newline}{tail}"
    rendered = double_quoted(value) if isinstance(value, str) and "\n" in value else render_scalar(value)
    return f"{rendered}{header[3]}{newline}{tail}"


def _fits_block(value: str) -> bool:
    lines = value.split("\n")
    return (
        len(lines) > 1
        and bool(lines[0])
        and lines[0][0] not in " \t"
        and not value.endswith("\n\n")
        and all(line.isprintable() and not line.isspace() for line in lines)
    )


def _apply(stream: Stream, splices: list[_Splice]) -> str:
    pieces: list[str] = []
    position = 0
    for splice in sorted(splices, key=lambda each: each.start):
        pieces += (stream.text[position : splice.start], splice.text)
        position = splice.end
    pieces.append(stream.text[position:])
    result = "".join(pieces)
    changed = {splice.index: splice.value for splice in splices}
    if not result.endswith("\n"):
        ended = result + ("\r\n" if "\r\n" in result else "\n")
        # Inside a block scalar a final line end would be part of the value, so there the text stays without.
        if not _compare(stream, ended, changed):
            return ended
    reason = _compare(stream, result, changed)
    if reason:
        line = min(stream.line(index) for index in changed)
        raise EditError(f"the value cannot be written here without harm: {reason}", line)
    return result


def _compare(stream: Stream, result: str, changed: dict[int, Json]) -> str:
    try:
        return compare_streams(stream, parse_stream(result), changed)
    except EditError as error:
        return f"the result would be no valid YAML ({error})"
