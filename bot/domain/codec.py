"""Values of the domain as JSON and back, for what is stored or journaled.

A dataclass becomes an object of its fields; a member of a union also carries `$` with its type's name. Marks inside
values are objects whose only key starts with `$`; a user's own object of that form is escaped. What is stored is read
again by the type that is asked for, and a field that is missing takes its default, so that old rows stay readable.
"""

from __future__ import annotations

import base64
import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from bot.domain.values import Json, Sensitive, Text, Unknown, Value

T = TypeVar("T")


class CodecError(ValueError):
    """What is stored does not fit the type that is asked for; says where."""


def encode(value: object) -> Json:
    """A domain value as JSON. Sensitive values must not get here: they raise CodecError."""
    match value:
        case None | bool() | int() | float():
            return value
        case StrEnum():
            return value.value
        case str():
            return value
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return value.isoformat()
        case Unknown() | Text() | Sensitive():
            return encode_value(value)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields: dict[str, Json] = {"$": type(value).__name__}
            for field in dataclasses.fields(value):
                item = getattr(value, field.name)
                hint = _hints(type(value))[field.name]
                fields[field.name] = encode_value(item) if _is_value(hint) else encode(item)
            return fields
        case Mapping():
            return _encode_mapping(value)
        case Sequence() | frozenset():
            items = sorted(value, key=str) if isinstance(value, frozenset) else value
            return [encode(item) for item in items]
        case _:
            raise CodecError(f"{type(value).__name__} cannot be stored")


def _encode_mapping(value: Mapping[Any, Any]) -> Json:
    if all(isinstance(key, str) for key in value):
        return {str(key): _encode_item(item) for key, item in value.items()}
    return [[encode(key), _encode_item(item)] for key, item in value.items()]


def _encode_item(item: object) -> Json:
    """An item of a mapping, whose static type is not at hand: plain JSON and marks as values, the rest by class."""
    plain = isinstance(item, (dict, list, Unknown, Text, Sensitive))
    return encode_value(typing.cast("Value", item)) if plain and not _holds_objects(item) else encode(item)


def _holds_objects(item: object) -> bool:
    match item:
        case dict():
            return any(_holds_objects(inner) for inner in item.values())
        case list():
            return any(_holds_objects(inner) for inner in item)
        case Unknown() | Text() | Sensitive():
            return False
        case _:
            return dataclasses.is_dataclass(item)


def encode_value(value: Value | Mapping[str, Value]) -> Json:
    """A value with marks as JSON. Raises CodecError for a sensitive value that is not emptied: it is never stored."""
    match value:
        case Unknown():
            return {"$unknown": [value.origin, value.sensitive]}
        case Sensitive(value=None):
            return {"$sensitive": value.name}
        case Sensitive():
            raise CodecError(f"the sensitive value {value.name} must not be stored")
        case Text():
            return {"$text": [encode_value(part) for part in value.parts]}
        case list() | tuple():
            return [encode_value(item) for item in value]
        case dict():
            plain = {key: encode_value(item) for key, item in value.items()}
            return {"$dict": plain} if len(plain) == 1 and next(iter(plain)).startswith("$") else plain
        case Mapping():
            return encode_value(dict(value))
        case _:
            return value


def decode_value(stored: Json) -> Value:
    """What `encode_value` was given."""
    match stored:
        case dict():
            return (
                _decode_mark(stored) if len(stored) == 1 else {k: decode_value(v) for k, v in stored.items()}
            )
        case list():
            return [decode_value(item) for item in stored]
        case _:
            return stored


def _decode_mark(stored: dict[str, Json]) -> Value:
    match stored:
        case {"$unknown": [str(origin), str(sensitive)]}:
            return Unknown(origin, sensitive)
        case {"$sensitive": str(name)}:
            return Sensitive(name, None)
        case {"$text": list(parts)}:
            return Text(tuple(typing.cast("str | Unknown", decode_value(part)) for part in parts))
        case {"$dict": dict(plain)}:
            return {key: decode_value(item) for key, item in plain.items()}
        case _:
            return {key: decode_value(item) for key, item in stored.items()}


def decode(kind: type[T], stored: object) -> T:
    """What `encode` was given, read as this type. Raises CodecError if it does not fit."""
    return typing.cast("T", _decode(kind, stored, kind.__name__))


def _decode(hint: Any, stored: Any, where: str) -> Any:
    if _is_value(hint):
        return decode_value(stored)
    origin = get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(get_args(hint), stored, where)
    if hasattr(hint, "__supertype__"):
        return _decode(hint.__supertype__, stored, where)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _decode_object(hint, stored, where)
    if origin is not None:
        return _decode_container(origin, get_args(hint), stored, where)
    return _decode_leaf(hint, stored, where)


def _decode_leaf(hint: Any, stored: Any, where: str) -> Any:
    if hint is datetime and isinstance(stored, str):
        return datetime.fromisoformat(stored)
    if hint is bytes and isinstance(stored, str):
        return base64.b64decode(stored)
    if hint is float and isinstance(stored, (int, float)):
        return float(stored)
    if isinstance(hint, type) and issubclass(hint, StrEnum) and isinstance(stored, str):
        return hint(stored)
    if hint is type(None) and stored is None:
        return None
    if isinstance(hint, type) and isinstance(stored, hint):
        return stored
    raise CodecError(f"{where}: {stored!r:.60} is not a {getattr(hint, '__name__', hint)}")


def _decode_container(origin: Any, args: tuple[Any, ...], stored: Any, where: str) -> Any:
    if issubclass(origin, tuple) and isinstance(stored, list):
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(_decode(args[0], item, where) for item in stored)
        return tuple(_decode(arg, item, where) for arg, item in zip(args, stored, strict=True))
    if issubclass(origin, frozenset) and isinstance(stored, list):
        return frozenset(_decode(args[0], item, where) for item in stored)
    if issubclass(origin, Mapping) and isinstance(stored, dict):
        return {_decode(args[0], k, where): _decode(args[1], v, f"{where}[{k}]") for k, v in stored.items()}
    if issubclass(origin, Mapping) and isinstance(stored, list):
        return {_decode(args[0], k, where): _decode(args[1], v, where) for k, v in stored}
    if isinstance(stored, list):
        return [_decode(args[0], item, where) for item in stored]
    raise CodecError(f"{where}: {stored!r:.60} is not a {origin.__name__}")


def _decode_union(options: tuple[Any, ...], stored: Any, where: str) -> Any:
    if stored is None and type(None) in options:
        return None
    name = stored.get("$") if isinstance(stored, dict) else None
    if isinstance(name, str):
        for option in options:
            if getattr(option, "__name__", "") == name:
                return _decode_object(option, stored, where)
    for option in options:
        if option is type(None) or (
            dataclasses.is_dataclass(option) and name is None and isinstance(stored, dict)
        ):
            continue
        try:
            return _decode(option, stored, where)
        except CodecError:
            continue
    raise CodecError(f"{where}: {stored!r:.60} fits none of {', '.join(str(o) for o in options)}")


def _decode_object(kind: Any, stored: Any, where: str) -> Any:
    if not isinstance(stored, dict):
        raise CodecError(f"{where}: {stored!r:.60} is not an object")
    hints = _hints(kind)
    given = {}
    for field in dataclasses.fields(kind):
        if field.init and field.name in stored:
            given[field.name] = _decode(hints[field.name], stored[field.name], f"{where}.{field.name}")
    try:
        return kind(**given)
    except TypeError as error:
        raise CodecError(f"{where}: {error}") from error


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The field types of a class, with JSON values of any depth as the one type `_AnyValue`."""
    return get_type_hints(kind, localns={"Value": _AnyValue, "Json": _AnyValue})


class _AnyValue:
    """Stands for the recursive aliases `Value` and `Json`, which no type hint can be resolved to."""


def _is_value(hint: Any) -> bool:
    return hint is _AnyValue
