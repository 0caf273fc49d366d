"""What a Terraform file names outside of itself: modules, its backend and the files it reads.

The inputs of a Terraform run are followed from here, so what cannot be resolved is said, never left out.
"""

from __future__ import annotations

import re

from tree_sitter import Node, Query, QueryCursor

from bot.editors.errors import EditError
from bot.editors.hcl.syntax import (
    BOM,
    LANGUAGE,
    HclExpression,
    Source,
    attribute,
    block_body,
    block_header,
    line,
    literal,
    named,
    parse_source,
    unescape,
)

_CALLS = Query(LANGUAGE, "(function_call) @call")
_FILE_FUNCTIONS = frozenset(
    {
        *("file", "fileexists", "fileset", "templatefile", "filebase64", "filemd5", "filesha1"),
        *("filesha256", "filesha512", "filebase64sha256", "filebase64sha512"),
    }
)
_ROOTED = re.compile(r"\$\{\s*path\.(module|root|cwd)\s*\}")


def _parse(text: str) -> Source:
    source = parse_source(text.removeprefix(BOM))
    error = source.first_error()
    if error is not None:
        raise EditError("this is no valid HCL", line(error))
    return source


def _blocks(source: Source, body: Node | None, kind: str) -> list[tuple[list[str], Node]]:
    if body is None:
        return []
    headed = [(block_header(source, block), block) for block in named(body, "block")]
    return [(header, block) for header, block in headed if header[:1] == [kind]]


def find_module_sources(text: str) -> list[tuple[int, str | None]]:
    """Line and `source` of every module call; None for a source that must be computed or is missing.

    A text with a syntax error raises EditError.
    """
    source = _parse(text)
    found: list[tuple[int, str | None]] = []
    for _, block in _blocks(source, source.body, "module"):
        place, value = line(block), None
        body = block_body(block)
        for node in named(body, "attribute") if body is not None else []:
            item = attribute(source, node)
            if item is not None and item[0] == "source":
                held = literal(source, item[1])
                place, value = line(item[1]), held if isinstance(held, str) else None
        found.append((place, value))
    return found


def find_backend(text: str) -> tuple[str, int] | None:
    """Type and line of the backend that a file declares, `cloud` for a `cloud` block; None if it declares none.

    A text with a syntax error raises EditError.
    """
    source = _parse(text)
    for _, settings in _blocks(source, source.body, "terraform"):
        body = block_body(settings)
        for header, block in _blocks(source, body, "backend"):
            return (header[1] if len(header) > 1 else "", line(block))
        for _, block in _blocks(source, body, "cloud"):
            return "cloud", line(block)
    return None


def find_file_calls(text: str) -> list[str] | None:
    """The paths that `file`, `templatefile`, `fileset` and their kin are called with, in order.

    A path is a literal string or begins with `${path.module}`, `${path.root}` or `${path.cwd}`, which are kept in
    that spelling; a `fileset` gives its directory and pattern joined by `/`. None if any call's path must be
    computed, so that the caller has to take every file for an input. A syntax error raises EditError.
    """
    source = _parse(text)
    calls = QueryCursor(_CALLS).captures(source.root).get("call", [])
    paths: list[str] = []
    for call in sorted(calls, key=lambda each: each.start_byte):
        name = source.text(call.children[0]).removeprefix("core::")
        if name not in _FILE_FUNCTIONS:
            continue
        arguments = [each for node in named(call, "function_arguments") for each in named(node, "expression")]
        wanted = [_path(source, each) for each in arguments[: 2 if name == "fileset" else 1]]
        known = [each for each in wanted if each is not None]
        if not known or len(known) < len(wanted):
            return None
        paths.append("/".join(known))
    return paths


def _path(source: Source, expression: Node) -> str | None:
    held = literal(source, expression)
    if isinstance(held, str):
        return held
    if not isinstance(held, HclExpression):
        return None
    bare = re.fullmatch(r"path\.(module|root|cwd)", held.source.strip())
    if bare:
        return f"${{path.{bare[1]}}}"
    if not (held.source.startswith('"') and held.source.endswith('"')):
        return None
    inner = held.source[1:-1]
    root = _ROOTED.match(inner)
    if root is None or re.search(r"(?<![$%])[$%]\{", inner[root.end() :]):
        return None
    return f"${{path.{root[1]}}}{unescape(inner[root.end() :])}"
