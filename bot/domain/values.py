"""Values that travel through expressions, templates and files, some of them not known yet.

A plain JSON value is itself. Three marks stand for what is not plain: `Unknown` (not known before a later step
has run), `Sensitive` (known, but never to be shown or committed) and `Text` (a string with holes).
The rules by which marks travel are those of the review gate (unknown values, propagation).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A plain JSON value; object keys are strings."""

Value: TypeAlias = (
    "bool | int | float | str | list[Value] | dict[str, Value] | Unknown | Sensitive | Text | None"
)
"""A JSON value that may hold marks anywhere inside."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that exists only later.

    `origin` is what a person reads, without brackets: `known after apply: lambda_url`.
    `sensitive` names the secret that it will hold, or is empty.
    """

    origin: str
    sensitive: str = ""

    def __str__(self) -> str:
        return f"<{self.origin}>"


@dataclass(frozen=True, slots=True)
class Sensitive:
    """A known value that may flow into `env`, headers and bodies, but into no committed file or message."""

    name: str
    value: Json

    def __str__(self) -> str:
        return f"<sensitive: {self.name}>"


@dataclass(frozen=True, slots=True)
class Text:
    """A string of which at least one part is a mark; adjacent plain parts are joined."""

    parts: tuple[str | Unknown | Sensitive, ...]

    def __str__(self) -> str:
        return "".join(str(part) for part in self.parts)


def is_tainted(value: Value) -> bool:
    """Whether an `Unknown` sits anywhere inside."""
    match value:
        case Unknown():
            return True
        case Text(parts=parts):
            return any(isinstance(part, Unknown) for part in parts)
        case list():
            return any(is_tainted(item) for item in value)
        case dict():
            return any(is_tainted(item) for item in value.values())
        case _:
            return False


def find_sensitive(value: Value) -> frozenset[str]:
    """The names of all secrets that a value holds, known or not."""
    match value:
        case Sensitive(name=name):
            return frozenset({name})
        case Unknown(sensitive=name):
            return frozenset({name}) if name else frozenset()
        case Text(parts=parts):
            return frozenset().union(*(find_sensitive(part) for part in parts))
        case list():
            return frozenset().union(*(find_sensitive(item) for item in value))
        case dict():
            return frozenset().union(*(find_sensitive(item) for item in value.values()))
        case _:
            return frozenset()


def reveal(value: Value) -> Json:
    """The plain value with sensitive marks opened, for use in an environment variable or a request.

    Raises ValueError if anything is unknown: what is unknown never reaches the world.
    """
    match value:
        case Unknown():
            raise ValueError(f"a value is not known yet: {value}")
        case Sensitive(value=inner):
            return inner
        case Text(parts=parts):
            return "".join(str(reveal(part)) for part in parts)
        case list():
            return [reveal(item) for item in value]
        case dict():
            return {key: reveal(item) for key, item in value.items()}
        case _:
            return value


def empty_secrets(value: Value) -> Value:
    """The value as it may be stored: of every secret only the name is left."""
    match value:
        case Sensitive(name=name):
            return Sensitive(name, None)
        case Text(parts=parts):
            return Text(tuple(Sensitive(p.name, None) if isinstance(p, Sensitive) else p for p in parts))
        case list():
            return [empty_secrets(item) for item in value]
        case dict():
            return {key: empty_secrets(item) for key, item in value.items()}
        case _:
            return value


def has_empty_secret(value: Value) -> bool:
    """Whether it holds a secret of which only the name was kept, so that it must be read anew to be used."""
    match value:
        case Sensitive(value=inner):
            return inner is None
        case Text(parts=parts):
            return any(isinstance(part, Sensitive) and part.value is None for part in parts)
        case list():
            return any(has_empty_secret(item) for item in value)
        case dict():
            return any(has_empty_secret(item) for item in value.values())
        case _:
            return False


def show(value: Value) -> Json:
    """The value as a person may see it: every mark replaced by its bracketed text."""
    match value:
        case Unknown() | Sensitive() | Text():
            return str(value)
        case list():
            return [show(item) for item in value]
        case dict():
            return {key: show(item) for key, item in value.items()}
        case _:
            return value


def as_value(plain: Json) -> Value:
    """The same JSON value, where a value with marks may stand too."""
    match plain:
        case list():
            return [as_value(item) for item in plain]
        case dict():
            return {key: as_value(item) for key, item in plain.items()}
        case _:
            return plain


def json_texts(value: Json) -> Iterator[str]:
    """Every text in a plain value, keys of objects apart."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from json_texts(item)
        case dict():
            for item in value.values():
                yield from json_texts(item)
        case _:
            return
