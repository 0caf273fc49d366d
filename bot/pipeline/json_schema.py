"""JSON Schema for editors, made of the tables that configurations are checked with.

A document is recognized by apiVersion and kind, a step by its `uses`; other kinds and steps are let through. Where a
step's configuration asks for a number, a choice or a structure, a text with an expression is allowed as well. The
schema is of draft 2020-12, and uses nothing that editors with draft 7 do not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bot.domain.values import Json
from bot.pipeline.kinds.registry import KINDS, Kind, Scope
from bot.pipeline.kinds.tables import LABELS, NAME
from bot.pipeline.schema import JsonSchema, mapping

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_EXPRESSION: JsonSchema = {"type": "string", "pattern": r"\$\{[{%]"}
_OWN_KEYWORDS = frozenset({"uniqueBy"})
_METADATA: JsonSchema = {"$ref": "#/$defs/metadata"}
_STEP: JsonSchema = {"$ref": "#/$defs/step"}

SCHEMA_KINDS: Mapping[str, Kind] = {kind.name: kind for kind in KINDS.values() if not kind.passed_over}
"""The kinds that a schema describes, by name; no two groups share one."""


def editor_schema(step_schemas: Mapping[str, JsonSchema]) -> JsonSchema:
    """The schema of any document of a configuration, with the configuration of each step kind."""
    kinds = SCHEMA_KINDS.values()
    return {
        "$schema": _DRAFT,
        "title": "Lockstep configuration",
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {
            "apiVersion": _suggested(dict.fromkeys(kind.api_version for kind in kinds)),
            "kind": _suggested(SCHEMA_KINDS),
        },
        "allOf": [_LIST, *(_document(kind) for kind in kinds)],
        "$defs": _definitions(step_schemas),
    }


def kind_schema(kind: Kind, step_schemas: Mapping[str, JsonSchema]) -> JsonSchema:
    """The schema of documents of one kind alone; every other document is refused."""
    properties = _properties(kind)
    definitions = _definitions(step_schemas)
    if properties["spec"] == _standard(kind.schema):
        definitions = {"metadata": definitions["metadata"]}
    return {
        "$schema": _DRAFT,
        "title": f"Lockstep {kind.name}",
        "type": "object",
        **_body(kind),
        "required": ["apiVersion", "kind", *_required(kind)],
        "properties": {**_identity(kind), **properties},
        "$defs": definitions,
    }


_LIST: JsonSchema = {
    "if": {
        "required": ["apiVersion", "kind"],
        "properties": {"apiVersion": {"const": "v1"}, "kind": {"const": "List"}},
    },
    "then": {"properties": {"items": {"type": "array", "items": {"$ref": "#"}}}},
}


def _suggested(words: Iterable[str]) -> JsonSchema:
    """Any text; editors offer these."""
    return {"type": "string", "anyOf": [{"enum": list(words)}, {}]}


def _document(kind: Kind) -> Json:
    return {
        "if": {"required": ["apiVersion", "kind"], "properties": _identity(kind)},
        "then": {**_body(kind), "required": _required(kind), "properties": _properties(kind)},
    }


def _identity(kind: Kind) -> JsonSchema:
    return {"apiVersion": {"const": kind.api_version}, "kind": {"const": kind.name}}


def _required(kind: Kind) -> list[Json]:
    return ["metadata", "spec"] if kind.needs_spec else ["metadata"]


def _properties(kind: Kind) -> JsonSchema:
    return {"metadata": _METADATA, "spec": _with_steps(_standard(kind.schema))}


def _body(kind: Kind) -> JsonSchema:
    if kind.scope is not Scope.PROJECT:
        return {}
    return {"description": "metadata.namespace is the project; it may be left out if there is only one."}


def _definitions(step_schemas: Mapping[str, JsonSchema]) -> JsonSchema:
    """What documents refer to: metadata, a step by its kind, and what each kind of step takes."""
    choice: JsonSchema = {
        "properties": {"uses": _suggested(step_schemas)},
        "allOf": [_step(name) for name in step_schemas],
    }
    configs: JsonSchema = {_config_name(name): _config(schema) for name, schema in step_schemas.items()}
    properties = {"name": NAME, "namespace": NAME, "labels": LABELS, "annotations": LABELS}
    return {"metadata": mapping(properties, required=("name",), strict=False), "step": choice, **configs}


def _config_name(step: str) -> str:
    return f"config-of-{step}"


def _step(name: str) -> Json:
    return {
        "if": {"required": ["uses"], "properties": {"uses": {"const": name}}},
        "then": {"properties": {"config": {"$ref": f"#/$defs/{_config_name(name)}"}}},
    }


def _with_steps(value: Json) -> Json:
    """The schema with a choice of configurations wherever a step is described."""
    match value:
        case dict():
            result = {key: _with_steps(item) for key, item in value.items()}
            properties = result.get("properties")
            if isinstance(properties, dict) and {"uses", "config"} <= properties.keys():
                result["allOf"] = [_STEP]
            return result
        case list():
            return [_with_steps(item) for item in value]
        case _:
            return value


def _standard(value: Json) -> Json:
    """The table without keywords of our own."""
    match value:
        case dict():
            return {key: _standard(item) for key, item in value.items() if key not in _OWN_KEYWORDS}
        case list():
            return [_standard(item) for item in value]
        case _:
            return value


def _config(schema: JsonSchema) -> Json:
    """The schema of a configuration: always a mapping, with expressions inside."""
    known = _standard(schema)
    return _open(known) if isinstance(known, dict) else known


def _with_expressions(value: Json) -> Json:
    """The schema, satisfied by a text with an expression wherever it asks for more than any text."""
    if not isinstance(value, dict):
        return value
    plain = value.get("type") == "string" and not {"enum", "pattern", "format"} & value.keys()
    if plain or not ({"type", "enum", "const"} & value.keys()):
        return _open(value)
    return {"anyOf": [_open(value), _EXPRESSION]}


def _open(value: JsonSchema) -> JsonSchema:
    """The schema with everything below it satisfied by expressions too."""
    # Which branch holds is not known before an expression is, so editors do not judge combinations.
    result: JsonSchema = {key: item for key, item in value.items() if key not in ("oneOf", "anyOf")}
    below = value.get("properties")
    if isinstance(below, dict):
        result["properties"] = {name: _with_expressions(item) for name, item in below.items()}
    for key in ("items", "additionalProperties"):
        if isinstance(value.get(key), dict):
            result[key] = _with_expressions(value[key])
    return result
