"""YAML text as plain values with the line of every part, and every reason why it cannot be read.

Scalars are resolved as Kubernetes' own tools do (go-yaml: `yes` and `on` are booleans, dates stay text). Documents
are cut at `---` before parsing, so that one broken document does not hide the problems of its neighbours. Size,
depth and the number of values (aliases expanded) are bounded, so that no text costs unbounded time or memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import yaml

from bot.domain.values import Json

MAX_BYTES = 2 * 1024 * 1024
"""A file longer than this is refused; real configurations are a hundred times smaller."""
MAX_DEPTH = 60
MAX_VALUES = 100_000
MAX_DOCUMENTS = 2_000
_SEPARATOR = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
Path: TypeAlias = "tuple[str | int, ...]"


@dataclass(slots=True)
class Marks:
    """The line of a value (from 1) and, below it, those of its parts."""

    line: int
    children: dict[str | int, Marks] = field(default_factory=dict)

    def line_at(self, path: Path) -> int:
        """The line of the value at a path, or of the nearest value around it that exists."""
        marks = self
        for part in path:
            found = marks.children.get(part)
            if found is None:
                break
            marks = found
        return marks.line


@dataclass(frozen=True, slots=True)
class Complaint:
    """Something about the text itself: line, key path, message; `fatal` if the document could not be read."""

    line: int
    path: Path
    message: str
    fatal: bool = True


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """One document of a file: its value, where everything stands, and what is odd about it."""

    value: Json
    marks: Marks
    complaints: tuple[Complaint, ...] = ()


class _Unreadable(Exception):
    """The document breaks a limit or a rule; carries the line and the message."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def read_documents(text: str) -> Iterator[ReadDocument]:
    """Every document of a file that is not empty; one that cannot be read has a fatal complaint and no value.

    Never raises, whatever the text.
    """
    text = text.removeprefix("\ufeff")
    reason = _refusal(text)
    if reason:
        yield _broken(1, reason)
        return
    for first_line, chunk in _split(text):
        try:
            document = _Builder(first_line).build(chunk)
        except _Unreadable as error:
            yield _broken(error.line, str(error))
        except yaml.YAMLError as error:
            yield _broken(*_describe(error, first_line))
        else:
            if document.value is not None or document.complaints:
                yield document


def _refusal(text: str) -> str:
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        return "the file is not valid UTF-8"
    if size > MAX_BYTES:
        return f"the file has {size:,} bytes, and more than {MAX_BYTES:,} are not read; split it into several files"
    if len(_SEPARATOR.findall(text)) > MAX_DOCUMENTS:
        return f"the file has more than {MAX_DOCUMENTS:,} documents; split it into several files"
    return ""


def _broken(line: int, message: str) -> ReadDocument:
    return ReadDocument(None, Marks(line), (Complaint(line, (), message),))


def _split(text: str) -> Iterator[tuple[int, str]]:
    """Chunks between separator lines, with the number of the first line of each."""
    edges = [match.start() for match in _SEPARATOR.finditer(text)]
    line = 1
    for start, end in zip([0, *edges], [*edges, len(text)], strict=True):
        chunk = text[start:end]
        # What stands before the first separator may be nothing but directives and comments.
        if any(part.strip() and part[0] not in "#%" for part in chunk.split("\n")):
            yield line, chunk
        line += chunk.count("\n")


def _describe(error: yaml.YAMLError, first_line: int) -> tuple[int, str]:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        what = " ".join(part for part in (error.context, error.problem) if part)
        return first_line + (mark.line if mark else 0), f"this is not valid YAML: {what}"
    if isinstance(error, yaml.reader.ReaderError):
        return first_line, f"this is not valid YAML: {error.reason} (character {error.character!r})"
    return first_line, f"this is not valid YAML: {error}"


@dataclass(slots=True)
class _Anchored:
    """What an anchor stands for, and how many values it adds wherever it is named; `value` may be unfinished."""

    value: Json
    marks: Marks
    weight: int
    finished: bool


class _Builder:
    """Turns the events of one document into values and marks."""

    def __init__(self, first_line: int) -> None:
        self.first_line = first_line
        self.count = 0
        self.anchors: dict[str, _Anchored] = {}
        self.complaints: list[Complaint] = []

    def build(self, chunk: str) -> ReadDocument:
        events = yaml.parse(chunk, Loader=_LOADER)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                value, marks = self.node(next(events), events, ())
                # Only at the end of the stream has the parser seen all that may be wrong.
                for _ in events:
                    continue
                return ReadDocument(value, marks, tuple(self.complaints))
        return ReadDocument(None, Marks(self.first_line))

    def line(self, event: yaml.Event) -> int:
        mark = event.start_mark
        return self.first_line + (mark.line if mark is not None else 0)

    def node(self, event: yaml.Event, events: Iterator[yaml.Event], path: Path) -> tuple[Json, Marks]:
        line = self.line(event)
        self.count += 1
        if self.count > MAX_VALUES:
            raise _Unreadable(
                line, f"the document has more than {MAX_VALUES:,} values (aliases counted in full)"
            )
        if len(path) > MAX_DEPTH:
            raise _Unreadable(line, f"the document is nested more than {MAX_DEPTH} levels deep")
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event)
        self.check_tag(event)
        marks = Marks(line)
        anchored = self.anchor(event, marks)
        if isinstance(event, yaml.ScalarEvent):
            value = _resolve_event(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self.sequence(events, path, marks)
        else:
            value = self.mapping(events, path, marks)
        if anchored is not None:
            anchored.value, anchored.weight, anchored.finished = value, self.count - anchored.weight, True
        return value, marks

    def anchor(self, event: yaml.Event, marks: Marks) -> _Anchored | None:
        name = getattr(event, "anchor", None)
        if not name:
            return None
        self.anchors[name] = anchored = _Anchored(None, marks, self.count - 1, finished=False)
        return anchored

    def alias(self, event: yaml.AliasEvent) -> tuple[Json, Marks]:
        found = self.anchors.get(str(event.anchor))
        line = self.line(event)
        if found is None:
            raise _Unreadable(line, f"the alias *{event.anchor} has no anchor &{event.anchor}")
        if not found.finished:
            raise _Unreadable(line, f"the anchor &{event.anchor} contains itself")
        self.count += found.weight - 1
        if self.count > MAX_VALUES:
            raise _Unreadable(
                line, f"the document has more than {MAX_VALUES:,} values (aliases counted in full)"
            )
        return found.value, Marks(line, found.marks.children)

    def check_tag(self, event: yaml.Event) -> None:
        tag = getattr(event, "tag", None)
        if tag and tag != "!" and not tag.startswith("tag:yaml.org,2002:"):
            raise _Unreadable(self.line(event), f"the tag {tag} means nothing here")

    def sequence(self, events: Iterator[yaml.Event], path: Path, marks: Marks) -> list[Json]:
        items: list[Json] = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            index = len(items)
            value, marks.children[index] = self.node(event, events, (*path, index))
            items.append(value)
        return items

    def mapping(self, events: Iterator[yaml.Event], path: Path, marks: Marks) -> dict[str, Json]:
        items: dict[str, Json] = {}
        merged: list[tuple[dict[str, Json], Marks]] = []
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key, plain = self.key(event)
            value, below = self.node(next(events), events, (*path, key))
            # The line of the key is where a person looks; that of a block value may be the next one.
            below = Marks(self.line(event), below.children)
            if plain and key == "<<":
                merged.extend(self.merge_sources(value, below))
                continue
            if key in items:
                message = f"the key {key!r} stands twice in one mapping; the last one counts"
                self.complaints.append(Complaint(self.line(event), (*path, key), message, fatal=False))
            items[key] = value
            marks.children[key] = below
        for source, source_marks in merged:
            for key, value in source.items():
                if key not in items:
                    items[key] = value
                    marks.children[key] = source_marks.children.get(key, source_marks)
        return items

    def key(self, event: yaml.Event) -> tuple[str, bool]:
        """A key as text, and whether it was written plain; only scalars may be keys.

        Kubernetes' tools turn the keys `on` and `y` into `true`; as nobody means that, keys stay as they are written.
        """
        if not isinstance(event, yaml.ScalarEvent):
            raise _Unreadable(
                self.line(event), "a key must be a plain value, not a list, a mapping or an alias"
            )
        text = str(event.value)
        if not text and not event.style:
            raise _Unreadable(self.line(event), "a key is empty")
        return text, not event.style

    def merge_sources(self, value: Json, marks: Marks) -> list[tuple[dict[str, Json], Marks]]:
        if isinstance(value, dict):
            return [(value, marks)]
        if isinstance(value, list):
            return [
                (item, marks.children[index]) for index, item in enumerate(value) if isinstance(item, dict)
            ]
        raise _Unreadable(marks.line, "the merge key '<<' needs a mapping")


# -- Scalars, as go-yaml resolves them ------------------------------------------------------------------------

_BOOLEANS = {
    word: truth
    for words, truth in ((("y", "yes", "true", "on"), True), (("n", "no", "false", "off"), False))
    for base in words
    for word in (base, base.capitalize(), base.upper())
}
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_PREFIXED = re.compile(r"([-+]?)0([xXoObB]?)([0-9a-fA-F]+)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES = {"x": 16, "o": 8, "b": 2, "": 8}


def _resolve_event(event: yaml.ScalarEvent) -> Json:
    text = str(event.value)
    tag = (event.tag or "").removeprefix("tag:yaml.org,2002:")
    if tag in {"str", "binary", "!"} or (event.style and not tag):
        return text
    return resolve_scalar(text)


def resolve_scalar(text: str) -> Json:
    """The value of a plain scalar: null, boolean, number or text."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    first = text[0]
    if not (first.isdigit() or first in "+-.") or not text.isascii():
        return text
    plain = text.replace("_", "")
    if len(plain) > 64:
        return text
    if _INTEGER.fullmatch(plain):
        return int(plain)
    prefixed = _PREFIXED.fullmatch(plain)
    if prefixed is not None:
        return _prefixed_number(prefixed, text)
    if _FLOAT.fullmatch(plain):
        number = float(plain)
        # JSON has no infinity, so a number that large stays text.
        return number if abs(number) != float("inf") else text
    return text


def _prefixed_number(match: re.Match[str], text: str) -> Json:
    sign, prefix, digits = match.groups()
    try:
        number = int(digits, _BASES[prefix.lower()])
    except ValueError:
        return float(text) if _FLOAT.fullmatch(text) else text
    return -number if sign == "-" else number
