"""Reading values and leaves from HCL."""

from __future__ import annotations

from collections import Counter

from tree_sitter import Node

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.hcl.locate import locate
from bot.editors.hcl.syntax import (
    BOM,
    HclExpression,
    Source,
    attribute,
    block_body,
    block_header,
    container,
    line,
    literal,
    named,
    object_items,
    parse_source,
)
from bot.editors.keys import split_key

HclPath = tuple[str | int, ...]
"""Attribute names, block types and labels, object keys and list indexes from the top to one value."""

_MAX_DEPTH = 100


def read_hcl_value(text: str, key: str) -> Json:
    """The value under a key, lists and objects included.

    Raises EditError if the key is missing, stands twice, or its value holds an expression that must be computed.
    """
    source = parse_source(text.removeprefix(BOM))
    return _build(source, locate(source, split_key(key)), key, 0)


def _build(source: Source, expression: Node, key: str, depth: int) -> Json:
    inner = container(expression)
    if depth > _MAX_DEPTH:
        raise EditError(f"key {key!r} is nested too deeply to be read", line(expression))
    if inner is None:
        found = literal(source, expression)
        if isinstance(found, HclExpression):
            shown = found.source.split("\n", 1)[0][:60]
            raise EditError(f"key {key!r} holds `{shown}`, which is no literal", line(expression))
        return found
    if inner.type == "tuple":
        return [_build(source, value, key, depth + 1) for value in named(inner, "expression")]
    built: dict[str, Json] = {}
    for name, at, value in object_items(source, inner):
        if name is None:
            raise EditError(f"key {key!r} holds an object with a computed key", line(at))
        built[name] = _build(source, value, key, depth + 1)
    return built


def find_hcl_leaves(text: str) -> dict[HclPath, Json | HclExpression]:
    """Every attribute value by its path, in the order of the text; expressions are leaves with their source.

    Blocks with the same type and labels are told apart by a number behind their labels, empty lists and objects
    are leaves, and a computed key stands as its source in parentheses. A text with a syntax error raises EditError.
    """
    source = parse_source(text.removeprefix(BOM))
    error = source.first_error()
    if error is not None:
        raise EditError("this is no valid HCL", line(error))
    leaves: dict[HclPath, Json | HclExpression] = {}
    waiting: list[tuple[Node, HclPath]] = [] if source.body is None else [(source.body, ())]
    while waiting:
        node, path = waiting.pop()
        if len(path) > 1000:
            raise EditError("this text is nested too deeply to be read", line(node))
        if node.type == "body":
            waiting += reversed(_body_children(source, node, path))
        elif (inner := container(node)) is not None:
            children = _value_children(source, inner, path)
            if not children:
                leaves[path] = [] if inner.type == "tuple" else {}
            waiting += reversed(children)
        else:
            leaves[path] = literal(source, node)
    return leaves


def _body_children(source: Source, body: Node, path: HclPath) -> list[tuple[Node, HclPath]]:
    headers = [tuple(block_header(source, child)) for child in named(body, "block")]
    total, seen = Counter(headers), Counter[tuple[str, ...]]()
    children: list[tuple[Node, HclPath]] = []
    for child in body.children:
        if child.type == "attribute" and (found := attribute(source, child)) is not None:
            children.append((found[1], (*path, found[0])))
        elif child.type == "block":
            header = tuple(block_header(source, child))
            number: HclPath = (seen[header],) if total[header] > 1 else ()
            seen[header] += 1
            inner = block_body(child)
            if inner is not None:
                children.append((inner, (*path, *header, *number)))
    return children


def _value_children(source: Source, node: Node, path: HclPath) -> list[tuple[Node, HclPath]]:
    if node.type == "tuple":
        return [(value, (*path, index)) for index, value in enumerate(named(node, "expression"))]
    return [
        (value, (*path, source.text(key) if name is None else name))
        for name, key, value in object_items(source, node)
    ]  # fmt: skip
