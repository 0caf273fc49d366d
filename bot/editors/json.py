"""Surgical changes of JSON with the meaning of `sjson.Set`, which Kargo's `json-update` uses."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.keys import Update, is_scalar, same_value

BOM = "\ufeff"
_SPACE = re.compile(r"[ \t\r\n]*")
_MAX_PADDING = 10_000
_MAX_DEPTH = 200


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON value")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_SKIPPER = json.JSONDecoder(parse_constant=_no_constant, parse_int=str, parse_float=str)


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of a path; `forced` when a `:` before it makes digits a key instead of an index."""

    text: str
    forced: bool

    @property
    def index(self) -> int | None:
        """The list index that the part names, if it may be one."""
        return int(self.text) if not self.forced and re.fullmatch(r"[0-9]{1,9}", self.text) else None

    @property
    def appends(self) -> bool:
        """Whether the part means the place behind the last item."""
        return self.text == "-1" and not self.forced


@dataclass(frozen=True, slots=True)
class _Member:
    """An entry of an object or array: `start` to `end` is its value, `key_start` where its key or value begins."""

    key: str
    key_start: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Container:
    """An object or list in a text, at its opening sign."""

    text: str
    at: int
    members: list[_Member]

    @property
    def line(self) -> int:
        """The line, from 1, on which it begins."""
        return self.text.count("\n", 0, self.at) + 1


def split_path(key: str) -> list[_Part]:
    r"""The parts of an sjson path: `.` separates, `\` escapes any character, a leading `:` forces a key.

    An empty path or part and an unescaped `*`, `?` or `#` raise EditError.
    """
    parts: list[_Part] = []
    text, forced, fresh = "", False, True
    letters = iter(key)
    for letter in letters:
        if letter == "\\":
            text += next(letters, "")
        elif letter == ".":
            parts.append(_part(text, key, forced=forced))
            text, forced, fresh = "", False, True
            continue
        elif letter == ":" and fresh:
            forced = True
        elif letter in "*?#":
            raise EditError(
                f"key {key!r} holds {letter!r}; wildcards name no single place, write '\\{letter}'"
            )
        else:
            text += letter
        fresh = False
    parts.append(_part(text, key, forced=forced))
    return parts


def _part(text: str, key: str, *, forced: bool) -> _Part:
    if not text:
        raise EditError(f"key {key!r} is empty or has an empty part")
    return _Part(text, forced)


def update_json(text: str, updates: Sequence[Update]) -> str:
    r"""The text with each path set, everything else byte for byte as it was.

    As in sjson, missing keys are created at the end of their object, `-1` appends to a list, an index past the end
    pads it with nulls, and a scalar on the way gives way to an object or list. Values are scalars. Where an object
    or list stands on several lines the new entry gets a line of its own. Unlike sjson, text that is no JSON, a key
    that stands twice and empty parts raise EditError instead of being guessed at, and `<`, `>`, `&` and
    backslashes are written as they are.
    """
    bom, body = (BOM, text[1:]) if text.startswith(BOM) else ("", text)
    for update in updates:
        body = _update_one(body, update)
    return bom + body


def _update_one(text: str, update: Update) -> str:
    parts = split_path(update.key)
    if len(parts) > _MAX_DEPTH:
        raise EditError(f"key {update.key[:60]!r}... has more than {_MAX_DEPTH} parts")
    if not is_scalar(update.value):
        raise EditError(
            f"key {update.key!r}: the new value is a list or object; only scalars can be written here"
        )
    rendered = _render(update)
    blank = not text.strip(" \t\r\n")
    before: Json = None if blank else parse_json(text)
    try:
        result = _build(parts, rendered) if blank else _write(text, parts, update.key, rendered)
    except RecursionError as error:
        raise EditError("this JSON is nested too deeply to be edited") from error
    if not same_value(parse_json(result), _expected(before, parts, parse_json(rendered))):
        raise EditError(f"key {update.key!r} cannot be written without changing something else")
    return result


def parse_json(text: str) -> Json:
    """The value of a whole JSON text; what is no JSON raises EditError with its line."""
    try:
        value: Json = _DECODER.decode(text.removeprefix(BOM))
    except json.JSONDecodeError as error:
        raise EditError(f"this is no valid JSON: {error.msg}", error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise EditError(f"this is no JSON that can be read: {error}") from error
    return value


def _render(update: Update) -> str:
    match update.value:
        case float() as number if not math.isfinite(number):
            raise EditError(f"key {update.key!r}: {number} is no JSON number")
        case float() as number:
            plain = format(Decimal(repr(number)), "f")
            return plain.removesuffix(".0") if number.is_integer() else plain
        case str() as text if not _is_unicode(text):
            raise EditError(
                f"key {update.key!r}: the new value holds half a surrogate pair, which is no text"
            )
        case value:
            # Browsers once took these two for line ends inside scripts, so encoders write them as escapes.
            try:
                dumped = json.dumps(value, ensure_ascii=False)
            except ValueError as error:
                raise EditError(f"key {update.key!r}: the new value cannot be written: {error}") from error
            return dumped.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _members(text: str, at: int) -> Iterator[_Member]:
    """The entries of the object or array that begins at `at`, in a text known to be JSON."""
    is_object = text[at] == "{"
    at = _space(text, at + 1)
    while text[at] not in "}]":
        key, key_start = "", at
        if is_object:
            key, at = _SKIPPER.raw_decode(text, at)
            at = _space(text, _space(text, at) + 1)
        _, end = _SKIPPER.raw_decode(text, at)
        yield _Member(key, key_start, at, end)
        at = _space(text, end)
        if text[at] == ",":
            at = _space(text, at + 1)


def _write(text: str, parts: list[_Part], key: str, rendered: str) -> str:
    """The text with the path set; goes down by position and returns at the first place that has to change."""
    at = _space(text, 0)
    for depth, part in enumerate(parts):
        rest = parts[depth + 1 :]
        if text[at] not in "{[":
            _, end = _SKIPPER.raw_decode(text, at)
            return text[:at] + _build(parts[depth:], rendered) + text[end:]
        held = _Container(text, at, list(_members(text, at)))
        found = _find(held, part, key)
        if found is None:
            return _add(held, parts[depth:], key, rendered)
        if not rest:
            return text[: found.start] + rendered + text[found.end :]
        at = found.start
    return text


def _find(held: _Container, part: _Part, key: str) -> _Member | None:
    if held.text[held.at] == "[":
        position = int(part.text) if re.fullmatch(r"[0-9]{1,9}", part.text) else None
        return held.members[position] if position is not None and position < len(held.members) else None
    found = [member for member in held.members if member.key == part.text]
    if len(found) > 1:
        line = held.text.count("\n", 0, found[1].key_start) + 1
        raise EditError(f"key {key!r}: {part.text!r} stands twice in one object", line)
    return found[0] if found else None


def _build(parts: list[_Part], rendered: str) -> str:
    """The compact text of nested objects and lists that hold a value at a path."""
    for part in reversed(parts):
        position = part.index
        if position is None:
            rendered = "{" + json.dumps(part.text, ensure_ascii=False) + ":" + rendered + "}"
        else:
            rendered = "[" + "null," * _checked_padding(position, part) + rendered + "]"
    return rendered


def _checked_padding(count: int, part: _Part) -> int:
    if count > _MAX_PADDING:
        raise EditError(f"index {part.text} would pad a list with {count} nulls")
    return count


def _add(held: _Container, parts: list[_Part], key: str, rendered: str) -> str:
    part, inner = parts[0], _build(parts[1:], rendered)
    text, at, members = held.text, held.at, held.members
    if text[at] == "{":
        return _insert(held, [inner], json.dumps(part.text, ensure_ascii=False))
    if part.appends:
        return _insert(held, [inner], "")
    position = part.index
    if position is None:
        there = f"the list of {len(members)} items that stands here"
        raise EditError(f"key {key!r}: {part.text!r} is no index of {there}", held.line)
    new = ["null"] * _checked_padding(position - len(members), part) + [inner]
    _, end = _SKIPPER.raw_decode(text, at)
    if "\n" in text[at:end]:
        return _insert(held, new, "")
    items = [text[member.start : member.end] for member in members]
    return text[:at] + "[" + ",".join(items + new) + "]" + text[end:]


def _insert(held: _Container, values: list[str], name: str) -> str:
    """The text with entries added behind the last one, on lines of their own if it stands on its own line."""
    text = held.text
    _, end = _SKIPPER.raw_decode(text, held.at)
    close = end - 1
    entries = [f"{name}:{value}" if name else value for value in values]
    if not held.members:
        return text[:close] + ",".join(entries) + text[close:]
    last = held.members[-1]
    if "\n" not in text[last.end : close]:
        return text[:close] + "".join("," + entry for entry in entries) + text[close:]
    gap = text[: last.key_start]
    gap = gap[len(gap.rstrip(" \t\r\n")) :]
    colon = re.search(r":[ \t]*$", text[last.key_start : last.start])
    sign = colon[0] if colon else ":"
    entries = [f"{name}{sign}{value}" if name else value for value in values]
    return text[: last.end] + "".join(f",{gap}{entry}" for entry in entries) + text[last.end :]


def _expected(held: Json, parts: list[_Part], value: Json) -> Json:
    """The value that the new text must have, worked out without looking at text."""
    if not parts:
        return value
    part, rest = parts[0], parts[1:]
    position = part.index
    if not isinstance(held, list | dict):
        held = [] if position is not None else {}
    if isinstance(held, dict):
        return {**held, part.text: _expected(held.get(part.text), rest, value)}
    if part.forced and part.text.isdigit():
        position = int(part.text)
    if position is None:
        position = len(held)
    padded = [*held, *[None] * (position + 1 - len(held))]
    padded[position] = _expected(padded[position], rest, value)
    return padded


def find_json_leaves(text: str) -> dict[tuple[str | int, ...], Json]:
    """Every scalar of a JSON text by its path, in order; empty lists and objects are leaves too."""
    leaves: dict[tuple[str | int, ...], Json] = {}
    waiting: list[tuple[Json, tuple[str | int, ...]]] = [(parse_json(text), ())]
    while waiting:
        value, path = waiting.pop()
        if isinstance(value, dict) and value:
            waiting += [(item, (*path, key)) for key, item in reversed(value.items())]
        elif isinstance(value, list) and value:
            waiting += [(item, (*path, at)) for at, item in reversed(list(enumerate(value)))]
        else:
            leaves[path] = value
    return leaves
