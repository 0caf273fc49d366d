"""HCL text as a syntax tree with byte spans, and the reading of its literals.

Positions are bytes of the UTF-8 text without byte order mark.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import tree_sitter_hcl
from tree_sitter import Language, Node, Parser

from bot.domain.values import Json
from bot.editors.errors import EditError
from bot.editors.literals import render_number

BOM = "\ufeff"
LANGUAGE = Language(tree_sitter_hcl.language())

# The grammar knows no exponent without a decimal point; digits of the same length stand in while it looks.
_EXPONENT = re.compile(rb"(?<![\w.-])[0-9]+[eE][-+]?[0-9]+(?![\w.])")
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|([$%])\4\{", re.DOTALL)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_SIGNS = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_TEMPLATE_MARK = re.compile(r"([$%]*)([$%])\{")


@dataclass(frozen=True, slots=True)
class HclExpression:
    """The source text of an expression that is no literal: a template, a reference or a call."""

    source: str


@dataclass(frozen=True, slots=True)
class Source:
    """A parsed text: `data` its bytes, `body` the top level's node (None if the text holds nothing)."""

    data: bytes
    root: Node
    body: Node | None

    def text(self, node: Node) -> str:
        """The text of a node as it is written."""
        return self.data[node.start_byte : node.end_byte].decode()

    def line_count(self) -> int:
        """How many lines the text has."""
        return self.data.count(b"\n") + (0 if self.data.endswith(b"\n") or not self.data else 1)

    def first_error(self, within: Node | None = None) -> Node | None:
        """The first syntax error in a node or in all of the text."""
        node = within or self.root
        if not node.has_error:
            return None
        while node.type != "ERROR" and not node.is_missing:
            inner = next((child for child in node.children if child.has_error or child.is_missing), None)
            if inner is None:
                break
            node = inner
        return node


def parse_source(text: str) -> Source:
    """The tree of a text without byte order mark; text that is no Unicode raises EditError."""
    try:
        data = text.encode()
    except UnicodeError as error:
        raise EditError(f"this text cannot be written as UTF-8: {error}") from error
    looked_at = _EXPONENT.sub(lambda found: b"1" * len(found[0]), data)
    root = Parser(LANGUAGE).parse(looked_at).root_node
    body = next((child for child in root.children if child.type == "body"), None)
    return Source(data, root, body)


def line(node: Node) -> int:
    """The line, from 1, on which a node begins."""
    return int(node.start_point.row) + 1


def named(node: Node, *kinds: str) -> list[Node]:
    """The children of a node that are of these kinds."""
    return [child for child in node.children if child.type in kinds]


def block_header(source: Source, block: Node) -> list[str]:
    """The type and labels of a block, quotes removed."""
    header: list[str] = []
    for child in block.children:
        if child.type == "identifier":
            header.append(source.text(child))
        elif child.type == "string_lit":
            header.append(unescape(source.text(child)[1:-1]))
        else:
            break
    return header


def block_body(block: Node) -> Node | None:
    """The body of a block; None if nothing stands between its braces."""
    return next((child for child in block.children if child.type == "body"), None)


def attribute(source: Source, node: Node) -> tuple[str, Node] | None:
    """Name and value expression of an attribute node; None if it is broken."""
    name, value = named(node, "identifier"), named(node, "expression")
    return (source.text(name[0]), value[0]) if name and value else None


def container(expression: Node) -> Node | None:
    """The object or tuple that an expression is; None for everything else."""
    only = _only_child(expression)
    if only is None or only.type != "collection_value":
        return None
    inner = _only_child(only)
    return inner if inner is not None and inner.type in ("object", "tuple") else None


def object_items(source: Source, node: Node) -> Iterator[tuple[str | None, Node, Node]]:
    """Key text, key node and value expression of each entry; the text is None for a computed key."""
    for element in named(node, "object_elem"):
        expressions = named(element, "expression")
        if len(expressions) == 2:
            yield key_text(source, expressions[0]), expressions[0], expressions[1]


def key_text(source: Source, expression: Node) -> str | None:
    """A key's text, bare or quoted; None if it has to be computed."""
    only = _only_child(expression)
    if only is None:
        return None
    if only.type == "variable_expr" and len(only.children) == 1:
        return source.text(only)
    found = literal(source, expression)
    if isinstance(found, str):
        return found
    return source.text(only) if only.type == "literal_value" else None


def is_literal(expression: Node) -> bool:
    """Whether an expression is a literal string, number, boolean or null."""
    only = _only_child(expression)
    if only is None:
        return False
    if only.type == "literal_value":
        return True
    unary = _only_child(only) if only.type == "operation" else None
    if unary is None or unary.type != "unary_operation" or len(unary.children) != 2:
        return False
    sign, value = unary.children
    return sign.type == "-" and value.type == "literal_value" and _kind(value) == "numeric_lit"


def literal(source: Source, expression: Node) -> Json | HclExpression:
    """The value of a literal, or the expression's text if it is none."""
    if not is_literal(expression):
        return HclExpression(source.text(expression))
    text, only = source.text(expression), expression.children[0]
    match _kind(only):
        case "string_lit":
            return unescape(text[1:-1])
        case "bool_lit":
            return text == "true"
        case "null_lit":
            return None
        case _:
            return _number(text)


def _number(text: str) -> Json | HclExpression:
    bare = re.sub(r"\s", "", text)
    if re.fullmatch(r"-?[0-9]{1,4000}", bare):
        return int(bare)
    try:
        value = float(bare)
    except ValueError:
        return HclExpression(text)
    return value if math.isfinite(value) else HclExpression(text)


def _kind(node: Node) -> str:
    return node.children[0].type if node.children else ""


def _only_child(node: Node) -> Node | None:
    children = [child for child in node.children if child.type != "comment"]
    return children[0] if len(children) == 1 else None


def unescape(text: str) -> str:
    """The string that a quoted text stands for, without its quotes."""

    def plain(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        if code:
            return chr(int(code, 16)) if int(code, 16) <= 0x10FFFF else found[0]
        if found[3]:
            return _LETTERS.get(found[3], found[0])
        return found[4] + "{"

    return _ESCAPED.sub(plain, text)


def render_literal(value: Json) -> str:
    """A scalar as HCL text, template marks escaped.

    ValueError for containers, numbers that are not finite and text that is no Unicode.
    """
    if isinstance(value, str):
        value.encode()
        return '"' + _quote(value) + '"'
    return render_number(value)


def _quote(text: str) -> str:
    signed = "".join(_SIGNS.get(letter) or _coded(letter) for letter in text)
    return _TEMPLATE_MARK.sub(_escape_mark, signed)


def _coded(letter: str) -> str:
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escape_mark(found: re.Match[str]) -> str:
    # A sign right before an escaped mark would be read together with it, so it is written as its code.
    before = "".join(f"\\u{ord(sign):04x}" for sign in found[1])
    return f"{before}{found[2]}{found[2]}{{"
