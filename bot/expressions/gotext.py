"""Values as text, the way Go writes them: encoding/json, `%v` and `%q`; and JSON read the way Go reads it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping

from bot.expressions.errors import ExpressionError
from bot.expressions.gonumbers import format_float_go, format_float_json, parse_number
from bot.expressions.gotime import (
    format_moment_json,
    format_moment_text,
    format_span,
    name_month,
    name_weekday,
)
from bot.expressions.meter import Meter
from bot.expressions.operands import (
    AnyMap,
    Method,
    Moment,
    Month,
    Operand,
    Span,
    Struct,
    Weekday,
    Zone,
    name_type,
    plain_key,
)

_NEEDS_ESCAPE = re.compile(r'["\\<>&\x00-\x1f\u2028\u2029\ud800-\udfff]')
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_TOO_DEEP = re.compile(r"[\[{]")


def write_json(value: Operand, meter: Meter, *, indent: str = "") -> str:
    """Go's `json.Marshal` (or `MarshalIndent` with an indent): keys sorted, `<`, `>` and `&` escaped.

    Raises ExpressionError for what has no JSON form: infinity, NaN, methods, maps with keys of any type.
    """
    pieces: list[str] = []
    for piece in _write(value, meter, indent, 0):
        pieces.append(piece)
        meter.text(len(piece))
    text = "".join(pieces)
    meter.text(len(text))
    return text


def _write(value: Operand, meter: Meter, indent: str, depth: int) -> Iterator[str]:
    meter.spend(1)
    meter.depth(depth)
    if isinstance(value, AnyMap):
        raise ExpressionError(
            "a map made by fromPairs or groupBy has no JSON form; take single elements of it"
        )
    if isinstance(value, Struct):
        value = value.json
    if isinstance(value, Mapping):
        keys = sorted(value)
        items = ((f"{_quote(key)}:{' ' if indent else ''}", value[key]) for key in keys)
        yield from _write_items("{}", items, meter, indent, depth)
    elif isinstance(value, list):
        yield from _write_items("[]", (("", item) for item in value), meter, indent, depth)
    else:
        yield _write_scalar(value)


def _write_items(
    brackets: str, items: Iterator[tuple[str, Operand]], meter: Meter, indent: str, depth: int
) -> Iterator[str]:
    inner = "\n" + indent * (depth + 1) if indent else ""
    is_empty = True
    yield brackets[0]
    for prefix, item in items:
        yield f"{'' if is_empty else ','}{inner}{prefix}"
        yield from _write(item, meter, indent, depth + 1)
        is_empty = False
    yield brackets[1] if is_empty or not indent else "\n" + indent * depth + brackets[1]


def _write_scalar(value: Operand) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            if not math.isfinite(value):
                raise ExpressionError(f"the number {format_float_go(value)} has no JSON form")
            return format_float_json(value)
        case str():
            return _quote(value)
        case Moment():
            return _quote(format_moment_json(value))
        case Span():
            return str(value.nanoseconds)
        case Zone():
            return "{}"
        case _:
            raise ExpressionError(f"{name_type(value)} has no JSON form")


def _quote(text: str) -> str:
    return f'"{_NEEDS_ESCAPE.sub(_escape, text)}"' if _NEEDS_ESCAPE.search(text) else f'"{text}"'


def _escape(found: re.Match[str]) -> str:
    letter = found.group()
    if letter in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[letter]
    return "\\ufffd" if "\ud800" <= letter <= "\udfff" else f"\\u{ord(letter):04x}"


def read_json(text: str) -> Operand:
    """The value of a JSON text as Go's `json.Unmarshal` gives it; numbers are floats (`parse_number`).

    Raises ValueError where the text is no JSON for Go: also for NaN, numbers out of range, extreme nesting.
    """
    if sum(1 for _ in _TOO_DEEP.finditer(text)) > 200 and _nesting(text) > 200:
        raise ValueError("the JSON text nests too deep")
    return _well_formed(json.loads(text, parse_constant=_refuse, parse_int=_number, parse_float=_number))


def _nesting(text: str) -> int:
    """An upper bound of how deep brackets nest."""
    depth = deepest = 0
    for letter in text:
        if letter in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif letter in "]}":
            depth -= 1
    return deepest


def _well_formed(value: Operand) -> Operand:
    """The value with lone surrogates replaced, as Go replaces them."""
    match value:
        case str():
            if any("\ud800" <= letter <= "\udfff" for letter in value):
                return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            return value
        case list():
            return [_well_formed(item) for item in value]
        case dict():
            return {str(_well_formed(key)): _well_formed(item) for key, item in value.items()}
        case _:
            return value


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _number(text: str) -> int | float:
    number = parse_number(text)
    if number is None:
        raise ValueError("a number is out of range")
    return number


def write_plain(value: Operand, meter: Meter) -> str:
    """Go's `fmt.Sprint(value)`: `[1 2]`, `map[a:1]`, `<nil>`."""
    text = "".join(_plain(value, meter, 0))
    meter.text(len(text))
    return text


def _plain(value: Operand, meter: Meter, depth: int) -> Iterator[str]:
    meter.spend(1)
    meter.depth(depth)
    match value:
        case str():
            meter.text(len(value))
            yield value
        case Struct():
            yield value.text or "{"
            if not value.text:
                yield from _joined(value.fields.values(), meter, depth)
                yield "}"
        case list():
            yield "["
            yield from _joined(value, meter, depth)
            yield "]"
        case dict():
            yield "map["
            for position, key in enumerate(sorted(value, key=_map_order)):
                yield f"{' ' if position else ''}{''.join(_plain(plain_key(key), meter, depth + 1))}:"
                yield from _plain(value[key], meter, depth + 1)
            yield "]"
        case _:
            yield _plain_scalar(value)


def _map_order(key: Operand) -> tuple[int, float, str]:
    """Go prints maps sorted: nil, then numbers, then texts."""
    if isinstance(key, (int, float)):
        return (1, float(key), "")
    return (0, 0, "") if key is None else (2, 0, str(plain_key(key)))


def _joined(items: Iterable[Operand], meter: Meter, depth: int) -> Iterator[str]:
    for position, item in enumerate(items):
        if position:
            yield " "
        yield from _plain(item, meter, depth + 1)


def _plain_scalar(value: Operand) -> str:
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case Month():
            return name_month(value)
        case Weekday():
            return name_weekday(value)
        case int():
            return str(int(value))
        case float():
            return format_float_go(value)
        case Moment():
            return format_moment_text(value)
        case Span():
            return format_span(value.nanoseconds)
        case Zone():
            return value.name
        case Method():
            return f"method {value.name}"
        case _:
            raise ExpressionError(f"{name_type(value)} has no text form")


def quote_text(text: str) -> str:
    """Go's `%q`: in double quotes, with what cannot be printed escaped."""
    pieces = ['"']
    for letter in text:
        if letter in _SHORT_ESCAPES:
            pieces.append(_SHORT_ESCAPES[letter])
        elif letter in "\a\v":
            pieces.append("\\a" if letter == "\a" else "\\v")
        elif letter == " " or letter.isprintable():
            pieces.append(letter)
        elif letter < "\x80":
            pieces.append(f"\\x{ord(letter):02x}")
        elif "\ud800" <= letter <= "\udfff":
            pieces.append("\\ufffd")
        elif letter <= "\uffff":
            pieces.append(f"\\u{ord(letter):04x}")
        else:
            pieces.append(f"\\U{ord(letter):08x}")
    pieces.append('"')
    return "".join(pieces)
