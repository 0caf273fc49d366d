"""Laying one YAML text over another, as Kargo's `yaml-merge` does it with kyaml."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.keys import join_key, same_value
from bot.editors.yaml.create import content_end, render_flow
from bot.editors.yaml.scalars import render_scalar
from bot.editors.yaml.stream import BOM, Kind, Stream, build, parse_stream

_COMMENT_LINE = re.compile(r"[ \t]*#")


def merge_yaml(texts: Sequence[str]) -> str:
    """The first text with the others laid over it in turn, its own layout and comments kept where it stays.

    Mappings merge key by key, a null removes its key, lists and scalars are replaced whole; entries that are new
    come with their lines and the comments above them. Texts that are empty or null change nothing. Only one
    document per text is understood. The result is read again and compared with the merged values; EditError says
    that it would differ, or which text is no YAML.

    As in kyaml a mapping, a list and a scalar do not replace each other: that is an error. Differs from kyaml in
    that the later value keeps its own quotes and so its type (kyaml keeps the earlier one's, which turns the number
    2 over `"1"` into a string), and that its `$patch` directives are refused.
    """
    merged = ""
    for text in texts:
        if _is_empty(merged):
            merged = text if not _is_empty(text) else merged
        elif not _is_empty(text):
            merged = _lay_over(merged, text.removeprefix(BOM))
    return merged


def _is_empty(text: str) -> bool:
    stream = _parse(text)
    return not stream.roots or (
        stream.kinds[stream.roots[0]] is Kind.SCALAR and stream.read(stream.roots[0]) is None
    )


def _parse(text: str) -> Stream:
    stream = parse_stream(text.removeprefix(BOM))
    if len(stream.roots) > 1:
        raise EditError("only files of one document can be merged", stream.line(stream.roots[1]))
    return stream


def _lay_over(held: str, laid: str) -> str:
    bom, body = (BOM, held[1:]) if held.startswith(BOM) else ("", held)
    if not body.endswith("\n"):
        body += "\r\n" if "\r\n" in body else "\n"
    below, above = _parse(body), _parse(laid)
    old, new = build(below, below.roots[0]), build(above, above.roots[0])
    expected = _merge_values(old, new, ())
    if not isinstance(old, dict):
        return laid
    merge = _Merge(below, above)
    merge.mapping(below.roots[0], above.roots[0], expected)
    result = merge.text()
    if not _reads_as(result, expected):
        raise EditError("these files cannot be merged without changing a value; write the result out by hand")
    return bom + result


def _reads_as(text: str, expected: Json) -> bool:
    try:
        stream = _parse(text)
        return bool(stream.roots) and same_value(build(stream, stream.roots[0]), expected)
    except EditError:
        return False


def _merge_values(held: Json, laid: Json, path: tuple[str, ...]) -> Json:
    if isinstance(laid, dict) and "$patch" in laid:
        raise EditError(f"{join_key(path)!r} holds a $patch directive, which is not carried out here")
    if held is not None and _kind(held) != _kind(laid):
        where = repr(join_key(path)) if path else "the top"
        raise EditError(
            f"at {where} one file holds {_kind(held)}, a later one {_kind(laid)}; they cannot be merged"
        )
    if not (isinstance(held, dict) and isinstance(laid, dict)):
        return laid
    merged = dict(held)
    for key, value in laid.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge_values(merged.get(key), value, (*path, key))
    return merged


def _kind(value: Json) -> str:
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else "a scalar"


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: str


@dataclass(slots=True)
class _Merge:
    """Collects the edits of the lower text; where both hold mappings it goes on inside, all else is replaced."""

    below: Stream
    above: Stream
    edits: list[_Edit] = field(default_factory=list)

    def text(self) -> str:
        """The lower text with all edits made."""
        pieces: list[str] = []
        position = 0
        for edit in sorted(self.edits, key=lambda each: (each.start, each.end)):
            pieces += (self.below.text[position : edit.start], edit.text)
            position = edit.end
        return "".join(pieces) + self.below.text[position:]

    def mapping(self, held: int, laid: int, expected: Json) -> None:
        """Edit the mapping at `held` so that it also says what the one at `laid` says."""
        if not isinstance(expected, dict):
            return
        old = {self.below.key_text(key): (key, value) for key, value in self.below.pairs(held)}
        new = list(self.above.pairs(laid))
        if self.below.is_flow(held) or not old or not expected or None in old:
            self.edits.append(
                _Edit(self.below.starts[held], content_end(self.below, held), render_flow(expected))
            )
            return
        added: list[str] = []
        column, in_flow = self.below.column(held + 1), self.above.is_flow(laid)
        for key, value in new:
            name = self.above.key_text(key)
            place = old.get(name)
            is_null = self.above.kinds[value] is Kind.SCALAR and self.above.read(value) is None
            if place is None and not is_null:
                added += self._entry(key, value, column, in_flow=in_flow, is_new=True)
            elif place is not None and is_null:
                self._remove(*place)
            elif place is not None and name is not None:
                self._change(*place, (key, value), expected.get(name))
        if added:
            at = _line_end(self.below.text, content_end(self.below, held))
            self.edits.append(_Edit(at, at, "".join(self._lines(added))))

    def _change(self, key: int, value: int, source: tuple[int, int], expected: Json) -> None:
        below, above = self.below, self.above
        laid_key, laid = source
        if below.kinds[value] is Kind.MAPPING and above.kinds[laid] is Kind.MAPPING:
            if any(True for _ in above.pairs(laid)):
                self.mapping(value, laid, expected)
            return
        if same_value(build(below, value), expected):
            return
        start, end = below.starts[value], content_end(below, value)
        text = above.text[above.starts[laid] : content_end(above, laid)]
        if above.kinds[laid] is Kind.ALIAS or below.kinds[value] is Kind.ALIAS:
            text = _on_one_line(expected)
        elif "\n" in text or (above.kinds[laid] in (Kind.MAPPING, Kind.SEQUENCE) and not above.is_flow(laid)):
            lines = self._entry(laid_key, laid, below.column(key), in_flow=False, is_new=False)
            start, end = _line_start(below.text, below.starts[key]), _line_end(below.text, end)
            lines[0] = below.text[start : below.starts[key]] + lines[0].lstrip(" ")
            self.edits.append(_Edit(start, end, "".join(self._lines(lines))))
            return
        if not text and start != end:
            text = "null"
        colon = below.text.find(":", below.end(key))
        if "\n" in below.text[colon:end] or start == end:
            start, text = colon + 1, " " + text
        self.edits.append(_Edit(start, end, text))

    def _remove(self, key: int, value: int) -> None:
        text = self.below.text
        start = _line_start(text, self.below.starts[key])
        self.edits.append(_Edit(start, _line_end(text, content_end(self.below, value)), ""))

    def _entry(self, key: int, value: int, column: int, *, in_flow: bool, is_new: bool) -> list[str]:
        """The lines of an entry of the upper text, moved to another column; a new one brings its comments."""
        above, text = self.above, self.above.text
        start, end = above.starts[key], content_end(above, value)
        if in_flow:
            held = build(above, value)
            return [f"{' ' * column}{text[start : above.end(key)]}: {_on_one_line(held)}"]
        first = _line_start(text, start)
        while is_new and first > 0 and _COMMENT_LINE.match(text, _line_start(text, first - 1)):
            first = _line_start(text, first - 1)
        shift = column - above.column(key)
        lines = text[first : _line_end(text, end)].removesuffix("\n").split("\n")
        return [_moved(line.removesuffix("\r"), shift) for line in lines]

    def _lines(self, lines: list[str]) -> Iterator[str]:
        newline = "\r\n" if "\r\n" in self.below.text else "\n"
        return (line + newline for line in lines)


def _on_one_line(value: Json) -> str:
    return render_flow(value) if isinstance(value, list | dict) else render_scalar(value)


def _moved(line: str, shift: int) -> str:
    if not line.strip():
        return ""
    if shift >= 0:
        return " " * shift + line
    spaces = len(line) - len(line.lstrip(" "))
    return line[min(-shift, spaces) :]


def _line_start(text: str, position: int) -> int:
    return text.rfind("\n", 0, position) + 1


def _line_end(text: str, position: int) -> int:
    """The character after the line that holds a position, which may already be one."""
    if position > 0 and text[position - 1] == "\n":
        return position
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1
