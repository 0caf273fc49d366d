"""Values as YAML, byte for byte as Go's yaml.v3 `Marshal` writes them (what `asYAML` gives)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from bot.expressions.errors import ExpressionError
from bot.expressions.gonumbers import format_float_go, parse_float
from bot.expressions.gotext import write_plain
from bot.expressions.gotime import format_moment_json
from bot.expressions.meter import Meter
from bot.expressions.operands import Moment, Operand, Span, Struct, Zone, name_type

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


def write_yaml(value: Operand, meter: Meter) -> str:
    """The YAML document, with its line end; map keys in natural order.

    Raises ExpressionError for what has no YAML form.
    """
    lines = list(_write(value, 0, meter, 0))
    text = "\n".join(lines) + "\n"
    meter.text(len(text))
    return text


def _write(value: Operand, indent: int, meter: Meter, depth: int) -> Iterator[str]:
    """The lines of a value that starts on a line of its own, the first one without indentation."""
    meter.spend(1)
    meter.depth(depth)
    if isinstance(value, Struct):
        value = {name.lower(): item for name, item in value.fields.items()}
    if isinstance(value, Mapping) and value:
        for position, key in enumerate(sorted(value, key=_natural_order)):
            name = write_scalar(key, indent, meter, is_key=True)[0]
            yield from _entry(f"{name}:", value[key], indent, meter, (depth, position))
    elif isinstance(value, list) and value:
        for position, item in enumerate(value):
            lines = _write(item, indent + 2, meter, depth + 1)
            yield f"{' ' * indent if position else ''}- {next(lines)}"
            yield from lines
    else:
        lines_of = write_scalar(value, indent + _STEP, meter)
        meter.text(sum(len(line) for line in lines_of))
        yield from lines_of


def _entry(start: str, item: Operand, indent: int, meter: Meter, place: tuple[int, int]) -> Iterator[str]:
    depth, position = place
    margin = " " * indent if position else ""
    if isinstance(item, Struct):
        item = {name.lower(): field for name, field in item.fields.items()}
    if isinstance(item, (Mapping, list)) and item:
        inner = indent + _STEP
        yield f"{margin}{start}"
        lines = _write(item, inner, meter, depth + 1)
        yield f"{' ' * inner}{next(lines)}"
        yield from lines
    else:
        lines = _write(item, indent, meter, depth + 1)
        yield f"{margin}{start} {next(lines)}"
        yield from lines


def _natural_order(key: Operand) -> tuple[tuple[int, int, str], ...]:
    """yaml.v3's order of keys: digits inside compare as numbers, letters after other signs."""
    if not isinstance(key, str):
        return ((0, int(key) if isinstance(key, (int, float)) else 0, ""),)
    pieces: list[tuple[int, int, str]] = []
    at = 0
    while at < len(key):
        if found := _DIGITS.match(key, at):
            pieces.append((2, int(found[0]) if len(found[0]) < 4000 else 0, found[0]))
            at = found.end()
        else:
            pieces.append((3 if key[at].isalpha() else 1, 0, key[at]))
            at += 1
    return tuple(pieces)


def write_scalar(value: Operand, indent: int, meter: Meter, *, is_key: bool = False) -> list[str]:
    """The lines of a scalar or an empty container; lines of a block stand at `indent`."""
    match value:
        case None:
            return ["null"]
        case bool():
            return ["true" if value else "false"]
        case str():
            return _write_text(value, indent, is_key=is_key)
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


def _write_text(text: str, indent: int, *, is_key: bool) -> list[str]:
    if "\n" in text and not is_key and _fits_block(text):
        return _write_block(text, indent)
    if "\n" in text or _UNPRINTABLE.search(text) or (not _reads_as_text(text)):
        return [_double_quote(text)]
    return [text] if _fits_plain(text) else ["'" + text.replace("'", "''") + "'"]


def _fits_block(text: str) -> bool:
    return not _UNPRINTABLE.search(text) and not re.search(r" \n| \Z|[\x85\u2028\u2029\ufeff]", text)


def _write_block(text: str, indent: int) -> list[str]:
    """A literal block: `|-` without a line end, `|` with one, `|+` with more."""
    ending = "-" if not text.endswith("\n") else "+" if text.endswith("\n\n") or text == "\n" else ""
    hint = str(_STEP) if text[0] in " \n" else ""
    body = text[:-1] if text.endswith("\n") else text
    return [f"|{hint}{ending}", *(" " * indent + line if line else "" for line in body.split("\n"))]


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
