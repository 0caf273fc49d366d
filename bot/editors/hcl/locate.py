"""Following a dotted key through blocks, attributes, objects and tuples of HCL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tree_sitter import Node

from bot.editors.errors import EditError, suggest
from bot.editors.hcl.syntax import (
    Source,
    attribute,
    block_body,
    block_header,
    container,
    line,
    named,
    object_items,
)
from bot.editors.keys import join_key, parse_index, split_suffix


@dataclass(slots=True)
class _Search:
    """What was found on the way: `near` are keys beside the one that was missing, deepest level first."""

    source: Source
    parts: list[str]
    near: list[str] = field(default_factory=list)
    depth: int = -1
    blocked: str = ""

    def miss(self, rest: list[str], names: list[str]) -> None:
        """Remember the names, as keys, at the deepest place at which the path ended."""
        depth = len(self.parts) - len(rest)
        prefix = self.parts[: max(depth, 0)]
        if depth > self.depth:
            self.depth, self.near = depth, []
        if depth == self.depth:
            self.near += [".".join([*map(_quoted, prefix), name]) for name in names]


def locate(source: Source, parts: list[str]) -> Node:
    """The value expression that a key leads to.

    A key names a top-level attribute, keys and indexes inside its value, or a block by its type and labels with
    an attribute in it (`resource.aws_lambda_function.app.image_uri`). Repeated blocks without labels are told
    apart by an index after their type. A key that is missing, leads to more than one place or into an item with a
    syntax error raises EditError.
    """
    _refuse_broken_top(source)
    search = _Search(source, parts)
    found = list(_in_body(search, source.body, parts)) if source.body is not None else []
    key = join_key(parts)
    if len(found) == 1:
        _refuse_broken(source, found[0], key)
        return found[0]
    if found:
        lines = ", ".join(str(line(each)) for each in found)
        raise EditError(f"key {key!r} stands more than once, at lines {lines}", line(found[1]))
    if search.blocked:
        raise EditError(f"key {key!r} was not found: {search.blocked}")
    error = source.first_error()
    if error is not None:
        raise EditError(f"key {key!r} was not found, and there is a syntax error here", line(error))
    count = source.line_count()
    raise EditError(
        f"key {key!r} was not found in {count} line{'' if count == 1 else 's'}{suggest(key, search.near)}"
    )


def chain(node: Node) -> list[Node]:
    """The node and its ancestors up to, but without, the root; the last is the body, the last but one top-level."""
    nodes = [node]
    while (parent := nodes[-1].parent) is not None and parent.parent is not None:
        nodes.append(parent)
    return nodes


def _refuse_broken_top(source: Source) -> None:
    """Raise EditError if the text is broken between its top-level items, so that none of them can be trusted."""
    for parent in (source.root, source.body):
        for child in parent.children if parent is not None else ():
            if child.type == "ERROR" or child.is_missing:
                raise EditError(
                    "there is a syntax error here, so nothing in this text is edited", line(child)
                )


def _refuse_broken(source: Source, expression: Node, key: str) -> None:
    """Refuse to edit inside a top-level item that has a syntax error anywhere."""
    top = chain(expression)[-2] if source.root.has_error else None
    error = source.first_error(top) if top is not None and top.has_error else None
    if error is not None:
        raise EditError(
            f"key {key!r} stands in a block with a syntax error, so it is not edited", line(error)
        )


def _in_body(search: _Search, body: Node | None, rest: list[str]) -> Iterator[Node]:
    if body is None or not rest:
        return
    source, names = search.source, []
    blocks: dict[tuple[str, ...], list[Node]] = {}
    missed = True
    for child in body.children:
        if child.type == "attribute":
            found = attribute(source, child)
            if found is None:
                continue
            names.append(_quoted(found[0]))
            name, *indexes = split_suffix(rest[0])
            if found[0] == name:
                missed = False
                yield from _in_value(search, found[1], indexes + rest[1:])
        elif child.type == "block":
            header = tuple(block_header(source, child))
            names.append(join_key(list(header)))
            if list(header) == rest[: len(header)]:
                blocks.setdefault(header, []).append(child)
    for header, same in blocks.items():
        missed = False
        if len(header) == len(rest):
            search.blocked = f"it names the block at line {line(same[0])}, not an attribute in it"
        yield from _in_blocks(search, same, rest[len(header) :])
    if missed:
        search.miss(rest, names)


def _in_blocks(search: _Search, blocks: list[Node], rest: list[str]) -> Iterator[Node]:
    position = parse_index(rest[0]) if rest else None
    if position is not None and len(rest) > 1:
        if 0 <= position < len(blocks):
            yield from _in_body(search, block_body(blocks[position]), rest[1:])
        else:
            search.miss(rest, [str(number) for number in range(len(blocks))])
        return
    for block in blocks:
        if block_body(block) is None:
            search.miss(rest, [])
        yield from _in_body(search, block_body(block), rest)


def _in_value(search: _Search, expression: Node, rest: list[str]) -> Iterator[Node]:
    if not rest:
        yield expression
        return
    inner = container(expression)
    if inner is None:
        shown = search.source.text(expression).split("\n", 1)[0][:60]
        reached = join_key(search.parts[: -len(rest)])
        search.blocked = (
            f"{reached!r} at line {line(expression)} is `{shown}`, which has no keys that can be edited"
        )
        return
    if inner.type == "tuple":
        values = named(inner, "expression")
        position = parse_index(rest[0])
        if position is not None and 0 <= position < len(values):
            yield from _in_value(search, values[position], rest[1:])
        else:
            search.miss(rest, [str(number) for number in range(len(values))])
        return
    yield from _in_object(search, inner, rest)


def _in_object(search: _Search, node: Node, rest: list[str]) -> Iterator[Node]:
    found = _entries(search.source, node, rest[0])
    left = rest[1:]
    if not found:
        name, *indexes = split_suffix(rest[0])
        if indexes:
            found, left = _entries(search.source, node, name), indexes + left
    for value in found:
        yield from _in_value(search, value, left)
    if found:
        return
    names = [name for name, _, _ in object_items(search.source, node)]
    if None in names:
        search.blocked = f"the object at line {line(node)} has computed keys, which cannot be named"
    search.miss(rest, [_quoted(name) for name in names if name is not None])


def _entries(source: Source, node: Node, wanted: str) -> list[Node]:
    return [value for name, _, value in object_items(source, node) if name == wanted]


def _quoted(name: str) -> str:
    return join_key([name])
