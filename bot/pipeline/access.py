"""Reading parts of a mapping that may be of any shape: what is missing or of another type is the default.

Schemas have said by then what is wrong; these readers only never fail.
"""

from __future__ import annotations

from bot.domain.model import Variable
from bot.domain.values import Json


def mapping_at(value: Json, *path: str) -> dict[str, Json]:
    """The mapping at a path of keys, or an empty one."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def list_at(value: Json, *path: str) -> list[Json]:
    """The list at a path of keys, or an empty one."""
    found = mapping_at(value, *path[:-1]).get(path[-1])
    return found if isinstance(found, list) else []


def mappings_at(value: Json, *path: str) -> list[dict[str, Json]]:
    """The entries of a list, each as a mapping (an empty one in place of anything else), so that indices hold."""
    return [item if isinstance(item, dict) else {} for item in list_at(value, *path)]


def text_at(value: Json, key: str, default: str = "") -> str:
    """The text under a key."""
    found = mapping_at(value).get(key)
    return found if isinstance(found, str) else default


def texts_at(value: Json, key: str) -> tuple[str, ...]:
    """The texts of a list under a key."""
    return tuple(item for item in list_at(value, key) if isinstance(item, str))


def bool_at(value: Json, key: str, *, default: bool = False) -> bool:
    """The truth value under a key."""
    found = mapping_at(value).get(key)
    return found if isinstance(found, bool) else default


def int_at(value: Json, key: str, default: int) -> int:
    """The whole number under a key."""
    found = mapping_at(value).get(key)
    return int(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else default


def seconds_at(value: Json, key: str, default: float) -> float:
    """The duration under a key, in seconds."""
    found = text_at(value, key)
    return parse_duration(found) if found else default


def variables_at(value: Json, key: str) -> tuple[Variable, ...]:
    """The `name`/`value` pairs of a list under a key."""
    return tuple(
        Variable(text_at(item, "name"), text_at(item, "value") if "value" in item else None)
        for item in mappings_at(value, key)
    )


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_CENTURY = 100 * 365 * 86400.0


def parse_duration(text: str) -> float:
    """Seconds of a duration such as `1h30m`, at most a century's; the form has been checked."""
    total, number = 0.0, ""
    for char in text:
        if char in _UNITS:
            total += float(number or 0) * _UNITS[char]
            number = ""
        else:
            number += char
    # Beyond that dates overflow, and nobody means it.
    return min(total, _CENTURY)
