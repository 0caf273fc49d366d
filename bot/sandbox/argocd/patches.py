"""Changes of an Application: merge patches (RFC 7386), JSON patches (RFC 6902), and whether the result makes sense."""

from __future__ import annotations

import copy
import json
from collections.abc import Container
from typing import Any

from bot.sandbox.argocd.errors import ApiError, Code


def apply_patch(document: dict[str, Any], patch: str, kind: str) -> dict[str, Any]:
    """A patched copy; INVALID_ARGUMENT when the patch is malformed or does not fit."""
    try:
        content = json.loads(patch)
    except ValueError as error:
        raise ApiError(Code.INVALID_ARGUMENT, f"error unmarshaling the patch: {error}") from error
    if kind == "merge":
        merged = _merge(copy.deepcopy(document), content)
    elif kind in ("json", ""):
        merged = _apply_operations(copy.deepcopy(document), content)
    else:
        raise ApiError(Code.INVALID_ARGUMENT, f"Patch type '{kind}' is not supported")
    if not isinstance(merged, dict):
        raise ApiError(Code.INVALID_ARGUMENT, "the patch does not leave an object")
    return merged


def find_spec_problem(spec: object, projects: Container[str]) -> str:
    """What is wrong with an Application's spec, or nothing."""
    if not isinstance(spec, dict):
        return "spec must be an object"
    sources = spec.get("sources") or [spec.get("source")]
    if not isinstance(sources, list):
        return "spec.sources must be a list"
    for source in sources:
        if not isinstance(source, dict) or not isinstance(source.get("repoURL"), str):
            return "spec.source.repoURL and either spec.source.path or spec.source.chart are required"
    if not isinstance(spec.get("destination"), dict):
        return "spec.destination is required"
    if spec.get("project") not in projects:
        return f"application references project {spec.get('project')} which does not exist"
    return ""


def _merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = target if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merge(result.get(key), value)
    return result


def _apply_operations(document: Any, operations: Any) -> Any:
    if not isinstance(operations, list):
        raise ApiError(Code.INVALID_ARGUMENT, "a JSON patch must be a list of operations")
    for operation in operations:
        try:
            document = _apply_operation(document, operation)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            shown = json.dumps(operation)[:200]
            raise ApiError(
                Code.INVALID_ARGUMENT, f"the patch operation {shown} does not fit: {error}"
            ) from error
    return document


def _apply_operation(document: Any, operation: Any) -> Any:
    kind, path = operation["op"], _pointer(operation["path"])
    match kind:
        case "add" | "replace":
            return _put(document, path, operation["value"], must_exist=kind == "replace")
        case "remove":
            _take(document, path)
        case "test":
            if _get(document, path) != operation["value"]:
                raise ValueError("the tested value is another")
        case "copy":
            return _put(
                document, path, copy.deepcopy(_get(document, _pointer(operation["from"]))), must_exist=False
            )
        case "move":
            return _put(document, path, _take(document, _pointer(operation["from"])), must_exist=False)
        case _:
            raise ValueError(f"unknown operation {kind}")
    return document


def _pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise ValueError(f"{text!r} is no JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _get(document: Any, path: list[str]) -> Any:
    for key in path:
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


def _put(document: Any, path: list[str], value: Any, *, must_exist: bool) -> Any:
    if not path:
        return value
    parent, key = _get(document, path[:-1]), path[-1]
    if must_exist:
        _get(parent, [key])
    if not isinstance(parent, list):
        parent[key] = value
    elif must_exist:
        parent[int(key)] = value
    else:
        index = len(parent) if key == "-" else int(key)
        if index > len(parent):
            raise IndexError("the list is shorter")
        parent.insert(index, value)
    return document


def _take(document: Any, path: list[str]) -> Any:
    parent, key = _get(document, path[:-1]), path[-1]
    return parent.pop(int(key)) if isinstance(parent, list) else parent.pop(key)
