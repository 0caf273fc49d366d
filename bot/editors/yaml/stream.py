"""A YAML text as its parser's events, with exact character spans, and ways to walk and compare them.

Events are what libyaml reports before it builds anything: aliases are still aliases, a hundred thousand brackets
are an error instead of a crash, and a 5,000-line file takes a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, cast

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.keys import same_value
from bot.editors.yaml.scalars import read_plain

BOM = "\ufeff"
FLOW = "flow"
STANDARD_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null"))

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_DEPTH = 150
_MAX_NODES = 500_000


class _AnyMark(Protocol):
    index: int


class _AnyEvent(Protocol):
    """What the events have that are read here; which of it is present follows from the event's type."""

    value: str
    tag: str | None
    anchor: str | None
    style: str | None
    flow_style: bool | None
    start_mark: _AnyMark
    end_mark: _AnyMark


class Kind(StrEnum):
    """What an event of a stream is."""

    SCALAR = "scalar"
    ALIAS = "alias"
    MAPPING = "mapping"
    SEQUENCE = "sequence"
    END = "end"
    DOCUMENT = "document"


_KINDS: dict[type[object], Kind] = {
    ScalarEvent: Kind.SCALAR,
    AliasEvent: Kind.ALIAS,
    MappingStartEvent: Kind.MAPPING,
    SequenceStartEvent: Kind.SEQUENCE,
    MappingEndEvent: Kind.END,
    SequenceEndEvent: Kind.END,
    DocumentStartEvent: Kind.DOCUMENT,
}


@dataclass(slots=True)
class Stream:
    """A parsed text as columns, one entry per event; a node is named by the number of its first event.

    `text` has no byte order mark: spans would be off by one with it. `values` holds a scalar's value or an alias's
    name; `starts` and `ends` are characters of `text`; `roots` are the documents' root nodes. What few events have
    stands in dictionaries: `tags`, `anchors`, `styles` (a scalar's quote or block sign, `flow` for collections in
    brackets), `closings` (the event that ends a collection) and `targets` (the node an alias stands for).
    Columns instead of objects: tens of thousands of small objects would cost more in garbage collection than the
    parsing itself.
    """

    text: str
    kinds: list[Kind] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    tags: dict[int, str] = field(default_factory=dict)
    anchors: dict[int, str] = field(default_factory=dict)
    styles: dict[int, str] = field(default_factory=dict)
    closings: dict[int, int] = field(default_factory=dict)
    targets: dict[int, int] = field(default_factory=dict)

    def closing(self, index: int) -> int:
        """The last event of a node, which is the node itself unless it is a collection."""
        return self.closings.get(index, index)

    def style(self, index: int) -> str:
        """A scalar's quote or block sign, `flow` for a collection in brackets or braces, else nothing."""
        return self.styles.get(index, "")

    def pairs(self, index: int) -> Iterator[tuple[int, int]]:
        """Key and value nodes of the mapping at `index`."""
        at, end, closing = index + 1, self.closings[index], self.closing
        while at < end:
            value = closing(at) + 1
            yield at, value
            at = closing(value) + 1

    def items(self, index: int) -> Iterator[int]:
        """Item nodes of the sequence at `index`."""
        at, end, closing = index + 1, self.closings[index], self.closing
        while at < end:
            yield at
            at = closing(at) + 1

    def is_flow(self, index: int) -> bool:
        """Whether a node is a collection in brackets or braces."""
        return self.style(index) == FLOW

    def line(self, index: int) -> int:
        """The line, from 1, on which a node begins."""
        return self.text.count("\n", 0, self.starts[index]) + 1

    def column(self, index: int) -> int:
        """The number of characters before a node on its line."""
        start = self.starts[index]
        return start - self.text.rfind("\n", 0, start) - 1

    def end(self, index: int) -> int:
        """The character after a node."""
        return self.ends[self.closing(index)]

    def key_text(self, index: int) -> str | None:
        """The text of a key node; None for a key that is an alias or a collection."""
        return self.values[index] if self.kinds[index] is Kind.SCALAR else None

    def describe(self, index: int) -> str:
        """What a node is, in words for a message."""
        match self.kinds[index]:
            case Kind.MAPPING:
                return "a mapping"
            case Kind.SEQUENCE:
                return f"a list of {sum(1 for _ in self.items(index))} items"
            case Kind.ALIAS:
                return f"an alias, *{self.values[index]}"
            case _:
                return "a scalar"

    def read(self, index: int) -> Json:
        """The value of the scalar at `index` by its tag, its quotes or, bare, by its look."""
        text, tag = self.values[index], self.tags.get(index)
        if tag in STANDARD_TAGS and tag != "tag:yaml.org,2002:str":
            return read_plain(text)
        return text if tag is not None or self.style(index) else read_plain(text)


def parse_stream(text: str) -> Stream:
    """The events of a text without byte order mark; what is no YAML raises EditError with its line."""
    try:
        return _read_events(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(str(part) for part in (error.context, error.problem) if part)
        raise EditError(f"this is no valid YAML: {said}", None if mark is None else mark.line + 1) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise EditError(f"this is no valid YAML: {' '.join(str(error).split())}") from error


def _read_events(text: str) -> Stream:
    stream = Stream(text)
    opened: list[int] = []
    anchored: dict[str, int] = {}
    # The loop runs tens of thousands of times within a few milliseconds, so look-ups stand outside of it.
    add_kind, add_value = stream.kinds.append, stream.values.append
    add_start, add_end = stream.starts.append, stream.ends.append
    kind_of, scalar, closed = _KINDS.get, Kind.SCALAR, Kind.END
    document, alias, styles = Kind.DOCUMENT, Kind.ALIAS, stream.styles
    at = 0
    loader = _LOADER(text)
    for event in cast(Iterator[_AnyEvent], iter(loader.get_event, None)):
        kind = kind_of(type(event))
        if kind is None:
            continue
        add_kind(kind)
        add_start(event.start_mark.index)
        add_end(event.end_mark.index)
        if kind is closed:
            stream.closings[opened.pop()] = at
            add_value("")
        elif kind is document:
            stream.roots.append(at + 1)
            anchored.clear()
            add_value("")
        elif kind is alias:
            stream.targets[at] = anchored.get(event.anchor or "", -1)
            add_value(event.anchor or "")
        else:
            if kind is scalar:
                add_value(event.value)
                if event.style:
                    styles[at] = event.style
            else:
                add_value("")
                opened.append(at)
                if event.flow_style:
                    styles[at] = FLOW
            if event.tag is not None:
                stream.tags[at] = event.tag
            if event.anchor is not None:
                stream.anchors[at] = event.anchor
                anchored[event.anchor] = at
        at += 1
    loader.dispose()
    _refuse_unknown_aliases(stream)
    return stream


def _refuse_unknown_aliases(stream: Stream) -> None:
    for index, target in stream.targets.items():
        if target < 0:
            raise EditError(f"the alias *{stream.values[index]} has no anchor before it", stream.line(index))


def compare_streams(before: Stream, after: Stream, changed: dict[int, Json]) -> str:
    """Why `after` is not `before` with only the scalars at `changed` set to their values; empty if it is."""
    if before.kinds != after.kinds:
        return "its structure would change"
    if before.anchors != after.anchors:
        return "an anchor would be lost"
    values, tags, styles = list(before.values), dict(before.tags), dict(before.styles)
    for index, value in changed.items():
        found = after.read(index)
        if not same_value(found, value) or isinstance(found, str) != isinstance(value, str):
            return "the value would be read back as something else"
        values[index] = after.values[index]
        for mine, theirs in ((tags, after.tags), (styles, after.styles)):
            mine.pop(index, None)
            if index in theirs:
                mine[index] = theirs[index]
    if values != after.values or tags != after.tags or styles != after.styles:
        return "another value would change"
    return ""


def build(stream: Stream, index: int) -> Json:
    """The value of a node with aliases followed; too deep or too large a value raises EditError."""
    return _Builder(stream).build(index, 0)


class _Builder:
    """Builds values from events and counts the nodes, since aliases can multiply a small text."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._left = _MAX_NODES

    def build(self, index: int, depth: int) -> Json:
        stream = self._stream
        self._left -= 1
        if depth > _MAX_DEPTH or self._left < 0:
            raise EditError("this value is too deep or too large to be read", stream.line(index))
        match stream.kinds[index]:
            case Kind.SCALAR:
                return stream.read(index)
            case Kind.ALIAS:
                return self.build(stream.targets[index], depth + 1)
            case Kind.SEQUENCE:
                return [self.build(item, depth + 1) for item in stream.items(index)]
            case _:
                return {
                    self._key(key): self.build(value, depth + 1)
                    for key, value in stream.pairs(index)
                }  # fmt: skip

    def _key(self, index: int) -> str:
        if self._stream.kinds[index] is Kind.ALIAS:
            index = self._stream.targets[index]
        text = self._stream.key_text(index)
        if text is None:
            raise EditError("a key here is a list or a mapping", self._stream.line(index))
        return text
