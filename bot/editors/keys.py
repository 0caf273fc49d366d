"""Key paths as Kargo's update steps write them, and the updates that use them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.values import Json
from bot.editors.errors import EditError

_INDEX = re.compile(r"\[(-?[0-9]{1,9})\]|(-?[0-9]{1,9})|\+([0-9]{1,9})")
_SUFFIX = re.compile(r"(.+?)((?:\[-?[0-9]{1,9}\])+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Update:
    """One value to write: `key` is a dotted path (see `split_key`), `value` what shall stand there."""

    key: str
    value: Json


def split_key(key: str) -> list[str]:
    r"""The parts of a dotted key, as Kargo splits it.

    `\.` and `\:` stand for the character itself; one `:` may lead a part (it marks a map key in Kargo's syntax
    and is dropped), and so is a backslash at the very end. An empty key or part, any other escape and a colon
    inside a part raise EditError.
    """
    trimmed = key.strip()
    if not trimmed:
        raise EditError("the key is empty")
    parts: list[str] = []
    part = ""
    letters = iter(trimmed)
    for letter in letters:
        if letter == "\\":
            escaped = next(letters, "")
            if escaped not in (".", ":", ""):
                raise EditError(f"key {key!r} holds the escape '\\{escaped}'; only '\\.' and '\\:' are known")
            part += escaped
        elif letter == ".":
            parts.append(_checked(part, key))
            part = ""
        elif letter == ":":
            if part:
                raise EditError(
                    f"key {key!r} holds a ':' inside a part; write '\\:' for the character itself"
                )
        else:
            part += letter
    parts.append(_checked(part, key))
    return parts


def _checked(part: str, key: str) -> str:
    if not part:
        raise EditError(f"key {key!r} has an empty part")
    return part


def parse_index(part: str) -> int | None:
    """The list index that a part names, as `0` or `[0]`; None if it is no index. `-1` is an index too."""
    found = _INDEX.fullmatch(part)
    if found is None:
        return None
    return int(found[1] or found[2] or found[3])


def split_suffix(part: str) -> list[str]:
    """`tags[0][1]` as `tags`, `[0]`, `[1]`; a part without such an ending is returned alone."""
    found = _SUFFIX.fullmatch(part)
    if found is None:
        return [part]
    return [found[1], *re.findall(r"\[-?[0-9]+\]", found[2])]


def join_key(parts: Sequence[str | int]) -> str:
    """The dotted key that `split_key` would read as these parts; for messages and reports."""
    return ".".join(str(part).replace(".", "\\.").replace(":", "\\:") for part in parts)


def is_scalar(value: Json) -> bool:
    """Whether a value is no list and no mapping."""
    return not isinstance(value, list | dict)


def same_value(left: Json, right: Json) -> bool:
    """Whether two values are equal as JSON values: 1 is 1.0, but true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_value(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_value, left, right))
    return left == right
