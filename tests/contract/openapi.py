"""GitHub's published OpenAPI descriptions as a judge of requests, responses and webhooks.

They are found through `LOCKSTEP_GITHUB_OPENAPI` and `LOCKSTEP_GITHUB_WEBHOOKS`, or in `.ci/cache`, where
`.ci/fetch-openapi` puts them.
"""

import functools
import gc
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema_rs

_CACHE = Path(__file__).resolve().parents[2] / ".ci" / "cache"
_ROOT = "urn:github"
# Path parameters that may hold slashes.
_GREEDY = ("path", "ref", "branch", "basehead", "name")


class NotConforming(AssertionError):
    """A request or response is not what the description allows."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the description."""

    method: str
    template: str
    pattern: re.Pattern[str]
    spec: Mapping[str, Any]


# Without repr: asyncio's debug mode shows what a slow task holds, and all of this would be a second's work each time.
@dataclass(slots=True, repr=False)
class Contract:
    """The whole description; `seen` collects the operations that were called successfully."""

    document: dict[str, Any]
    registry: jsonschema_rs.Registry
    operations: list[Operation]
    seen: set[str] = field(default_factory=set)
    _compiled: dict[str, jsonschema_rs.Validator] = field(default_factory=dict)

    def operation(self, method: str, path: str) -> Operation:
        """The operation that a request is for; the one with the most fixed text wins."""
        found = [one for one in self.operations if one.method == method and one.pattern.fullmatch(path)]
        if not found:
            raise NotConforming(f"GitHub's description has no operation {method} {path}.")
        return max(found, key=lambda one: len(re.sub(r"\{\w+\}", "", one.template)))

    def check_request(self, method: str, path: str, body: bytes) -> Operation:
        """Hold the body of a request against its operation."""
        operation = self.operation(method, path)
        described = self._resolved(operation.spec.get("requestBody", {}))
        if body and described:
            self._check(operation, "request", described, json.loads(body))
        return operation

    def check_response(self, method: str, path: str, status: int, body: bytes) -> None:
        """Hold a response against its operation: the status has to be described, the body has to fit."""
        operation = self.operation(method, path)
        responses = operation.spec["responses"]
        if str(status) not in responses:
            # Any GET may be answered with 304 when the caller sent the ETag, whether that is described or not.
            if status < 400 and status != 304:
                raise NotConforming(f"{method} {operation.template} describes no answer {status}.")
            return
        described = self._resolved(responses[str(status)])
        if body and described.get("content"):
            self._check(operation, str(status), described, json.loads(body))
        elif body and status < 300:
            raise NotConforming(f"{method} {operation.template} {status} has a body but describes none.")
        if status < 400:
            self.seen.add(f"{method} {operation.template}")

    def _check(self, operation: Operation, which: str, described: Mapping[str, Any], value: Any) -> None:
        content = described["content"]
        media = "application/json" if "application/json" in content else next(iter(content))
        key = f"{operation.method} {operation.template} {which}"
        if key not in self._compiled:
            # References inside the schema are to the document's root, so the schema has to be rooted there too.
            schema = _rebased(content[media].get("schema", {}))
            self._compiled[key] = jsonschema_rs.Draft4Validator(
                schema, validate_formats=False, registry=self.registry
            )
        problems = [
            f"  at {'/'.join(map(str, problem.instance_path))}: {problem.message[:300]}"
            for problem in self._compiled[key].iter_errors(value)
        ]
        if problems:
            raise NotConforming(f"{key} does not conform:\n" + "\n".join(problems[:8]))

    def _resolved(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in node:
            found: Any = self.document
            for part in node["$ref"][2:].split("/"):
                found = found[part]
            node = found
        return node


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template)
    text = "".join(
        re.escape(part) if at % 2 == 0 else (".+" if part in _GREEDY else "[^/]+")
        for at, part in enumerate(parts)
    )
    return re.compile(text)


def _without_nullable(node: Any) -> None:
    """Turn OpenAPI 3.0's `nullable` into JSON Schema, in place."""
    if isinstance(node, dict):
        for value in node.values():
            _without_nullable(value)
        if node.get("nullable") is True:
            if isinstance(node.get("type"), str):
                node["type"] = [node["type"], "null"]
            if "enum" in node and None not in node["enum"]:
                node["enum"] = [*node["enum"], None]
            for key in ("oneOf", "anyOf"):
                if key in node and {"type": "null"} not in node[key]:
                    node[key] = [*node[key], {"type": "null"}]
            if "allOf" in node:
                titles = [part.get("title") for part in node["allOf"]]
                # The description says an installation's account is a user and an enterprise at once; it is one.
                if titles == ["Simple User", "Enterprise"]:
                    node["allOf"] = [{"anyOf": node["allOf"]}]
                node["anyOf"] = [{"allOf": node.pop("allOf")}, {"type": "null"}]
    elif isinstance(node, list):
        for value in node:
            _without_nullable(value)


def _rebased(node: Any) -> Any:
    """The schema with its references led to the registered document."""
    if isinstance(node, dict):
        return {
            key: _ROOT + value if key == "$ref" and isinstance(value, str) else _rebased(value)
            for key, value in node.items()
        }
    return [_rebased(item) for item in node] if isinstance(node, list) else node


def _load(variable: str, name: str) -> dict[str, Any]:
    path = Path(os.environ.get(variable) or _CACHE / name)
    if not path.exists():
        raise FileNotFoundError(
            f"GitHub's description is not at {path}: run .ci/fetch-openapi, or set {variable}."
        )
    document: dict[str, Any] = json.loads(path.read_text())
    return document


@functools.cache
def contract() -> Contract:
    """The description, read once per test run."""
    document = _load("LOCKSTEP_GITHUB_OPENAPI", "api.github.com.json")
    _without_nullable(document["components"])
    _without_nullable(document["paths"])
    operations = [
        Operation(method.upper(), template, _pattern(template), spec)
        for template, item in document["paths"].items()
        for method, spec in item.items()
        if method in ("get", "put", "post", "patch", "delete")
    ]
    root = {"components": document["components"]}
    registry = jsonschema_rs.Registry([(_ROOT, root)], draft=jsonschema_rs.Draft4)
    # A million small objects that live as long as the process would make every full collection take long.
    gc.freeze()
    return Contract(root, registry, operations)


@functools.cache
def _webhooks() -> tuple[dict[str, Any], jsonschema_rs.Registry]:
    document = _load("LOCKSTEP_GITHUB_WEBHOOKS", "webhooks.github.com.json")
    root = {"components": document["components"]}
    registry = jsonschema_rs.Registry([(_ROOT, root)], draft=jsonschema_rs.Draft202012)
    gc.freeze()
    return document["webhooks"], registry


def check_webhook(event: str, payload: dict[str, Any]) -> str:
    """Hold a webhook's body against GitHub's description of its event and action; answers the name of that."""
    webhooks, registry = _webhooks()
    name = "-".join(filter(None, (event, payload.get("action")))).replace("_", "-")
    if name not in webhooks:
        raise NotConforming(f"GitHub's description has no webhook {name}.")
    schema = webhooks[name]["post"]["requestBody"]["content"]["application/json"]["schema"]
    validator = jsonschema_rs.Draft202012Validator(
        _rebased(schema), validate_formats=False, registry=registry
    )
    problems = [
        f"  at {'/'.join(map(str, problem.instance_path))}: {problem.message[-300:]}"
        for problem in validator.iter_errors(payload)
        # The description's own list of the events that an App may have is older than the merge queue.
        if not problem.message.startswith('"merge_group" is not one of')
    ]
    if problems:
        raise NotConforming(f"webhook {name} does not conform:\n" + "\n".join(problems[:8]))
    return name
