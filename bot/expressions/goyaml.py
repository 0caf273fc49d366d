"""Values as YAML, byte for byte as Go's yaml.v3 `Marshal` writes them (what `asYAML` gives)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cmp_to_key

from bot.expressions.errors import ExpressionError
from bot.expressions.gonumbers import format_float_go, parse_float
from bot.expressions.gotext import write_plain
from bot.expressions.gotime import format_moment_json
from bot.expressions.meter import Meter
from bot.expressions.operands import Moment, Operand, Span, Struct, Zone, name_type, plain_key

_STEP = 4
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS = frozenset({"true", "True", "TRUE", "false", "False", "FALSE"})
_OLD_BOOL_TEXT = "y Y yes Yes YES on On ON n N no No NO off Off OFF"
_OLD_BOOLS = frozenset(_OLD_BOOL_TEXT.split())
_SPECIAL_FLOATS = frozenset({".nan", ".NaN", ".NAN", "<<"}) | {
    sign + word for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")
}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_INT = re.compile(r"[-+]?(0[bB][01_]+|0[oO]?[0-7_]+|0[xX][0-9a-fA-F_]+|[0-9][0-9_]*)", re.ASCII)
_BASE60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", re.ASCII)
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]| )[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]+)?"
    r"(?:Z| ?[+-][0-9]{2}:[0-9]{2})?)?",
    re.ASCII,
)
_DIGITS = re.compile(r"[0-9]+", re.ASCII)
_UNPRINTABLE = re.compile(
    "[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]",
)
_DOUBLE_ESCAPES = {
    "\0": "\\0",
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
    "\x1b": "\\e",
    '"': '\\"',
    "\\": "\\\\",
    "\x85": "\\N",
    "\xa0": "\\_",
    "\u2028": "\\L",
    "\u2029": "\\P",
}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value is written: the column of its lines, that of lines of a text, and how far in that is."""

    indent: int
    block: int
    step: int
    depth: int

    def item(self) -> _Place:
        """The place of a list's item, after its dash."""
        return _Place(self.indent + 2, self.indent + 2, 2, self.depth + 1)

    def entry(self) -> _Place:
        """The place below a map's key: the next multiple of four."""
        inner = _STEP * ((self.indent + _STEP) // _STEP)
        return _Place(inner, inner, inner - self.indent, self.depth + 1)


def write_yaml(value: Operand, meter: Meter) -> str:
    """The YAML document, with its line end; map keys in natural order.

    A text in several lines that begins with a space gets the indentation hint that fits; yaml.v3 always writes 4,
    which is not YAML inside lists. Raises ExpressionError for what has no YAML form.
    """
    lines = list(_write(value, _Place(0, _STEP, _STEP, 0), meter))
    text = "\n".join(lines) + "\n"
    meter.text(len(text))
    return text


def _write(value: Operand, place: _Place, meter: Meter) -> Iterator[str]:
    """The lines of a value, the first one without indentation."""
    meter.spend(1)
    meter.depth(place.depth)
    margin = " " * place.indent
    if isinstance(value, Struct):
        value = {name.lower(): item for name, item in value.fields.items()}
    if isinstance(value, Mapping) and value:
        for position, key in enumerate(sorted(value, key=cmp_to_key(_compare_keys))):
            name = _write_scalar(plain_key(key), place, meter, is_key=True)[0]
            yield from _write_entry(f"{margin if position else ''}{name}:", value[key], place.entry(), meter)
    elif isinstance(value, list) and value:
        for position, item in enumerate(value):
            lines = _write(item, place.item(), meter)
            yield f"{margin if position else ''}- {next(lines)}"
            yield from lines
    else:
        scalar = _write_scalar(value, place, meter)
        meter.text(sum(len(line) for line in scalar))
        yield from scalar


def _write_entry(start: str, item: Operand, place: _Place, meter: Meter) -> Iterator[str]:
    """One key with its value; containers begin on the next line."""
    lines = _write(item, place, meter)
    if (isinstance(item, (Mapping, list)) and item) or isinstance(item, Struct):
        yield start
        yield " " * place.indent + next(lines)
    else:
        yield f"{start} {next(lines)}"
    yield from lines


def _compare_keys(one: Operand, other: Operand) -> int:
    """yaml.v3's order of keys: runs of digits compare as numbers, letters come after digits and other signs."""
    if not isinstance(one, str) or not isinstance(other, str):
        return (isinstance(one, str), str(one)) > (isinstance(other, str), str(other)) or -1
    after_digit = False
    for at, (ours, theirs) in enumerate(zip(one, other, strict=False)):
        if ours == theirs:
            after_digit = ours.isdigit()
            continue
        if ours.isalpha() and theirs.isalpha():
            return -1 if ours < theirs else 1
        if ours.isalpha() or theirs.isalpha():
            return -1 if (ours.isalpha() if after_digit else theirs.isalpha()) else 1
        return _compare_digits(one, other, at)
    return len(one) - len(other)


def _compare_digits(one: str, other: str, at: int) -> int:
    """The order of two texts that first differ at a place where neither has a letter."""
    ours, theirs = _DIGITS.match(one, at), _DIGITS.match(other, at)
    left, right = ours[0] if ours else "", theirs[0] if theirs else ""
    # A zero after a digit belongs to the number that began before.
    lead = "1" if "0" in (one[at], other[at]) and re.search(r"[1-9][0-9]*\Z", one[:at]) else "0"
    numbers = int((lead + left)[:4000]), int((lead + right)[:4000])
    if numbers[0] != numbers[1]:
        return -1 if numbers[0] < numbers[1] else 1
    if len(left) != len(right):
        return len(left) - len(right)
    return -1 if one[at] < other[at] else 1


def _write_scalar(value: Operand, place: _Place, meter: Meter, *, is_key: bool = False) -> list[str]:
    """The lines of a scalar or an empty container."""
    match value:
        case None:
            return ["null"]
        case bool():
            return ["true" if value else "false"]
        case str():
            return _write_text(value, place, is_key=is_key)
        case float():
            special = {"NaN": ".nan", "+Inf": ".inf", "-Inf": "-.inf"}
            text = format_float_go(value)
            return [special.get(text, text)]
        case int():
            return [str(int(value))]
        case Moment():
            return [format_moment_json(value)]
        case Span():
            return [write_plain(value, meter)]
        case list():
            return ["[]"]
        case Mapping() | Zone():
            return ["{}"]
        case _:
            raise ExpressionError(f"{name_type(value)} has no YAML form")


def _write_text(text: str, place: _Place, *, is_key: bool) -> list[str]:
    if "\n" in text and not is_key and _fits_block(text):
        return _write_block(text, place)
    if "\n" in text or "\t" in text or _UNPRINTABLE.search(text) or (not _reads_as_text(text)):
        return [_double_quote(text)]
    return [text] if _fits_plain(text) else ["'" + text.replace("'", "''") + "'"]


def _fits_block(text: str) -> bool:
    return not _UNPRINTABLE.search(text) and not re.search(r" \n| \Z|[\x85\u2028\u2029\ufeff]", text)


def _write_block(text: str, place: _Place) -> list[str]:
    """A literal block: `|-` without a line end, `|` with one, `|+` with more."""
    ending = "-" if not text.endswith("\n") else "+" if text.endswith("\n\n") or text == "\n" else ""
    hint = str(place.step) if text[0] in " \n" else ""
    body = text[:-1] if text.endswith("\n") else text
    return [f"|{hint}{ending}", *(" " * place.block + line if line else "" for line in body.split("\n"))]


def _reads_as_text(text: str) -> bool:
    """Whether the plain form would be read back as a text by YAML 1.2, and by 1.1 where that differs."""
    if text in _NULLS or text in _BOOLS or text in _OLD_BOOLS or text in _SPECIAL_FLOATS:
        return False
    if text[0] in "+-.0123456789":
        plain = text.replace("_", "")
        if (
            _INT.fullmatch(plain)
            or _FLOAT.fullmatch(plain)
            or _BASE60.fullmatch(text)
            or _TIMESTAMP.fullmatch(text)
        ):
            return False
        if _INT.fullmatch(text) and parse_float(text) is not None:
            return False
    return True


def _fits_plain(text: str) -> bool:
    """Whether the emitter allows the text without quotes in block style."""
    if text[0] == " " or text[-1] == " " or text.startswith(("---", "...")):
        return False
    if text[0] in "#,[]{}&*!|>'\"%@`":
        return False
    if text[0] in "-?:" and (len(text) == 1 or text[1] in " \t"):
        return False
    return not re.search(r":(?=[ \t]|\Z)|(?<=[ \t])#|[\x85\u2028\u2029]|\t\Z|\A\t", text)


def _double_quote(text: str) -> str:
    pieces = ['"']
    for letter in text:
        if letter in _DOUBLE_ESCAPES:
            pieces.append(_DOUBLE_ESCAPES[letter])
        elif not _UNPRINTABLE.match(letter):
            pieces.append(letter)
        elif letter <= "\xff":
            pieces.append(f"\\x{ord(letter):02X}")
        elif letter <= "\uffff":
            pieces.append(f"\\u{ord(letter):04X}")
        else:
            pieces.append(f"\\U{ord(letter):08X}")
    pieces.append('"')
    return "".join(pieces)
