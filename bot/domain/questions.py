"""What `get-user-input` asks: the fields of its schema, what is wrong with an answer, and an example of one.

Of JSON Schema those keywords are carried out that describe one field; others are refused by name, since an answer that
was not held to them would be taken for one that was. A field that holds a secret is refused too: a comment is read by
everybody who may read the repository.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bot.domain.regex import compile_regex
from bot.domain.values import Json

Schema = Mapping[str, Json]

_NOTES = frozenset(
    {"$schema", "$id", "$comment", "title", "description", "examples", "deprecated", "readOnly"}
)
_TOP = _NOTES | {"type", "properties", "required", "additionalProperties"}
_LIMITS = frozenset(
    {
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
    }
)
_OF_FIELD = (
    _NOTES
    | _LIMITS
    | {"type", "enum", "const", "default", "format", "writeOnly", "pattern", "items", "uniqueItems"}
)
_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
_LONGEST_SHOWN = 60
_LARGEST = 2**63
"""Beyond it numbers are no longer what Kargo's expressions would make of them."""
FIELD_NAME = re.compile(r"[^\W\d][\w.-]{0,62}")
"""A name that can be typed before the sign of equality."""


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """What somebody said to one step of one Promotion; it is kept sealed, and its values are in no `repr`.

    `person` tells answers of one step apart: empty where the first one counts, an account id where people are counted.
    `comment` is the comment it was given by. `roles` are the approvers of the step as which the person spoke.
    """

    alias: str
    by: str
    at: datetime
    comment: str
    person: str = ""
    values: Mapping[str, Json] = field(default_factory=dict, repr=False)
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """The fields that are asked for, each with its schema, in the author's order."""

    fields: Mapping[str, Schema]
    required: tuple[str, ...]

    @property
    def titles(self) -> tuple[str, ...]:
        """What the fields are called before people."""
        return tuple(str(schema.get("title") or name) for name, schema in self.fields.items())


class QuestionError(ValueError):
    """A schema that cannot be asked; the text says what is wrong with it."""


def parse_question(schema: Schema) -> Question:
    """The question that a schema asks; raises QuestionError with everything that is wrong with it."""
    wrong = [f"the keyword {word} is not carried out" for word in sorted(set(schema) - _TOP)]
    if schema.get("type", "object") != "object":
        wrong.append("its type must be object")
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        raise QuestionError("; ".join([*wrong, "it has no properties, so nothing is asked"]))
    fields: dict[str, Schema] = {}
    for name, found in properties.items():
        if not isinstance(found, dict):
            wrong.append(f"{name} must be a schema of its own")
            continue
        fields[name] = found
        wrong += [f"{name}: {said}" for said in _wrong_in_field(found)]
        if FIELD_NAME.fullmatch(name) is None:
            wrong.append(f"{name!r} cannot be typed as NAME=VALUE: use letters, digits, _, - and .")
    required = schema.get("required", [])
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    wrong += [f"{name} is required but no property" for name in names if name not in properties]
    if wrong:
        raise QuestionError("; ".join(wrong))
    return Question(fields, tuple(names))


def _wrong_in_field(schema: Schema) -> Iterator[str]:
    for word in sorted(set(schema) - _OF_FIELD):
        yield f"the keyword {word} is not carried out"
    for name in _types(schema):
        if name not in _TYPES:
            yield f"there is no type {name}"
    if schema.get("writeOnly") is True or schema.get("format") == "password":
        yield "a secret must not be typed into a comment; keep it in a Secret and read it with secret()"
    enum = schema.get("enum", [""])
    if not isinstance(enum, list) or not enum:
        yield "enum must be a list of what may be answered"
    for word in sorted(_LIMITS & set(schema)):
        limit = schema[word]
        if isinstance(limit, bool) or not isinstance(limit, int | float):
            yield f"{word} must be a number"
        elif word == "multipleOf" and limit <= 0:
            yield "multipleOf must be greater than 0"
    items = schema.get("items", {})
    if not isinstance(items, dict):
        yield "items must be a schema"
    else:
        yield from (f"items: {said}" for said in (_wrong_in_field(items) if items else ()))
    try:
        compile_regex(str(schema.get("pattern", "")))
    except ValueError as error:
        yield f"pattern: {error}"
    if "default" in schema:
        yield from (f"its default {said}" for said in find_problems(schema, schema["default"]))


# -- answers ---------------------------------------------------------------------------------------------------------


def read_answer(
    question: Question, given: Sequence[tuple[str, str]]
) -> tuple[dict[str, Json], tuple[str, ...]]:
    """The values of an answer as it was typed, defaults filled in, and everything that is wrong with it by field."""
    values: dict[str, Json] = {}
    wrong: list[str] = []
    for name, text in given:
        schema = question.fields.get(name)
        if schema is None:
            wrong.append(f"{name} is not asked for")
            continue
        read = _read(schema, text)
        if read is None:
            wrong.append(f"{name} must be {_wanted(schema)}")
        else:
            values[name] = read.value
    for name, schema in question.fields.items():
        if name not in values and "default" in schema and name not in {n for n, _ in given}:
            values[name] = schema["default"]
    refused = {name for name, _ in given} - set(values)
    wrong += [said for said in find_wrong_values(question, values) if said.partition(" ")[0] not in refused]
    return values, tuple(wrong)


def find_wrong_values(question: Question, values: Mapping[str, Json]) -> tuple[str, ...]:
    """Why values do not answer a question, by field; empty if they do."""
    missing = [f"{name} is missing" for name in question.required if name not in values]
    excess = [f"{name} is not asked for" for name in values if name not in question.fields]
    wrong = [
        f"{name} {said}"
        for name, schema in question.fields.items()
        if name in values
        for said in find_problems(schema, values[name])
    ]
    return (*missing, *excess, *wrong)


@dataclass(frozen=True, slots=True)
class _Read:
    value: Json


def _read(schema: Schema, text: str) -> _Read | None:
    """What a person meant, by the types that the field can have; None if it is none of them.

    Without a type the field takes what its enum holds, or the text as it stands.
    """
    choices = schema.get("enum")
    if isinstance(choices, list):
        for choice in choices:
            if text == (choice if isinstance(choice, str) else json.dumps(choice)):
                return _Read(choice)
    for kind in _types(schema) or ("string",):
        if kind == "string":
            return _Read(text)
        try:
            value: Json = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, int | float) and abs(value) > _LARGEST:
            continue
        if _is(kind, value):
            return _Read(int(value) if kind == "integer" and isinstance(value, float) else value)
    return None


def _refuse(word: str) -> Json:
    raise ValueError(word)


def find_problems(schema: Schema, value: Json) -> list[str]:
    """What is wrong with one value, as the ends of sentences that begin with the field's name."""
    kinds = _types(schema)
    if kinds and not any(_is(kind, value) for kind in kinds):
        return [f"must be {_wanted(schema)}"]
    choices = schema.get("enum")
    if isinstance(choices, list) and not any(_same(value, choice) for choice in choices):
        return [f"must be one of {', '.join(_shown(choice) for choice in choices)}"]
    if "const" in schema and not _same(value, schema["const"]):
        return [f"must be {_shown(schema['const'])}"]
    if isinstance(value, str):
        return _of_text(schema, value)
    if isinstance(value, list):
        return _of_list(schema, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _of_number(schema, value)
    return []


def _of_number(schema: Schema, value: float) -> list[str]:
    found = []
    if (least := _limit(schema, "minimum")) is not None and value < least:
        found.append(f"must be at least {least:g}")
    if (most := _limit(schema, "maximum")) is not None and value > most:
        found.append(f"must be at most {most:g}")
    if (above := _limit(schema, "exclusiveMinimum")) is not None and value <= above:
        found.append(f"must be more than {above:g}")
    if (below := _limit(schema, "exclusiveMaximum")) is not None and value >= below:
        found.append(f"must be less than {below:g}")
    step = _limit(schema, "multipleOf")
    if step is not None and abs(value / step - round(value / step)) > 1e-9:
        found.append(f"must be a multiple of {step:g}")
    return found


def _of_text(schema: Schema, value: str) -> list[str]:
    found = []
    if (least := _limit(schema, "minLength")) is not None and len(value) < least:
        found.append(f"must have at least {least:g} characters")
    if (most := _limit(schema, "maxLength")) is not None and len(value) > most:
        found.append(f"must have at most {most:g} characters")
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and not compile_regex(pattern).search(value):
        found.append(f"must match {pattern}")
    return found


def _of_list(schema: Schema, value: list[Json]) -> list[str]:
    found = []
    if (least := _limit(schema, "minItems")) is not None and len(value) < least:
        found.append(f"must have at least {least:g} items")
    if (most := _limit(schema, "maxItems")) is not None and len(value) > most:
        found.append(f"must have at most {most:g} items")
    if schema.get("uniqueItems") is True and len({json.dumps(item, sort_keys=True) for item in value}) < len(
        value
    ):
        found.append("must not hold an item twice")
    items = schema.get("items")
    if isinstance(items, dict):
        each = [(number, said) for number, item in enumerate(value) for said in find_problems(items, item)]
        found += [f"has an item {number} that {said}" for number, said in each[:3]]
    return found


def _limit(schema: Schema, name: str) -> float | None:
    value = schema.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _types(schema: Schema) -> tuple[str, ...]:
    """The types that a field may have; text comes last, since every answer is one."""
    given = schema.get("type")
    named = [given] if isinstance(given, str) else [str(t) for t in given] if isinstance(given, list) else []
    return tuple(sorted(named, key=lambda name: name == "string"))


def _is(kind: str, value: Json) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return whole and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            return value is None


def _same(one: Json, other: Json) -> bool:
    """Equality of JSON: true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _wanted(schema: Schema) -> str:
    words = {
        "string": "a text",
        "integer": "a whole number",
        "number": "a number",
        "boolean": "true or false",
        "array": 'a list, written like ["a","b"]',
        "object": 'an object, written like {"a":1}',
        "null": "null",
    }
    choices = schema.get("enum")
    if isinstance(choices, list):
        return f"one of {', '.join(_shown(choice) for choice in choices)}"
    return " or ".join(words.get(kind, kind) for kind in _types(schema)) or "a text"


def _shown(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


# -- what people read ------------------------------------------------------------------------------------------------


def write_example(question: Question, alias: str) -> str:
    """A command that would answer: `/answer ask region=eu replicas=1`, with every field that must be given."""
    wanted = [name for name in question.fields if name in question.required] or list(question.fields)[:1]
    return " ".join(
        ["/answer", alias, *(f"{name}={_typed(_example(question.fields[name]))}" for name in wanted)]
    )


def describe_fields(question: Question) -> str:
    """Every field with what may be said: `region (one of eu, us)`, `replicas (a whole number, optional)`."""
    said = []
    for name, schema in question.fields.items():
        optional = f", {_shown(schema['default'])} if left out" if "default" in schema else ""
        if not optional and name not in question.required:
            optional = ", optional"
        said.append(f"{name} ({_wanted(schema)}{optional})")
    return ", ".join(said)


def describe_values(values: Mapping[str, Json]) -> str:
    """An answer in one line, each value cut if it is long."""
    return ", ".join(f"{name}={_shown(value)}" for name, value in values.items())


def _example(schema: Schema) -> Json:
    examples, choices = schema.get("examples"), schema.get("enum")
    for known in (examples, choices):
        if isinstance(known, list) and known:
            return known[0]
    for word in ("const", "default", "minimum"):
        if word in schema:
            return schema[word]
    samples: Mapping[str, Json] = {
        "integer": 1,
        "number": 1,
        "boolean": True,
        "array": ["a"],
        "object": {"a": 1},
    }
    return samples.get((_types(schema) or ("string",))[0], "TEXT")


def _typed(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if text and not any(c.isspace() for c in text) and text[0] not in "\"'":
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
