"""One JSON Schema for editors, made of the tables that configurations are checked with.

A document is recognized by apiVersion and kind, a step by its `uses`. Where a step's configuration asks for a
number or a choice, a text with an expression is allowed as well. The schema is of draft 2020-12.
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.values import Json
from bot.pipeline.kinds.registry import KINDS, Kind, Scope
from bot.pipeline.kinds.tables import LABELS, NAME
from bot.pipeline.schema import JsonSchema, mapping

_EXPRESSION: JsonSchema = {"type": "string", "pattern": r"\$\{[{%]"}
_OWN_KEYWORDS = frozenset({"uniqueBy"})


def editor_schema(step_schemas: Mapping[str, JsonSchema]) -> JsonSchema:
    """The schema of any document of a configuration, with the configuration of each step kind."""
    kinds = [kind for kind in KINDS.values() if not kind.passed_over]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Lockstep configuration",
        "type": "object",
        "required": ["apiVersion", "kind", "metadata"],
        "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _metadata()},
        "allOf": [_document(kind, step_schemas) for kind in kinds],
    }


def _metadata() -> JsonSchema:
    properties = {"name": NAME, "namespace": NAME, "labels": LABELS, "annotations": LABELS}
    return mapping(properties, required=("name",), strict=False)


def _document(kind: Kind, step_schemas: Mapping[str, JsonSchema]) -> Json:
    spec = _with_steps(_standard(kind.schema), step_schemas)
    then: JsonSchema = {"properties": {"spec": spec}}
    if kind.needs_spec:
        then["required"] = ["spec"]
    if kind.scope is Scope.PROJECT:
        then["description"] = "metadata.namespace is the project; it may be left out if there is only one."
    return {
        "if": {
            "required": ["apiVersion", "kind"],
            "properties": {"apiVersion": {"const": kind.api_version}, "kind": {"const": kind.name}},
        },
        "then": then,
    }


def _with_steps(value: Json, step_schemas: Mapping[str, JsonSchema]) -> Json:
    """The schema with a choice of configurations wherever a step is described."""
    match value:
        case dict():
            result = {key: _with_steps(item, step_schemas) for key, item in value.items()}
            properties = result.get("properties")
            if isinstance(properties, dict) and {"uses", "config"} <= properties.keys():
                result["allOf"] = [_step(name, schema) for name, schema in step_schemas.items()]
            return result
        case list():
            return [_with_steps(item, step_schemas) for item in value]
        case _:
            return value


def _step(name: str, schema: JsonSchema) -> Json:
    return {
        "if": {"required": ["uses"], "properties": {"uses": {"const": name}}},
        "then": {"properties": {"config": _with_expressions(_standard(schema))}},
    }


def _standard(value: Json) -> Json:
    """The table without keywords of our own."""
    match value:
        case dict():
            return {key: _standard(item) for key, item in value.items() if key not in _OWN_KEYWORDS}
        case list():
            return [_standard(item) for item in value]
        case _:
            return value


def _with_expressions(value: Json) -> Json:
    """The schema, satisfied by a text with an expression wherever it asks for more than any text."""
    if not isinstance(value, dict):
        return value
    result: JsonSchema = dict(value)
    for key in ("properties",):
        below = value.get(key)
        if isinstance(below, dict):
            result[key] = {name: _with_expressions(item) for name, item in below.items()}
    for key in ("items", "additionalProperties"):
        result.update({key: _with_expressions(value[key])} if isinstance(value.get(key), dict) else {})
    for key in ("oneOf", "anyOf"):
        # Which branch holds is not known before an expression is, so editors do not judge combinations.
        result.pop(key, None)
    plain = value.get("type") == "string" and not {"enum", "pattern", "format"} & value.keys()
    return (
        result
        if plain or not ({"type", "enum", "const"} & value.keys())
        else {"anyOf": [result, _EXPRESSION]}
    )
