"""The tables of expr-lang's grammar: operators and how tightly they bind, builtins, limits, numbers."""

from __future__ import annotations

import re

from bot.expressions.errors import ExpressionError
from bot.expressions.gonumbers import parse_float
from bot.expressions.lexer import Token
from bot.expressions.operands import INT_MAX

MAX_NESTING = 60
"""How deep brackets, branches and `let` may nest."""

MAX_HEIGHT = 200
"""How high the tree may grow; a sum of more than this many terms is refused too."""

UNARY = {"not": 50, "!": 50, "-": 90, "+": 90}
BINARY = {
    "|": 0,
    "or": 10,
    "||": 10,
    "and": 15,
    "&&": 15,
    **dict.fromkeys(("==", "!=", "<", ">", ">=", "<="), 20),
    **dict.fromkeys(("in", "matches", "contains", "startsWith", "endsWith"), 20),
    "..": 25,
    "+": 30,
    "-": 30,
    "*": 60,
    "/": 60,
    "%": 60,
    "**": 100,
    "^": 100,
    "??": 500,
}
RIGHT_BOUND = frozenset({"**", "^"})
COMPARISONS = frozenset({"<", ">", ">=", "<="})
NEGATABLE = frozenset({"in", "matches", "contains", "startsWith", "endsWith"})
IDENTIFIER = re.compile(r"[^\W\d]\w*")

PREDICATES: dict[str, str] = {
    **dict.fromkeys(
        (
            "all",
            "none",
            "any",
            "one",
            "filter",
            "map",
            "find",
            "findIndex",
            "findLast",
            "findLastIndex",
            "groupBy",
        ),
        "required",
    ),
    **dict.fromkeys(("count", "sum"), "optional"),
    **dict.fromkeys(("sortBy", "reduce"), "extra"),
}
"""Builtins that run an expression per element, and whether that is required, optional, or followed by more."""

_BUILTIN_TEXT = """
len type abs ceil floor round int float string trim trimPrefix trimSuffix upper lower split splitAfter replace
repeat join indexOf lastIndexOf hasPrefix hasSuffix max min mean median toJSON fromJSON toBase64 fromBase64 now
duration date timezone first last get take keys values toPairs fromPairs reverse uniq concat flatten sort
bitand bitor bitxor bitnand bitshl bitshr bitushr bitnot
"""
BUILTINS = frozenset(_BUILTIN_TEXT.split())
"""Builtins that take plain arguments."""


def read_number(token: Token) -> int | float:
    """The value of a number token; raises ExpressionError."""
    text = token.value.replace("_", "")
    lower = text.lower()
    try:
        if lower.startswith(("0x", "0b", "0o")):
            whole = int(lower, 0)
        elif "." in lower or "e" in lower:
            number = parse_float(text)
            if number is None:
                raise ExpressionError(f"bad number {token.value!r}", token.at)
            return number
        else:
            whole = int(text) if len(text) < 40 else INT_MAX + 1
    except ValueError:
        raise ExpressionError(f"bad number {token.value!r}", token.at) from None
    if whole > INT_MAX:
        raise ExpressionError(f"the number {token.value} is too large for a 64-bit integer", token.at)
    return whole
