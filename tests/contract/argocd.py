"""Argo CD's published API description as a judge of requests and responses.

`argocd-swagger.json` is Argo CD 3.6.0's (argoproj/argo-cd at 37ee009, Apache License 2.0). It requires nothing and
allows everything, so definitions that list their properties are closed here: a misspelt or invented name is a failure.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any, Final

import httpx
import jsonschema

_FILE: Final = Path(__file__).with_name("argocd-swagger.json")
_UNDESCRIBED: Final = ("/_sandbox/", "/api/webhook")


class ContractViolation(AssertionError):
    """A request or response that Argo CD's description does not allow."""


@functools.cache
def _description() -> dict[str, Any]:
    described: dict[str, Any] = json.loads(_FILE.read_text())
    for definition in described["definitions"].values():
        if definition.get("properties") and "additionalProperties" not in definition:
            definition["additionalProperties"] = False
    return described


@functools.cache
def _operations() -> list[tuple[str, re.Pattern[str], dict[str, Any]]]:
    found = []
    for path, methods in _description()["paths"].items():
        pattern = re.compile(re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(path)))
        found += [(method.upper(), pattern, operation) for method, operation in methods.items()]
    return found


def check_definition(name: str, value: object) -> None:
    """Check a value against a named definition, such as `v1alpha1Application`."""
    _check({"$ref": f"#/definitions/{name}"}, value, name)


def check_request(request: httpx.Request) -> None:
    """Check that the operation exists, that its query parameters are known, and its body."""
    if request.url.path.startswith(_UNDESCRIBED) or request.url.path == "/":
        return
    where = f"{request.method} {request.url.path}"
    operation = _find(request.method, request.url.path)
    parameters = operation.get("parameters", [])
    known = {parameter["name"] for parameter in parameters if parameter["in"] == "query"}
    if unknown := set(request.url.params) - known:
        raise ContractViolation(f"{where}: unknown query parameters {sorted(unknown)}")
    body = next((parameter["schema"] for parameter in parameters if parameter["in"] == "body"), None)
    if request.content and body is None:
        raise ContractViolation(f"{where}: this operation takes no body")
    if body is not None:
        _check(body, json.loads(request.content or b"{}"), where)


def check_response(method: str, path: str, status: int, body: bytes) -> None:
    """Check a JSON response by its status."""
    if path.startswith(_UNDESCRIBED) or path == "/":
        return
    responses = _find(method, path)["responses"]
    _check(
        responses.get(str(status), responses["default"])["schema"],
        json.loads(body),
        f"{method} {path} {status}",
    )


async def check_exchange(response: httpx.Response) -> None:
    """An httpx response hook that checks both sides of an exchange, except streams and refused content types."""
    request = response.request
    check_request(request)
    if (
        response.headers.get("content-type", "").startswith("application/json")
        and "/stream/" not in request.url.path
    ):
        check_response(request.method, request.url.path, response.status_code, await response.aread())


def _find(method: str, path: str) -> dict[str, Any]:
    for known, pattern, operation in _operations():
        if known == method and pattern.fullmatch(path):
            return operation
    raise ContractViolation(f"Argo CD has no {method} {path}")


def _check(schema: dict[str, Any], value: object, where: str) -> None:
    whole = {**schema, "definitions": _description()["definitions"]}
    validator = jsonschema.Draft4Validator(whole)
    for error in validator.iter_errors(value):
        at = "/".join(map(str, error.absolute_path))
        raise ContractViolation(f"{where}: at /{at}: {error.message}")
