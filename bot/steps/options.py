"""Reading a step's config, option by option, with the rule that an address must be known when it is reviewed.

The config has passed the step's schema as far as it is known, so a wrong type here is a fault of the schema and is
said as such.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.values import Json, Sensitive, Text, Unknown, Value, find_sensitive, is_tainted, reveal
from bot.ports import TerminalError

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one step (or of one item of a list in it); `where` is what a message calls it."""

    where: str
    values: Mapping[str, Value]

    def has(self, name: str) -> bool:
        """Whether the option is given."""
        return self.values.get(name) is not None

    def address(self, name: str, default: str = "") -> str:
        """A text that says where or how something is done; raises TerminalError if it is unknown or secret."""
        value = self.values.get(name)
        if value is None:
            return default
        return known_text(value, f"{self.where}: {name}")

    def addresses(self, name: str) -> tuple[str, ...]:
        """A list of addresses, empty if absent."""
        return tuple(known_text(item, f"{self.where}: {name}") for item in self._list(name))

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A boolean that must be known."""
        value = self.values.get(name)
        if value is None:
            return default
        self._refuse_unknown(name, value)
        if not isinstance(value, bool):
            raise TerminalError(f"{self.where}: {name} must be true or false")
        return value

    def number(self, name: str, default: float) -> float:
        """A number that must be known."""
        value = self.values.get(name)
        if value is None:
            return default
        self._refuse_unknown(name, value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TerminalError(f"{self.where}: {name} must be a number")
        return value

    def duration(self, name: str, default: float) -> float:
        """A duration as Go writes it (`1m30s`), in seconds."""
        text = self.address(name)
        if not text:
            return default
        parts = _DURATION.findall(text)
        if not parts:
            raise TerminalError(f"{self.where}: {name} {text!r} is no duration; write it like 30s or 1h30m")
        return sum(float(number) * _UNITS[unit] for number, unit in parts)

    def value(self, name: str) -> Value:
        """Whatever is given, marks included; None if absent."""
        return self.values.get(name)

    def text(self, name: str, default: str = "") -> str | Unknown | Sensitive | Text:
        """A text that may hold marks; other scalars become text."""
        value = self.values.get(name)
        if value is None:
            return default
        return value if isinstance(value, str | Unknown | Sensitive | Text) else plain_text(value)

    def each(self, name: str) -> tuple[Options, ...]:
        """The items of a list of mappings, empty if absent."""
        items = []
        for number, item in enumerate(self._list(name)):
            if not isinstance(item, dict):
                raise TerminalError(f"{self.where}: {name}[{number}] must be a mapping")
            items.append(Options(f"{self.where}: {name}[{number}]", item))
        return tuple(items)

    def part(self, name: str) -> Options:
        """A mapping inside, empty if absent."""
        value = self.values.get(name)
        if isinstance(value, Unknown | Text):
            self._refuse_unknown(name, value)
        return Options(f"{self.where}: {name}", value if isinstance(value, dict) else {})

    def _list(self, name: str) -> list[Value]:
        value = self.values.get(name)
        if isinstance(value, Unknown):
            self._refuse_unknown(name, value)
        if value is None:
            return []
        if not isinstance(value, list):
            raise TerminalError(f"{self.where}: {name} must be a list")
        return value

    def _refuse_unknown(self, name: str, value: Value) -> None:
        if is_tainted(value):
            raise TerminalError(_unknown_address(f"{self.where}: {name}", value))


def known_text(value: Value, where: str) -> str:
    """The text of an address; raises TerminalError if it is unknown, secret or no scalar."""
    if is_tainted(value):
        raise TerminalError(_unknown_address(where, value))
    secrets = find_sensitive(value)
    if secrets:
        raise TerminalError(
            f"{where} holds the secret {', '.join(sorted(secrets))}; an address is shown to reviewers, "
            "so it must not hold a secret"
        )
    if isinstance(value, list | dict):
        raise TerminalError(f"{where} must be a text")
    return value if isinstance(value, str) else plain_text(value)


def open_value(value: Value) -> Json:
    """The plain value with its secrets opened, for the world's use.

    Raises TerminalError for a secret of which only the name is left, as in what was stored, and for what is unknown.
    """
    emptied = sorted(set(_emptied(value)))
    if emptied:
        raise TerminalError(
            f"the secret {', '.join(emptied)} is not at hand in this pass, only its name was kept; the step that reads "
            "it must run again"
        )
    try:
        return reveal(value)
    except ValueError as error:
        raise TerminalError(f"{error}; it cannot be used before it is") from error


def _emptied(value: Value) -> list[str]:
    match value:
        case Sensitive(name=name, value=None):
            return [name]
        case Text(parts=parts):
            return [name for part in parts for name in _emptied(part)]
        case list():
            return [name for item in value for name in _emptied(item)]
        case dict():
            return [name for item in value.values() for name in _emptied(item)]
        case _:
            return []


def plain_text(value: Value) -> str:
    """A scalar as Kargo's templates print it, secrets opened: JSON words for booleans, no needless fraction."""
    plain = open_value(value)
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, float) and plain.is_integer() and abs(plain) < 1e21:
        return str(int(plain))
    return str(plain)


def _unknown_address(where: str, value: Value) -> str:
    origins = ", ".join(sorted(set(_origins(value))))
    return (
        f"{where}: where this writes is known only after {origins}; a reviewer cannot see it. "
        "Use a value that is known before the merge"
    )


def _origins(value: Value) -> list[str]:
    match value:
        case Unknown(origin=origin):
            return [origin.removeprefix("known after ")]
        case Text(parts=parts):
            return [origin for part in parts for origin in _origins(part)]
        case list():
            return [origin for item in value for origin in _origins(item)]
        case dict():
            return [origin for item in value.values() for origin in _origins(item)]
        case _:
            return []
