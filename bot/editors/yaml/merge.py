"""Laying one YAML text over another, as Kargo's `yaml-merge` does it with kyaml."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.keys import same_value
from bot.editors.yaml.stream import BOM, build, parse_stream


def merge_yaml(texts: Sequence[str]) -> str:
    """The first text with the others laid over it in turn; comments of the first are kept.

    Mappings merge key by key, a null removes its key, lists and scalars are replaced whole. Texts that are empty
    or null change nothing. Only one document per text is understood. The result is read again and compared with
    the merged values. Differs from kyaml in one thing: the later value keeps its own quotes and so its type
    (kyaml keeps the earlier one's, which turns the number 2 over `"1"` into a string).
    """
    values = [_read(text) for text in texts]
    present = [
        (text, value) for text, value in zip(texts, values, strict=True) if value is not None
    ]  # fmt: skip
    if not present:
        return ""
    if len(present) == 1:
        return present[0][0]
    expected: Json = present[0][1]
    for _, value in present[1:]:
        expected = _merge_values(expected, value)
    result = _merge_texts([text for text, _ in present])
    found = _read(result)
    if not same_value(found, expected):
        raise EditError("these files cannot be merged without changing a value; write the result out by hand")
    return result


def _read(text: str) -> Json:
    stream = parse_stream(text.removeprefix(BOM))
    if len(stream.roots) > 1:
        raise EditError("only files of one document can be merged", stream.line(stream.roots[1]))
    return build(stream, stream.roots[0]) if stream.roots else None


def _merge_values(held: Json, laid: Json) -> Json:
    if not (isinstance(held, dict) and isinstance(laid, dict)):
        return laid
    merged = dict(held)
    for key, value in laid.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge_values(merged.get(key), value)
    return merged


_INDENTED_LIST = re.compile(r"^( *)[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\r?\n\1 +- ", re.MULTILINE)


def _merge_texts(texts: list[str]) -> str:
    """The merge as text; ruamel carries comments and quotes along, with the list indentation of the first text."""
    editor = YAML()
    editor.preserve_quotes = True
    editor.width = 1 << 30
    if _INDENTED_LIST.search(texts[0]):
        editor.indent(mapping=2, sequence=4, offset=2)
    out = io.StringIO()
    try:
        merged = editor.load(texts[0].removeprefix(BOM))
        for text in texts[1:]:
            merged = _lay(merged, editor.load(text.removeprefix(BOM)))
        editor.dump(merged, out)
    except (YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        raise EditError(f"these files cannot be merged: {' '.join(str(error).split())}", line) from error
    result = out.getvalue()
    return result.replace("\n", "\r\n") if "\r\n" in texts[0] else result


def _lay(held: object, laid: object) -> object:
    if not (isinstance(held, CommentedMap) and isinstance(laid, CommentedMap)):
        return laid
    for key, value in laid.items():
        if value is None:
            held.pop(key, None)
        elif key in held:
            held[key] = _lay(held[key], value)
        else:
            held[key] = value
            if key in laid.ca.items:
                held.ca.items[key] = laid.ca.items[key]
    return held
