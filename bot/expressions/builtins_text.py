"""expr-lang's builtins on texts, and between texts and other values."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from bot.expressions.errors import ExpressionError
from bot.expressions.gotext import read_json, write_json, write_plain
from bot.expressions.members import to_index
from bot.expressions.meter import Meter
from bot.expressions.operands import Operand, name_type

GO_SPACE = (
    " \t\n\v\f\r\x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""What Go's unicode.IsSpace takes for space."""


def _text(value: Operand, name: str) -> str:
    if isinstance(value, str):
        return value
    raise ExpressionError(f"{name} takes a text, not {name_type(value)}")


def type_name(arguments: Sequence[Operand], _meter: Meter) -> Operand:
    """`type(x)`."""
    return name_type(arguments[0])


def to_text(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`string(x)`, as Go's `%v`."""
    return write_plain(arguments[0], meter)


def trim(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`trim(text[, characters])`."""
    text = _text(arguments[0], "trim")
    meter.text(len(text))
    return text.strip(GO_SPACE if len(arguments) == 1 else _text(arguments[1], "trim"))


def trim_prefix(arguments: Sequence[Operand], _meter: Meter) -> Operand:
    """`trimPrefix(text[, prefix])`; without a prefix one space."""
    return _text(arguments[0], "trimPrefix").removeprefix(
        " " if len(arguments) == 1 else _text(arguments[1], "trimPrefix")
    )


def trim_suffix(arguments: Sequence[Operand], _meter: Meter) -> Operand:
    """`trimSuffix(text[, suffix])`; without a suffix one space."""
    return _text(arguments[0], "trimSuffix").removesuffix(
        " " if len(arguments) == 1 else _text(arguments[1], "trimSuffix")
    )


def upper(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`upper(text)`, character by character: a sharp s stays."""
    text = _text(arguments[0], "upper")
    meter.text(len(text))
    if text.isascii():
        return text.upper()
    return "".join(letter.upper() if len(letter.upper()) == 1 else letter for letter in text)


def lower(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`lower(text)`, character by character."""
    text = _text(arguments[0], "lower")
    meter.text(len(text))
    return text.lower() if text.isascii() else "".join(letter.lower()[0] for letter in text)


def _pieces(text: str, separator: str, limit: int, meter: Meter) -> list[str]:
    """Go's SplitN: an empty separator splits into characters; at most `limit` pieces, or all if negative."""
    meter.elements(text.count(separator) + 1)
    if limit == 1:
        return [text]
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def _limit(arguments: Sequence[Operand]) -> int:
    return to_index(arguments[2]) if len(arguments) == 3 else -1


def split(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`split(text, separator[, n])`; n = 0 gives nil."""
    text, separator = _text(arguments[0], "split"), _text(arguments[1], "split")
    limit = _limit(arguments)
    return None if limit == 0 else list(_pieces(text, separator, limit, meter))


def split_after(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`splitAfter(text, separator[, n])`: the separators stay at the ends."""
    text, separator = _text(arguments[0], "splitAfter"), _text(arguments[1], "splitAfter")
    limit = _limit(arguments)
    if limit == 0:
        return None
    pieces = _pieces(text, separator, limit, meter)
    return [*(piece + separator for piece in pieces[:-1]), *pieces[-1:]]


def replace(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`replace(text, old, new[, n])`: all occurrences, or the first n."""
    text, old, new = (_text(argument, "replace") for argument in arguments[:3])
    limit = to_index(arguments[3]) if len(arguments) == 4 else -1
    found = text.count(old)
    meter.text(len(text) + (found if limit < 0 else min(found, limit)) * max(0, len(new) - len(old)))
    return text.replace(old, new, limit)


def repeat(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`repeat(text, n)`."""
    text, times = _text(arguments[0], "repeat"), to_index(arguments[1])
    if times < 0:
        raise ExpressionError(f"repeat cannot repeat {times} times")
    meter.text(len(text) * times)
    return text * times


def join(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`join(list[, glue])` of texts."""
    found = arguments[0]
    if not isinstance(found, list):
        raise ExpressionError(f"join takes a list, not {name_type(found)}")
    glue = _text(arguments[1], "join") if len(arguments) == 2 else ""
    pieces = [_text(item, "join") for item in found]
    meter.elements(len(pieces))
    meter.text(sum(len(piece) for piece in pieces) + len(glue) * len(pieces))
    return glue.join(pieces)


def index_of(arguments: Sequence[Operand], _meter: Meter) -> Operand:
    """`indexOf(text, part)`: counted in characters, where Go counts bytes; -1 if it is absent."""
    return _text(arguments[0], "indexOf").find(_text(arguments[1], "indexOf"))


def last_index_of(arguments: Sequence[Operand], _meter: Meter) -> Operand:
    """`lastIndexOf(text, part)`: counted in characters; -1 if it is absent."""
    return _text(arguments[0], "lastIndexOf").rfind(_text(arguments[1], "lastIndexOf"))


def has_prefix(arguments: Sequence[Operand], _meter: Meter) -> Operand:
    """`hasPrefix(text, prefix)`."""
    return _text(arguments[0], "hasPrefix").startswith(_text(arguments[1], "hasPrefix"))


def has_suffix(arguments: Sequence[Operand], _meter: Meter) -> Operand:
    """`hasSuffix(text, suffix)`."""
    return _text(arguments[0], "hasSuffix").endswith(_text(arguments[1], "hasSuffix"))


def to_json(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`toJSON(x)`, indented by two spaces."""
    return write_json(arguments[0], meter, indent="  ")


def from_json(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`fromJSON(text)`; numbers become floats."""
    text = _text(arguments[0], "fromJSON")
    meter.text(len(text))
    meter.spend(len(text) >> 2)
    try:
        return read_json(text)
    except ValueError as error:
        raise ExpressionError(f"fromJSON got a text that is no JSON: {error}") from None


def to_base64(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`toBase64(text)`."""
    text = _text(arguments[0], "toBase64")
    meter.text(len(text) * 4)
    return base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")


def from_base64(arguments: Sequence[Operand], meter: Meter) -> Operand:
    """`fromBase64(text)`: padding is needed, line ends are passed over, bytes that are no UTF-8 are replaced."""
    text = _text(arguments[0], "fromBase64").replace("\n", "").replace("\r", "")
    meter.text(len(text))
    try:
        return base64.b64decode(text.encode("ascii"), validate=True).decode("utf-8", "replace")
    except (binascii.Error, UnicodeEncodeError):
        raise ExpressionError("fromBase64 got a text that is no base64") from None
