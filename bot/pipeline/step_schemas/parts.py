"""Pieces that several step schemas share."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.values import Json
from bot.pipeline.schema import JsonSchema, boolean, choice, items, mapping, text

DURATION = text(
    pattern=r"(?:\d+(ns|us|µs|ms|s|m|h))+", errorMessage="is no duration; write it like 30s or 1h30m"
)
"""A duration as Go writes it; the pattern is not anchored, as in Kargo."""
INSECURE = boolean("Accept any certificate of the server.")
PROVIDER = choice(
    "azure",
    "bitbucket",
    "gitea",
    "github",
    "gitlab",
    description="The kind of git server; inferred from the host if absent.",
)
BLANK: JsonSchema = {"enum": ["", None]}
FALSE: JsonSchema = {"enum": [False, None]}
NOT_EMPTY: JsonSchema = {"minLength": 1}
OUTPUTS = items(
    mapping(
        {
            "name": text("The name of the output.", empty=False),
            "fromExpression": text("The expression that gives it, without delimiters.", empty=False),
        },
        required=("name", "fromExpression"),
    ),
    description="Values to publish as outputs.",
)
SCALAR: JsonSchema = {
    "anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}],
    "errorMessage": "must be text, a number, or true or false",
}


def path(description: str) -> JsonSchema:
    """A path below the working directory."""
    return text(description, empty=False)


def texts(description: str, *, least: int = 0) -> JsonSchema:
    """A list of texts, none of them empty."""
    return items(text(empty=False), least=least, description=description)


def at_most_one(names: Sequence[str], message: str) -> JsonSchema:
    """The combination rule that at most one of these texts is given."""
    none: Json = {"properties": {name: dict(BLANK) for name in names}}
    return {"oneOf": [none, *_single(names)], "errorMessage": message}


def exactly_one(names: Sequence[str], message: str) -> JsonSchema:
    """The combination rule that exactly one of these texts is given."""
    return {"oneOf": _single(names), "errorMessage": message}


def _single(names: Sequence[str]) -> list[Json]:
    return [
        {
            "required": [name],
            "properties": {other: dict(NOT_EMPTY if other == name else BLANK) for other in names},
        }
        for name in names
    ]


def one_key(names: Sequence[str], message: str) -> JsonSchema:
    """The combination rule that exactly one of these keys stands there, whatever its value."""
    return {"oneOf": [{"required": [name]} for name in names], "errorMessage": message}
