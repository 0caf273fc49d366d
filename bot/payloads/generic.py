"""A request to a generic receiver, and what its actions choose (Kargo's "Generic Webhook Receiver").

The request is kept whole, in an envelope of our own, because `whenExpression` and the target's selectors are evaluated
when the delivery is worked on: `{"method": "", "url": "", "headers": [["name", "value"]], "body": "text"}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from bot.domain.model import LabelRequirement
from bot.domain.receiving import ActionFailed, Notice, TargetsChosen
from bot.domain.values import Json
from bot.expressions.errors import ExpressionError
from bot.expressions.functions import URL_FUNCTIONS
from bot.expressions.operands import Function, Operand, Struct
from bot.expressions.templates import Scope, evaluate_bool, evaluate_criteria, evaluate_text, has_expression
from bot.payloads.reading import Node, PayloadProblem, read_json, to_json

PRIVATE_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Headers that carry credentials. They are not kept, so that none lies in the database: expressions find them empty."""


def write_envelope(method: str, url: str, headers: Iterable[tuple[str, str]], body: bytes) -> bytes:
    """The request as it is stored; what is no UTF-8 is replaced, as Go's reader of JSON does."""
    kept = [[name, value] for name, value in headers if name.lower() not in PRIVATE_HEADERS]
    text = body.decode("utf-8", "replace")
    return json.dumps({"method": method, "url": url, "headers": kept, "body": text}).encode()


def parse_generic(event: str, root: Node, config: Mapping[str, Json]) -> tuple[Notice, ...]:  # noqa: ARG001
    """What the actions choose whose condition holds. Raises PayloadProblem if the request's body is no JSON."""
    names: dict[str, Operand] = {"request": _request(root)}
    found: list[Notice] = []
    actions = config.get("actions")
    for number, action in enumerate(actions if isinstance(actions, list) else ()):
        if not isinstance(action, dict):
            continue
        try:
            found += _act(action, names)
        except (ExpressionError, ValueError) as error:
            found.append(ActionFailed(f"actions[{number}]: {error}"))
    return tuple(found)


def _request(root: Node) -> Struct:
    url = root.text("url", default="")
    fields: dict[str, Operand] = {
        "body": _read_body(root),
        "method": root.text("method", default=""),
        "url": url,
    }
    headers = _Named(tuple((name.lower(), value) for name, value in _pairs(root)), ignore_case=True)
    params = _Named(tuple(parse_qsl(url.partition("?")[2], keep_blank_values=True)))
    methods = {"header": headers.first, "headers": headers.all, "params": params.first}
    return Struct("Request", fields, fields, methods)


def _read_body(root: Node) -> Json:
    body = root.text("body", default="")
    try:
        return to_json(read_json(body)) if body else None
    except RecursionError as error:
        raise PayloadProblem("", "the JSON is nested too deeply") from error


def _pairs(root: Node) -> Iterator[tuple[str, str]]:
    for item in root.items("headers"):
        pair = tuple(item.items())
        if len(pair) != 2:
            raise item.fail("a name and a value were expected")
        yield pair[0].text(), pair[1].text()


@dataclass(frozen=True, slots=True)
class _Named:
    """Headers, or parameters of the query, as functions of the expression language; a missing one is empty."""

    pairs: tuple[tuple[str, str], ...]
    ignore_case: bool = False

    def first(self, arguments: Sequence[Operand]) -> Operand:
        return next(iter(self._find(arguments)), "")

    def all(self, arguments: Sequence[Operand]) -> Operand:
        return list(self._find(arguments))

    def _find(self, arguments: Sequence[Operand]) -> Iterator[str]:
        if len(arguments) != 1 or not isinstance(arguments[0], str):
            raise ExpressionError("one name is expected, as a text")
        wanted = arguments[0].lower() if self.ignore_case else arguments[0]
        return (value for name, value in self.pairs if name == wanted)


# -- Actions -------------------------------------------------------------------------------------------------

_FUNCTIONS: Mapping[str, Function] = URL_FUNCTIONS


def _act(action: Mapping[str, Json], names: Mapping[str, Operand]) -> list[Notice]:
    given, scope = _mapping_of(action, "parameters"), Scope(names, _FUNCTIONS)
    params = {name: evaluate_text(value, scope) for name, value in given.items() if isinstance(value, str)}
    within = Scope({**names, "params": params}, _FUNCTIONS)
    if not _holds(_text_of(action, "whenExpression"), within):
        return []
    targets = action.get("targetSelectionCriteria")
    return [
        _choose(target, within)
        for target in (targets if isinstance(targets, list) else ())
        if isinstance(target, dict)
    ]


def _holds(condition: str, scope: Scope) -> bool:
    """An empty condition always holds; Kargo's has no delimiters, and with them it means the same."""
    if not condition.strip():
        return True
    asked = evaluate_bool if has_expression(condition) else evaluate_criteria
    return asked(condition, scope) is True


def _choose(target: Mapping[str, Json], scope: Scope) -> TargetsChosen:
    labels = _mapping_of(target, "labelSelector")
    matched = _mapping_of(labels, "matchLabels")
    return TargetsChosen(
        kind=_text_of(target, "kind"),
        name=_evaluate(_text_of(target, "name"), scope, "name"),
        match_labels={
            key: _evaluate(value, scope, f"matchLabels.{key}")
            for key, value in matched.items()
            if isinstance(value, str)
        },
        requirements=tuple(_requirement(item, scope) for item in _mappings_of(labels, "matchExpressions")),
        subscribed=tuple(
            _index(item, scope) for item in _mappings_of(_mapping_of(target, "indexSelector"), "matchIndices")
        ),
    )


def _requirement(item: Mapping[str, Json], scope: Scope) -> LabelRequirement:
    values = item.get("values")
    return LabelRequirement(
        _text_of(item, "key"),
        _text_of(item, "operator"),
        tuple(
            _evaluate(value, scope, "matchExpressions")
            for value in (values if isinstance(values, list) else ())
            if isinstance(value, str)
        ),
    )


def _index(item: Mapping[str, Json], scope: Scope) -> tuple[str, bool]:
    key, operator = _text_of(item, "key"), _text_of(item, "operator")
    if key != "subscribedURLs":
        raise ExpressionError(f"Warehouses have no index {key!r}; it is subscribedURLs")
    # Kargo's names; older versions of it wrote them without the last letter.
    if operator.removesuffix("s") not in {"Equal", "NotEqual"}:
        raise ExpressionError(f"{operator!r} is neither Equals nor NotEquals")
    return _evaluate(_text_of(item, "value"), scope, "matchIndices"), operator.startswith("Equal")


def _evaluate(text: str, scope: Scope, where: str) -> str:
    value = evaluate_text(text, scope)
    if not isinstance(value, str):
        raise ExpressionError(f"{where} gives no text; write quote(...) around what looks like a number")
    return value


def _text_of(given: Mapping[str, Json], key: str) -> str:
    value = given.get(key)
    return value if isinstance(value, str) else ""


def _mapping_of(given: Mapping[str, Json], key: str) -> Mapping[str, Json]:
    value = given.get(key)
    return value if isinstance(value, dict) else {}


def _mappings_of(given: Mapping[str, Json], key: str) -> list[Mapping[str, Json]]:
    value = given.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
