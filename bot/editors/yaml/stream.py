"""A YAML text as its parser's events, with exact character spans, and ways to walk and compare them.

Events are what libyaml reports before it builds anything: aliases are still aliases, a hundred thousand brackets
are an error instead of a crash, and a 5,000-line file takes a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.keys import same_value
from bot.editors.yaml.scalars import read_plain

BOM = "\ufeff"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_DEPTH = 150
_MAX_NODES = 500_000


@dataclass(frozen=True, slots=True)
class Stream:
    """A parsed text. `closing[i]` is the event that ends node i; `roots` are the documents' root nodes.

    `text` has no byte order mark: marks would be off by one with it.
    """

    text: str
    events: list[Event]
    closing: list[int]
    roots: list[int]

    def pairs(self, index: int) -> Iterator[tuple[int, int]]:
        """Key and value nodes of the mapping at `index`."""
        at, end, closing = index + 1, self.closing[index], self.closing
        while at < end:
            value = closing[at] + 1
            yield at, value
            at = closing[value] + 1

    def items(self, index: int) -> Iterator[int]:
        """Item nodes of the sequence at `index`."""
        at, end, closing = index + 1, self.closing[index], self.closing
        while at < end:
            yield at
            at = closing[at] + 1

    def line(self, index: int) -> int:
        """The line, from 1, on which a node begins."""
        return int(self.events[index].start_mark.line) + 1

    def start(self, index: int) -> int:
        """The character at which a node begins."""
        return int(self.events[index].start_mark.index)

    def end(self, index: int) -> int:
        """The character after a node."""
        return int(self.events[self.closing[index]].end_mark.index)

    def key_text(self, index: int) -> str | None:
        """The text of a key node; None for a key that is an alias or a collection."""
        event = self.events[index]
        return str(event.value) if isinstance(event, ScalarEvent) else None

    def kind(self, index: int) -> str:
        """What a node is, in words for a message."""
        event = self.events[index]
        if isinstance(event, MappingStartEvent):
            return "a mapping"
        if isinstance(event, SequenceStartEvent):
            return f"a list of {sum(1 for _ in self.items(index))} items"
        if isinstance(event, AliasEvent):
            return f"an alias, *{event.anchor}"
        return "a scalar"


def parse_stream(text: str) -> Stream:
    """The events of a text without byte order mark; what is no YAML raises EditError with its line."""
    try:
        events: list[Event] = list(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(str(part) for part in (error.context, error.problem) if part)
        raise EditError(f"this is no valid YAML: {said}", None if mark is None else mark.line + 1) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise EditError(f"this is no valid YAML: {' '.join(str(error).split())}") from error
    return _index(text, events)


def _index(text: str, events: list[Event]) -> Stream:
    closing = list(range(len(events)))
    roots: list[int] = []
    opened: list[int] = []
    for at, event in enumerate(events):
        if isinstance(event, CollectionStartEvent):
            opened.append(at)
        elif isinstance(event, CollectionEndEvent):
            closing[opened.pop()] = at
        elif isinstance(event, DocumentStartEvent):
            roots.append(at + 1)
    return Stream(text, events, closing, roots)


def read_scalar(event: ScalarEvent) -> Json:
    """The value of a scalar event by its tag, its quotes or, bare, by its look."""
    text = str(event.value)
    tag = event.tag
    if tag is None:
        return read_plain(text) if event.implicit[0] else text
    if tag in ("!", "tag:yaml.org,2002:str"):
        return text
    if tag in STANDARD_TAGS:
        return read_plain(text)
    return text


STANDARD_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null"))


def compare_streams(before: Stream, after: Stream, changed: dict[int, Json]) -> str:
    """Why `after` is not `before` with only the scalars at `changed` set to their values; empty if it is."""
    if len(before.events) != len(after.events):
        return "its structure would change"
    for index, (old, new) in enumerate(zip(before.events, after.events, strict=True)):
        kind = type(old)
        if kind is not type(new):
            return f"its structure would change at line {new.start_mark.line + 1}"
        if kind is ScalarEvent:
            if index in changed:
                if not _holds(new, changed[index]):
                    return "the value would be read back as something else"
                if old.anchor != new.anchor:
                    return "its anchor would be lost"
            elif old.value != new.value or old.implicit != new.implicit or not _same_marks(old, new):
                return f"the value at line {new.start_mark.line + 1} would change"
        elif isinstance(old, NodeEvent) and not _same_marks(old, new):
            return f"the node at line {new.start_mark.line + 1} would change"
    return ""


def _holds(event: Event, value: Json) -> bool:
    if not isinstance(event, ScalarEvent):
        return False
    found = read_scalar(event)
    return same_value(found, value) and isinstance(found, str) == isinstance(value, str)


def _same_marks(old: Event, new: Event) -> bool:
    if old.anchor != new.anchor:
        return False
    return isinstance(old, AliasEvent) or bool(old.tag == new.tag)


def build(stream: Stream, index: int) -> Json:
    """The value of a node with aliases followed; too deep or too large a value raises EditError."""
    return _Builder(stream).build(index, 0)


class _Builder:
    """Builds values from events and counts the nodes, since aliases can multiply a small text."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._left = _MAX_NODES

    def build(self, index: int, depth: int) -> Json:
        stream, event = self._stream, self._stream.events[index]
        self._left -= 1
        if depth > _MAX_DEPTH or self._left < 0:
            raise EditError("this value is too deep or too large to be read", stream.line(index))
        if isinstance(event, ScalarEvent):
            return read_scalar(event)
        if isinstance(event, AliasEvent):
            return self.build(find_anchor(stream, index), depth + 1)
        if isinstance(event, SequenceStartEvent):
            return [self.build(item, depth + 1) for item in stream.items(index)]
        return {
            self._key(key): self.build(value, depth + 1)
            for key, value in stream.pairs(index)
        }  # fmt: skip

    def _key(self, index: int) -> str:
        if isinstance(self._stream.events[index], AliasEvent):
            index = find_anchor(self._stream, index)
        text = self._stream.key_text(index)
        if text is None:
            raise EditError("a key here is a list or a mapping", self._stream.line(index))
        return text


def find_anchor(stream: Stream, index: int) -> int:
    """The node that the alias at `index` stands for; an unknown anchor raises EditError."""
    wanted = stream.events[index].anchor
    for at in range(index - 1, -1, -1):
        event = stream.events[at]
        if isinstance(event, NodeEvent) and not isinstance(event, AliasEvent) and event.anchor == wanted:
            return at
        if isinstance(event, DocumentStartEvent):
            break
    raise EditError(f"the alias *{wanted} has no anchor before it", stream.line(index))
