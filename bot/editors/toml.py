"""Surgical changes of scalars in TOML, as Kargo's `toml-update` makes them."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from bot.domain.values import Json
from bot.editors.errors import EditError, suggest
from bot.editors.keys import Update, join_key, parse_index, split_key, split_suffix

BOM = "\ufeff"
TomlPath = tuple[str | int, ...]
"""Table and value names and list indexes from the top to one value."""

_GAP = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""(?:"{1,2}(?!"))?'
    r"|'''(?:[^']|'(?!''))*'''(?:'{1,2}(?!'))?"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_BARE_VALUE = re.compile(r"[^\s,\]}#]+(?: [0-9]{2}:[^\s,\]}#]+)?")


@dataclass(frozen=True, slots=True)
class _Value:
    """Where a value stands, and whether it is a scalar that may be replaced."""

    start: int
    end: int
    scalar: bool


@dataclass(slots=True)
class _Scanner:
    """Finds the span of every value in a text that tomllib has already found to be TOML."""

    text: str
    values: dict[TomlPath, _Value] = field(default_factory=dict)
    tables: dict[TomlPath, int] = field(default_factory=dict)
    counts: dict[TomlPath, int] = field(default_factory=dict)

    def scan(self) -> None:
        """Fill `values` with every value and `tables` with the place of every table header."""
        table: TomlPath = ()
        at = self._gap(0)
        while at < len(self.text):
            if self.text.startswith("[", at):
                at, table = self._header(at)
            else:
                at = self._pair(at, table)
            at = self._gap(at)

    def _gap(self, at: int) -> int:
        return self._skip(_GAP, at)

    def _blank(self, at: int) -> int:
        return self._skip(_BLANK, at)

    def _skip(self, pattern: re.Pattern[str], at: int) -> int:
        found = pattern.match(self.text, at)
        return found.end() if found else at

    def _header(self, at: int) -> tuple[int, TomlPath]:
        is_list = self.text.startswith("[[", at)
        start = at
        at, parts = self._key(self._blank(at + (2 if is_list else 1)))
        path: TomlPath = ()
        for depth, part in enumerate(parts):
            path = (*path, part)
            if is_list and depth == len(parts) - 1:
                self.counts[path] = self.counts.get(path, 0) + 1
            if path in self.counts:
                path = (*path, self.counts[path] - 1)
        self.tables[path] = start
        return self._blank(at) + (2 if is_list else 1), path

    def _key(self, at: int) -> tuple[int, list[str]]:
        parts: list[str] = []
        while True:
            quoted = _STRING.match(self.text, at)
            found = quoted or _BARE_KEY.match(self.text, at)
            if found is None:
                raise EditError("a key is not understood here", self.text.count("\n", 0, at) + 1)
            parts.append(_read_string(found[0]) if quoted else found[0])
            at = self._blank(found.end())
            if not self.text.startswith(".", at):
                return at, parts
            at = self._blank(at + 1)

    def _pair(self, at: int, table: TomlPath) -> int:
        at, parts = self._key(at)
        return self._value(self._blank(self._blank(at) + 1), (*table, *parts))

    def _value(self, at: int, path: TomlPath) -> int:
        if self.text.startswith("[", at):
            end = self._array(at, path)
        elif self.text.startswith("{", at):
            end = self._inline_table(at, path)
        else:
            found = _STRING.match(self.text, at) or _BARE_VALUE.match(self.text, at)
            if found is None:
                raise EditError("a value is not understood here", self.text.count("\n", 0, at) + 1)
            self.values[path] = _Value(at, found.end(), scalar=True)
            return found.end()
        self.values[path] = _Value(at, end, scalar=False)
        return end

    def _array(self, at: int, path: TomlPath) -> int:
        at, count = self._gap(at + 1), 0
        while not self.text.startswith("]", at):
            at = self._gap(self._value(at, (*path, count)))
            count += 1
            if self.text.startswith(",", at):
                at = self._gap(at + 1)
        return at + 1

    def _inline_table(self, at: int, path: TomlPath) -> int:
        at = self._gap(at + 1)
        while not self.text.startswith("}", at):
            at = self._gap(self._pair(at, path))
            if self.text.startswith(",", at):
                at = self._gap(at + 1)
        return at + 1


def _read_string(quoted: str) -> str:
    return str(tomllib.loads(f"k = {quoted}")["k"])


def update_toml(text: str, updates: Sequence[Update]) -> str:
    r"""The text with each key's scalar replaced, everything else byte for byte as it was.

    Keys are dotted, `\.` is a dot inside a name, `.0` or `[0]` names a list item or a table of an array of tables.
    Strings are written between single quotes, doubly quoted only if they hold a single quote or a control
    character (as go-toml does). Whole numbers stay whole; a float always shows its point. Of two updates of one
    key the last counts. A key that is missing or holds a table or list, a null and text that is no TOML raise
    EditError.
    """
    bom, body = (BOM, text[1:]) if text.startswith(BOM) else ("", text)
    before = _parse(body)
    scanner = _scan(body)
    changes: dict[TomlPath, tuple[_Value, str, Json]] = {}
    for update in updates:
        path = _locate(scanner, split_key(update.key))
        line = body.count("\n", 0, scanner.values[path].start) + 1
        changes[path] = scanner.values[path], _render(update, line), update.value
    result, position = "", 0
    for value, rendered, _ in sorted(changes.values(), key=lambda change: change[0].start):
        result += body[position : value.start] + rendered
        position = value.end
    result += body[position:]
    after = _parse(result)
    for path, (value, _, wanted) in changes.items():
        if not _set(before, path, wanted):
            raise EditError(
                f"key {join_key(path)!r} is not where it seems", body.count("\n", 0, value.start) + 1
            )
    if not _same(before, after):
        raise EditError("the values cannot be written here without changing something else")
    return bom + result


def _parse(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+)", str(error))
        message = str(error).split(" (at ", 1)[0]
        raise EditError(f"this is no valid TOML: {message}", int(found[1]) if found else None) from error
    except (ValueError, RecursionError) as error:
        raise EditError(f"this TOML cannot be read: {error}") from error


def _scan(text: str) -> _Scanner:
    scanner = _Scanner(text)
    try:
        scanner.scan()
    except RecursionError as error:
        raise EditError("this TOML is nested too deeply to be edited") from error
    return scanner


def _locate(scanner: _Scanner, parts: list[str]) -> TomlPath:
    spread = [piece for part in parts for piece in split_suffix(part)]
    for wanted in (parts, spread):
        for path, value in scanner.values.items():
            if _matches(path, wanted):
                if value.scalar:
                    return path
                line = scanner.text.count("\n", 0, value.start) + 1
                raise EditError(
                    f"key {join_key(parts)!r} holds a list or table; only scalars are replaced", line
                )
    for path, start in scanner.tables.items():
        if any(_matches(path[:size], spread) for size in range(1, len(path) + 1)):
            line = scanner.text.count("\n", 0, start) + 1
            raise EditError(f"key {join_key(parts)!r} is a table; only scalars are replaced", line)
    names = [join_key(path) for path, value in scanner.values.items() if value.scalar]
    raise EditError(f"key {join_key(parts)!r} was not found{suggest(join_key(parts), names)}")


def _matches(path: TomlPath, parts: list[str]) -> bool:
    if len(path) != len(parts):
        return False
    return all(
        part == step if isinstance(step, str) else parse_index(part) == step
        for step, part in zip(path, parts, strict=True)
    )


def _render(update: Update, line: int) -> str:
    match update.value:
        case bool() as value:
            return "true" if value else "false"
        case int() as value if -(1 << 63) <= value < 1 << 63:
            return format(value, "d")
        case float() as value if math.isfinite(value):
            plain = format(Decimal(repr(value)), "f")
            return plain if "." in plain else plain + ".0"
        case str() as value:
            return _quote(value)
        case _:
            kind = type(update.value).__name__
            raise EditError(
                f"key {update.key!r}: the new value is no scalar that TOML can hold ({kind})", line
            )


def _quote(text: str) -> str:
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    return '"' + "".join(map(_escape, text)) + '"'


_SIGNS = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def _escape(letter: str) -> str:
    if letter in _SIGNS:
        return _SIGNS[letter]
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _set(held: object, path: TomlPath, value: Json) -> bool:
    """Set a path in a parsed document; False if it is not there."""
    *way, last = path
    for step in way:
        held = _child(held, step)
    if isinstance(held, dict) and last in held:
        held[last] = value
        return True
    if isinstance(held, list) and isinstance(last, int) and last < len(held):
        held[last] = value
        return True
    return False


def _child(held: object, step: str | int) -> object:
    if isinstance(held, dict):
        return held.get(step)
    if isinstance(held, list) and isinstance(step, int) and step < len(held):
        return held[step]
    return None


def _same(left: object, right: object) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    # A NaN equals nothing, itself included, but is written the same.
    return type(left) is type(right) and (left == right or repr(left) == repr(right))


def find_toml_leaves(text: str) -> dict[TomlPath, Json]:
    """Every scalar of a TOML text by its path, in order; dates and times as ISO text; empty containers are leaves."""
    leaves: dict[TomlPath, Json] = {}
    waiting: list[tuple[object, TomlPath]] = [(_parse(text.removeprefix(BOM)), ())]
    while waiting:
        value, path = waiting.pop()
        if isinstance(value, dict):
            children: list[tuple[object, TomlPath]] = [
                (item, (*path, str(key))) for key, item in value.items()
            ]
        elif isinstance(value, list):
            children = [(item, (*path, at)) for at, item in enumerate(value)]
        else:
            leaves[path] = value if isinstance(value, bool | int | float | str) else str(value)
            continue
        if not children:
            leaves[path] = [] if isinstance(value, list) else {}
        waiting += reversed(children)
    return leaves
