"""How a value is written as one YAML scalar, and which value a written scalar stands for."""

from __future__ import annotations

import json
import math
import re

import yaml

from bot.domain.values import Json
from bot.editors.literals import render_number

_GO_FLOAT = re.compile(
    r"[+-]?(?:[0-9]+(?:_[0-9]+)*\.?(?:[0-9]+(?:_[0-9]+)*)?|\.[0-9]+(?:_[0-9]+)*)(?:[eE][+-]?[0-9]+(?:_[0-9]+)*)?"
)
_GO_HEX_FLOAT = re.compile(
    r"[+-]?0[xX]_?(?:[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*\.?[0-9a-fA-F_]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+"
)
_GO_NAMED_FLOAT = re.compile(r"[+-]?inf(?:inity)?|nan", re.IGNORECASE)
_GO_BOOLS = frozenset({"1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"})

# What YAML 1.2 (core schema) and Go's reader take for something other than a string; YAML 1.1 is asked of PyYAML.
_OTHER_TYPE = re.compile(
    r"~|null|Null|NULL|<<|=|[-+]?[0-9][0-9_]*|[-+]?0[oO][0-7_]+|[-+]?0[xX][0-9a-fA-F_]+|[-+]?0[bB][01_]+"
    r"|[-+]?(?:\.[0-9][0-9_]*|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?"
)
_PLAIN = re.compile(r"(?:[^-?:,\[\]{}#&*!|>'\"%@`\s]|[-?:](?=[^\s,\[\]{}]))[^\t\n]*", re.DOTALL)
_NOT_PLAIN = re.compile(r":(?:\s|$)|\s#|\s$|^(?:---|\.\.\.)(?:\s|$)")
_FLOW_SIGNS = re.compile(r"[,\[\]{}:?]")
_RESOLVER = yaml.resolver.Resolver()
_STR = "tag:yaml.org,2002:str"

_ESCAPES = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    '"': '\\"', "\\": "\\\\",
}  # fmt: skip

_INT = re.compile(r"[-+]?[0-9][0-9_]*|[-+]?0[xX][0-9a-fA-F_]+|[-+]?0[oO][0-7_]+|[-+]?0[bB][01_]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def quote_scalar(value: Json) -> str:
    """The text that Kargo writes for a value: a string in quotes only if it reads as float, bool or JSON in Go.

    It is what commit messages show. It is not what is written into files: `render_scalar` is, since Kargo's rule
    leaves `yes`, `~`, `a: b` and the empty string bare, and they would be read as something else.
    Differs from Kargo in numbers: whole numbers are written with all their digits, never as `1e+06`.
    """
    if isinstance(value, str):
        return double_quoted(value) if _reads_as_other_in_go(value) else value
    return render_number(value)


def _reads_as_other_in_go(text: str) -> bool:
    if text in _GO_BOOLS or _GO_NAMED_FLOAT.fullmatch(text) or _GO_HEX_FLOAT.fullmatch(text):
        return True
    if _GO_FLOAT.fullmatch(text):
        # Go's parser reports numbers beyond float64 as an error, so they count as strings there.
        return not math.isinf(float(text.replace("_", ""))) or _is_json(text)
    return _is_json(text)


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=_refuse_constant, parse_int=str)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def render_scalar(value: Json, old_style: str = "", *, flow: bool = False) -> str:
    """The text to write for a scalar so that every YAML reader gets the same value with the same type.

    A string stays bare where it is safe in YAML 1.1, YAML 1.2 and Go's reader, in `flow` context also beside
    commas and brackets. Otherwise it is quoted: doubly where Kargo quotes too, else singly if `old_style` is
    a single quote and the text allows it.
    """
    if not isinstance(value, str):
        return render_number(value)
    if _reads_as_other_in_go(value):
        return double_quoted(value)
    if is_plain(value, flow=flow):
        return value
    if old_style == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return double_quoted(value)


def is_plain(text: str, *, flow: bool = False) -> bool:
    """Whether a string can be written without quotes and is read as that same string everywhere."""
    if not text.isprintable() or not _PLAIN.fullmatch(text) or _NOT_PLAIN.search(text):
        return False
    if flow and _FLOW_SIGNS.search(text):
        return False
    return not _OTHER_TYPE.fullmatch(text) and resolve_tag(text) == _STR


def resolve_tag(text: str) -> str:
    """The tag that YAML 1.1 gives a bare scalar."""
    tag: str = _RESOLVER.resolve(yaml.nodes.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return tag


def double_quoted(text: str) -> str:
    """A string between double quotes, with every character escaped that is not printable."""
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def read_plain(text: str) -> Json:
    """The value of a bare scalar, by the rules of Go's YAML reader that Helm and Argo CD use.

    `yes` and `on` are strings there, `0755` is octal, timestamps stay strings. Infinity and NaN stay strings too,
    since JSON has no words for them.
    """
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE"):
        return True
    if text in ("false", "False", "FALSE"):
        return False
    if _INT.fullmatch(text) and len(text) <= 400:
        number = _read_int(text.replace("_", ""))
        if number is not None:
            return number
    if _FLOAT.fullmatch(text.replace("_", "")) and text[0] != "_":
        value = float(text.replace("_", ""))
        return value if math.isfinite(value) else text
    return text


def _read_int(digits: str) -> int | None:
    sign = -1 if digits.startswith("-") else 1
    bare = digits.lstrip("+-")
    prefix = bare[:2].lower()
    base = {"0x": 16, "0o": 8, "0b": 2}.get(prefix)
    try:
        if base is not None:
            return sign * int(bare[2:], base)
        if len(bare) > 1 and bare.startswith("0"):
            return sign * int(bare, 8)
        return sign * int(bare)
    except ValueError:
        return None
