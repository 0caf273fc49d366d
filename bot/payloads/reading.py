"""Foreign JSON, read field by field: every value is checked where it is taken, and a wrong one names its path.

Used for webhook bodies and for the answers of HTTP APIs, so that raw dictionaries end at the edge.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.domain.values import Json

_LARGEST = 2**63 - 1
"""Ids and numbers end up in 64-bit columns."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""Characters that JSON can spell but that no database column and no UTF-8 text can hold."""


class PayloadProblem(ValueError):
    """A body that is not what its sender documents; `path` is the dotted place in it."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


class UnsupportedEventError(PayloadProblem):
    """A well-formed event of a kind that tells nothing about new versions; it is noted and passed over."""

    def __init__(self, message: str) -> None:
        super().__init__("", message)


@dataclass(frozen=True, slots=True)
class Node:
    """One place in a JSON document; missing and null are the same, since senders use both for "none"."""

    value: object
    path: str = ""
    problem: Callable[[str, str], Exception] = PayloadProblem
    """Makes the error that is raised for a wrong value, from its path and a message."""

    def fail(self, message: str, *keys: str) -> Exception:
        """The error that says this about this place, or about a place below it."""
        return self.problem(".".join((self.path, *keys)).lstrip("."), message)

    def find(self, *keys: str) -> Node | None:
        """What stands under these keys, None if any of them is missing or null.

        Raises the problem if something on the way is not an object.
        """
        node = self
        for key in keys:
            if not isinstance(node.value, dict):
                raise node.fail(f"an object was expected, {_kind(node.value)} is there")
            value = node.value.get(key)
            if value is None:
                return None
            node = Node(value, f"{node.path}.{key}" if node.path else key, self.problem)
        return node

    def at(self, *keys: str) -> Node:
        """What stands under these keys; raises the problem if it is missing or null."""
        found = self.find(*keys)
        if found is None:
            raise self.fail("is missing", *keys)
        return found

    def has(self, *keys: str) -> bool:
        """Whether something other than null stands under these keys."""
        return self.find(*keys) is not None

    def text(self, *keys: str, default: str | None = None) -> str:
        """A string; characters that cannot be stored are replaced. Without a default it must be there."""
        found = self.find(*keys) if default is not None else self.at(*keys)
        if found is None:
            return default or ""
        if not isinstance(found.value, str):
            raise found.fail(f"a string was expected, {_kind(found.value)} is there")
        return _UNSTORABLE.sub("\ufffd", found.value)

    def number(self, *keys: str, default: int | None = None) -> int:
        """A whole number within 64 bits, not negative; without a default it must be there."""
        found = self.find(*keys) if default is not None else self.at(*keys)
        if found is None:
            return default or 0
        if not isinstance(found.value, int) or isinstance(found.value, bool):
            raise found.fail(f"a whole number was expected, {_kind(found.value)} is there")
        if not 0 <= found.value <= _LARGEST:
            raise found.fail("the number is out of range")
        return found.value

    def boolean(self, *keys: str, default: bool = False) -> bool:
        """True or false, the default if it is missing."""
        found = self.find(*keys)
        if found is None:
            return default
        if not isinstance(found.value, bool):
            raise found.fail(f"true or false was expected, {_kind(found.value)} is there")
        return found.value

    def time(self, *keys: str) -> datetime:
        """An RFC 3339 time, in UTC; raises the problem if it is missing."""
        text = self.text(*keys)
        try:
            return parse_time(text)
        except ValueError as error:
            raise self.fail(f"{text[:40]!r} is no RFC 3339 time", *keys) from error

    def find_time(self, *keys: str) -> datetime | None:
        """An RFC 3339 time, None if it is missing or empty."""
        found = self.find(*keys)
        if found is None or found.value == "":
            return None
        return self.time(*keys)

    def items(self, *keys: str) -> Iterator[Node]:
        """The entries of a list; a missing list has none."""
        found = self.find(*keys)
        if found is None:
            return
        if not isinstance(found.value, list):
            raise found.fail(f"a list was expected, {_kind(found.value)} is there")
        for index, value in enumerate(found.value):
            yield Node(value, f"{found.path}[{index}]", self.problem)

    def texts(self, *keys: str) -> dict[str, str]:
        """An object of strings, such as labels; entries that are no strings are left out."""
        found = self.find(*keys)
        if found is None:
            return {}
        if not isinstance(found.value, dict):
            raise found.fail(f"an object was expected, {_kind(found.value)} is there")
        return {
            _UNSTORABLE.sub("\ufffd", key): _UNSTORABLE.sub("\ufffd", value)
            for key, value in found.value.items()
            if isinstance(value, str)
        }


def read_json(body: bytes | str, problem: Callable[[str, str], Exception] = PayloadProblem) -> Node:
    """The document that a body holds; `problem` makes the error, from path and message, for all that is read of it.

    It is raised for anything that is no JSON, is nested too deeply to be read, or holds numbers of
    absurd length.
    """
    try:
        return Node(json.loads(body, parse_constant=_refuse_constant), "", problem)
    except RecursionError as error:
        raise problem("", "the JSON is nested too deeply") from error
    except ValueError as error:
        raise problem("", f"the body is no JSON: {str(error)[:100]}") from error


def to_json(node: Node) -> Json:
    """The plain value of a document that was read by `read_json`; nothing in it is checked any further."""
    value = node.value
    if isinstance(value, dict):
        return {key: to_json(Node(item)) for key, item in value.items()}
    if isinstance(value, list):
        return [to_json(Node(item)) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise node.fail(f"{_kind(value)} is no JSON value")


def parse_time(text: str) -> datetime:
    """An RFC 3339 time in UTC; fractions finer than a microsecond are cut. Raises ValueError."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text[:40]!r} is no RFC 3339 time")
    fraction = (match[2] or "")[:7].ljust(7, "0") if match[2] else ""
    zone = "+00:00" if match[3] in {"Z", "z"} else match[3]
    try:
        return datetime.fromisoformat(f"{match[1]}{fraction}{zone}".replace("t", "T")).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text[:40]!r} is out of range") from error


_TIME = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON value")


def _kind(value: object) -> str:
    names = {bool: "a truth value", int: "a number", float: "a number", str: "a string", list: "a list"}
    return "null" if value is None else names.get(type(value), "an object")
