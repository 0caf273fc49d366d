"""Surgical changes of literals in HCL: every byte but the value's stays as it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from tree_sitter import Node

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.hcl.locate import chain, locate
from bot.editors.hcl.syntax import BOM, Source, is_literal, line, literal, parse_source, render_literal
from bot.editors.keys import Update, is_scalar, same_value, split_key


@dataclass(frozen=True, slots=True)
class _Splice:
    node: Node
    text: bytes
    value: Json
    key: str


def update_hcl(text: str, updates: Sequence[Update]) -> str:
    r"""The text with each key's literal replaced, layout, comments, line ends and byte order mark kept.

    Keys are dotted: a top-level attribute (`image_uri`), keys and list indexes in its value (`images.api.tag`,
    `zones.0` or `zones[0]`), or a block path (`resource.aws_lambda_function.app.tags.version`); `\.` is a dot
    inside a name. Strings, numbers, booleans and nulls are replaced and written; `${` and `%{` in a string are
    escaped, so a value is never run as a template. Of two updates of one key the last counts.

    Raises EditError for a key that is missing (with the nearest ones) or stands twice, a value that is a template,
    reference, call, list or object, a syntax error around the place, and a result that would read differently.
    """
    if not updates:
        return text
    bom, body = (BOM, text[1:]) if text.startswith(BOM) else ("", text)
    source = parse_source(body)
    splices: dict[int, _Splice] = {}
    for update in updates:
        splice = _plan(source, update)
        splices[splice.node.start_byte] = splice
    ordered = [splices[start] for start in sorted(splices)]
    for _, group in groupby(ordered, key=lambda each: chain(each.node)[-2].start_byte):
        _verify_item(source, list(group))
    return bom + _join(source.data, ordered).decode()


def _plan(source: Source, update: Update) -> _Splice:
    expression = locate(source, split_key(update.key))
    key, at = update.key, line(expression)
    if not is_literal(expression):
        shown = source.text(expression).split("\n", 1)[0][:60]
        raise EditError(f"key {key!r} holds `{shown}`, which is no literal; only literals are replaced", at)
    if not is_scalar(update.value):
        raise EditError(
            f"key {key!r}: the new value is a list or mapping; only scalars can be written here", at
        )
    try:
        return _Splice(expression, render_literal(update.value).encode(), update.value, key)
    except ValueError as error:
        raise EditError(f"key {key!r}: the new value cannot be written: {error}", at) from error


def _join(data: bytes, splices: list[_Splice], begin: int = 0) -> bytes:
    """Bytes with all splices made; `begin` is where they start in the text that the splices speak of."""
    pieces: list[bytes] = []
    position = begin
    for splice in splices:
        pieces += (data[position - begin : splice.node.start_byte - begin], splice.text)
        position = splice.node.end_byte
    pieces.append(data[position - begin :])
    return b"".join(pieces)


def _verify_item(source: Source, splices: list[_Splice]) -> None:
    """Read one top-level item again and compare.

    An item that is complete by itself, with its bytes before and after it unchanged, cannot change what its
    neighbours are, so the rest of the text need not be read twice.
    """
    top = chain(splices[0].node)[-2]
    old = source.data[top.start_byte : top.end_byte]
    after = parse_source(_join(old, splices, top.start_byte).decode())
    items = after.body.children if after.body is not None else []
    if len(items) != 1 or after.root.has_error or items[0].end_byte != len(after.data):
        raise EditError(
            f"key {splices[0].key!r} cannot be written without changing what stands around it", line(top)
        )
    moved = _shift(splices, top.start_byte)
    for splice in splices:
        _verify(after, top, items[0], splice, moved)


def _shift(splices: list[_Splice], begin: int) -> Callable[[int], int]:
    """Where a byte of the old text is in the new item; bytes inside a replaced value are not asked for."""
    moves = [
        (each.node.end_byte, len(each.text) - each.node.end_byte + each.node.start_byte) for each in splices
    ]

    def moved(position: int) -> int:
        return position - begin + sum(delta for end, delta in moves if end <= position)

    return moved


def _verify(after: Source, old: Node, new: Node, splice: _Splice, moved: Callable[[int], int]) -> None:
    """Compare both trees level by level on the way down to the value; siblings must not have moved or changed.

    What stands beside the way has the same bytes in both texts, so the same kind and span make it the same.
    """
    at = line(splice.node)
    for next_old in reversed(chain(splice.node)[:-2]):
        index = _same_children(old, new, next_old, moved)
        if index is None:
            raise EditError(
                f"key {splice.key!r} cannot be written without changing what stands around it", at
            )
        old, new = next_old, new.children[index]
    if not is_literal(new) or not _reads_as(literal(after, new), splice.value):
        raise EditError(f"key {splice.key!r}: the value would be read back as something else", at)


def _same_children(old: Node, new: Node, wanted: Node, moved: Callable[[int], int]) -> int | None:
    olds, news = old.children, new.children
    if len(olds) != len(news):
        return None
    index = None
    for position, (left, right) in enumerate(zip(olds, news, strict=True)):
        if left.type != right.type or left.has_error != right.has_error:
            return None
        start, end = left.start_byte, left.end_byte
        if (moved(start), moved(end)) != (right.start_byte, right.end_byte):
            return None
        if left == wanted:
            index = position
    return index


def _reads_as(found: object, value: Json) -> bool:
    if not isinstance(found, str | int | float | None):
        return False
    return same_value(found, value) and isinstance(found, str) == isinstance(value, str)
