"""Words to write JSON Schema tables with, and the check of a value against such a table.

The tables serve three ends: they admit resources, they check step configurations, and editors get them as JSON
Schema. Only the keywords below are used. A value that holds an expression is not known before the step runs; it
satisfies everything, and whatever depends on it is checked only as far as it is known.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from email.utils import parseaddr
from itertools import islice
from typing import TypeAlias
from urllib.parse import urlsplit

from bot.domain.problems import Severity
from bot.domain.regex import compile_regex
from bot.domain.values import Json
from bot.pipeline.reader import Path

JsonSchema: TypeAlias = "dict[str, Json]"
"""A JSON Schema of draft 2020-12; `errorMessage` says in words what a combination or pattern asks for."""

_LONGEST_WORD = 60
_MOST_WORDS = 200
_MOST_UNKNOWN = 20
DELIMITERS = ("${{", "${%")
"""What begins an expression in a text."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong at a path inside a value; `is_excess` tells that there is too much to look at it all."""

    path: Path
    message: str
    severity: Severity = Severity.ERROR
    is_excess: bool = False


def show_path(path: Path) -> str:
    """A path as people write it: `spec.vars[0].name`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the closest known word, or nothing if none is close."""
    words = {item.lower(): item for item in islice(known, _MOST_WORDS + 1)}
    # A huge or binary key is no slip of the pen, and comparing with very many words would take long.
    if len(word) > _LONGEST_WORD or len(words) > _MOST_WORDS:
        return ""
    found = difflib.get_close_matches(word.lower(), words, n=1, cutoff=0.65)
    return f"; did you mean {words[found[0]]!r}?" if found else ""


def listed(words: Iterable[object]) -> str:
    """Values as a sentence lists them."""
    return ", ".join(str(word) for word in words)


def shown(value: Json) -> str:
    """A value as a message quotes it, cut if it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


# -- Words ----------------------------------------------------------------------------------------------------


def mapping(
    properties: Mapping[str, JsonSchema],
    *,
    required: Iterable[str] = (),
    strict: bool = True,
    rule: JsonSchema | None = None,
) -> JsonSchema:
    """An object with these keys; `strict` refuses others, `rule` says how keys go together."""
    schema: JsonSchema = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = list(required)
    if strict:
        schema["additionalProperties"] = False
    return {**schema, **(rule or {})}


def anything(description: str = "") -> JsonSchema:
    """Any value at all."""
    return {"description": description} if description else {}


def free_mapping(values: JsonSchema | None = None, **more: Json) -> JsonSchema:
    """An object with keys of the author's choosing."""
    return {"type": "object", "additionalProperties": True if values is None else values, **more}


def text(description: str = "", *, empty: bool = True, **more: Json) -> JsonSchema:
    """A text; `empty=False` asks for at least one character."""
    schema: JsonSchema = {"type": "string"}
    if description:
        schema["description"] = description
    if not empty:
        schema["minLength"] = 1
    return {**schema, **more}


def choice(*values: str, description: str = "", **more: Json) -> JsonSchema:
    """One of these texts."""
    return {**text(description), "enum": list(values), **more}


def boolean(description: str = "", **more: Json) -> JsonSchema:
    """True or false."""
    return {"type": "boolean", **({"description": description} if description else {}), **more}


def integer(description: str = "", **more: Json) -> JsonSchema:
    """A whole number."""
    return {"type": "integer", **({"description": description} if description else {}), **more}


def items(
    each: JsonSchema, *, least: int = 0, most: int = 1000, description: str = "", **more: Json
) -> JsonSchema:
    """A list of values that are all alike; nobody needs more than `most`, and no machine shall choke on them."""
    schema: JsonSchema = {"type": "array", "items": each, "maxItems": most}
    if least:
        schema["minItems"] = least
    if description:
        schema["description"] = description
    return {**schema, **more}


# -- Checking ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rules:
    """How strictly to check: whether texts may hold expressions, and what an unknown key is."""

    expressions: bool
    unknown_keys: Severity


def check(
    value: Json, schema: JsonSchema, *, expressions: bool = False, unknown_keys: Severity = Severity.ERROR
) -> list[Finding]:
    """Everything that is wrong with a value, paths relative to it."""
    return _check(value, schema, (), _Rules(expressions, unknown_keys))


def holds_expression(value: Json) -> bool:
    """Whether a text anywhere in the value holds an expression."""
    match value:
        case str():
            return any(delimiter in value for delimiter in DELIMITERS)
        case list():
            return any(holds_expression(item) for item in value)
        case dict():
            return any(holds_expression(item) for item in value.values())
        case _:
            return False


def _check(value: Json, schema: JsonSchema, path: Path, rules: _Rules) -> list[Finding]:
    if rules.expressions and isinstance(value, str) and holds_expression(value):
        return []
    wrong_type = _check_type(value, schema)
    if wrong_type:
        return [Finding(path, wrong_type)]
    findings = _check_options(value, schema, path)
    match value:
        case str():
            findings += _check_text(value, schema, path)
        case dict():
            findings += _check_mapping(value, schema, path, rules)
        case list():
            findings += _check_list(value, schema, path, rules)
        case int() | float() if not isinstance(value, bool):
            findings += _check_number(value, schema, path)
    return findings + _check_combinations(value, schema, path, rules, quiet=bool(findings))


_TYPE_NAMES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "null": "empty",
}


def _type_of(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"


def _check_type(value: Json, schema: JsonSchema) -> str:
    wanted = schema.get("type")
    if not isinstance(wanted, str):
        return ""
    actual = _type_of(value)
    if actual == wanted or (wanted == "number" and actual == "integer"):
        return ""
    message = f"must be {_TYPE_NAMES[wanted]}, not {_TYPE_NAMES[actual]}"
    if wanted == "string" and actual in {"integer", "number", "boolean"}:
        return f'{message}; write it in quotes: "{shown(value)}"'
    if wanted in {"boolean", "integer", "number"} and actual == "string":
        return f"{message}; write it without quotes"
    if wanted == "array" and actual != "null":
        return f"{message}; begin the entry with '- '"
    return message


def _check_options(value: Json, schema: JsonSchema, path: Path) -> list[Finding]:
    options = schema.get("enum")
    if isinstance(options, list) and not any(_equal(value, option) for option in options):
        names = [str(option) for option in options if isinstance(option, str) and option]
        hint = nearest(value, names) if isinstance(value, str) else ""
        return [Finding(path, f"{shown(value)} is none of {listed(names)}{hint}")]
    if "const" in schema and not _equal(value, schema["const"]):
        return [Finding(path, f"must be {shown(schema['const'])}")]
    return []


def _equal(one: Json, other: Json) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _check_text(value: str, schema: JsonSchema, path: Path) -> list[Finding]:
    words = schema.get("errorMessage")
    least, most = schema.get("minLength"), schema.get("maxLength")
    if isinstance(least, int) and len(value) < least:
        return [
            Finding(path, "must not be empty" if least == 1 else f"must have at least {least} characters")
        ]
    if isinstance(most, int) and len(value) > most:
        return [Finding(path, f"has {len(value)} characters; at most {most} are allowed")]
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and not compile_regex(pattern).search(value):
        reason = words if isinstance(words, str) else f"must match {pattern}"
        return [Finding(path, f"{shown(value)} {reason}")]
    form = schema.get("format")
    if isinstance(form, str) and not _FORMATS[form](value):
        return [Finding(path, f"{shown(value)} is not {_FORMAT_NAMES[form]}")]
    return []


def _is_address(value: str) -> bool:
    local, at, domain = parseaddr(value)[1].rpartition("@")
    return bool(at and local and domain) and " " not in domain


def _is_uri(value: str) -> bool:
    try:
        return bool(urlsplit(value).scheme) and "\\" not in value and " " not in value
    except ValueError:
        return False


_FORMATS: Mapping[str, Callable[[str], bool]] = {"email": _is_address, "uri": _is_uri}
_FORMAT_NAMES = {"email": "an e-mail address", "uri": "a URL"}


def _check_number(value: float, schema: JsonSchema, path: Path) -> list[Finding]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if isinstance(least, int) and value < least:
        return [Finding(path, f"must be at least {least}")]
    if isinstance(most, int) and value > most:
        return [Finding(path, f"must be at most {most}")]
    return []


def _check_list(value: list[Json], schema: JsonSchema, path: Path, rules: _Rules) -> list[Finding]:
    most = schema.get("maxItems")
    if isinstance(most, int) and len(value) > most:
        return [Finding(path, f"has {len(value):,} entries; at most {most} are allowed", is_excess=True)]
    findings = []
    least = schema.get("minItems")
    if isinstance(least, int) and len(value) < least:
        findings.append(Finding(path, f"must have at least {least} {'entry' if least == 1 else 'entries'}"))
    if schema.get("uniqueItems") is True:
        for index, item in enumerate(value):
            if any(_equal(item, earlier) for earlier in value[:index]) and not holds_expression(item):
                findings.append(Finding((*path, index), f"{shown(item)} stands here twice"))
    name = schema.get("uniqueBy")
    if isinstance(name, str):
        findings += _check_unique_key(value, name, path)
    each = schema.get("items")
    if isinstance(each, dict):
        for index, item in enumerate(value):
            findings += _check(item, each, (*path, index), rules)
    return findings


def _check_unique_key(value: list[Json], name: str, path: Path) -> list[Finding]:
    """`uniqueBy`, our own keyword: entries may not share the text under this key."""
    findings = []
    seen: set[str] = set()
    for index, item in enumerate(value):
        found = item.get(name) if isinstance(item, dict) else None
        if isinstance(found, str) and found and not holds_expression(found):
            if found in seen:
                findings.append(Finding((*path, index, name), f"{shown(found)} is used by an earlier entry"))
            seen.add(found)
    return findings


def _check_mapping(value: dict[str, Json], schema: JsonSchema, path: Path, rules: _Rules) -> list[Finding]:
    findings = []
    properties, required = schema.get("properties"), schema.get("required")
    known = properties if isinstance(properties, dict) else {}
    for name in required if isinstance(required, list) else []:
        if name not in value:
            findings.append(Finding((*path, str(name)), f"'{name}' is missing"))
    least = schema.get("minProperties")
    if isinstance(least, int) and len(value) < least:
        findings.append(Finding(path, "must have at least one key"))
    others = schema.get("additionalProperties", True)
    unknown = 0
    for key, item in value.items():
        below = known.get(key)
        if isinstance(below, dict):
            findings += _check(item, below, (*path, key), rules)
        elif isinstance(others, dict):
            findings += _check(item, others, (*path, key), rules)
        elif others is False:
            unknown += 1
            if unknown <= _MOST_UNKNOWN:
                message = f"unknown key '{shown(key)[1:-1]}'{nearest(key, known)}"
                findings.append(Finding((*path, key), message, rules.unknown_keys))
    if unknown > _MOST_UNKNOWN:
        message = f"there are {unknown - _MOST_UNKNOWN:,} more unknown keys"
        findings.append(Finding(path, message, rules.unknown_keys))
    return findings


def _check_combinations(
    value: Json, schema: JsonSchema, path: Path, rules: _Rules, *, quiet: bool
) -> list[Finding]:
    """`oneOf` and `anyOf`; the message is the table's, since a list of failed branches helps nobody."""
    words = schema.get("errorMessage")
    one, some = schema.get("oneOf"), schema.get("anyOf")
    branches = one if isinstance(one, list) else some if isinstance(some, list) else None
    if branches is None:
        return []
    lenient = replace(rules, unknown_keys=Severity.ERROR)
    passed = sum(not _check(value, branch, path, lenient) for branch in branches if isinstance(branch, dict))
    # Where an expression stands, several branches may still be open.
    too_many = one is not None and passed > 1 and not (rules.expressions and holds_expression(value))
    if passed and not too_many:
        return []
    if quiet and not isinstance(words, str):
        return []
    return [Finding(path, words if isinstance(words, str) else "the keys do not go together")]
