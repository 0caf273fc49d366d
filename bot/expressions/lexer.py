"""Text of an expression to tokens, as expr-lang 1.17 reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from bot.expressions.errors import ExpressionError

MAX_SOURCE = 65_536
"""Characters an expression may have."""

WORD_OPERATORS = frozenset(
    {"in", "or", "and", "matches", "contains", "startsWith", "endsWith", "let", "if", "else", "not"}
)

_SPACE = re.compile(r"[ \t\n\v\f\r\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_WORD = re.compile(r"[\w$]+")
_NUMBER = re.compile(
    r"0[xX][0-9a-fA-F_]*|0[oO][0-7_]*|0[bB][01_]*|(?:[0-9][0-9_]*)?(?:\.(?!\.)[0-9_]*)?(?:[eE][+-]?[0-9_]*)?",
    re.ASCII,
)
_OPERATOR = re.compile(r"\|\|?|::?|[?][.?]?|\.\.?|[&!=*<>][&=*]?|##?|[,;%+\-^/]")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}
_HEX_LENGTHS = {"x": 2, "u": 4, "U": 8}


class Kind(StrEnum):
    """What a token is."""

    OPERATOR = "operator"
    BRACKET = "bracket"
    NAME = "name"
    NUMBER = "number"
    TEXT = "text"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `value` of a text is its content, unescaped. `at` is where it starts."""

    kind: Kind
    value: str
    at: int

    def is_operator(self, *values: str) -> bool:
        """Whether it is one of these operators."""
        return self.kind is Kind.OPERATOR and self.value in values

    def is_bracket(self, value: str) -> bool:
        """Whether it is this bracket."""
        return self.kind is Kind.BRACKET and self.value == value

    def __str__(self) -> str:
        return "the end" if self.kind is Kind.END else f"{self.value!r}"


def read_tokens(source: str) -> list[Token]:
    """All tokens, the last one of kind END; raises ExpressionError."""
    if len(source) > MAX_SOURCE:
        raise ExpressionError(
            f"an expression of {len(source)} characters is too long; {MAX_SOURCE} are allowed"
        )
    tokens: list[Token] = []
    at = 0
    while at < len(source):
        at = _read_token(source, at, tokens)
    tokens.append(Token(Kind.END, "", len(source)))
    return tokens


def _read_token(source: str, at: int, tokens: list[Token]) -> int:
    """Reads what stands at `at`, appends its token if it is one, and returns where it ends."""
    letter = source[at]
    if space := _SPACE.match(source, at):
        return space.end()
    if letter in "'\"":
        return _read_text(source, at, tokens)
    if letter == "`":
        return _read_raw_text(source, at, tokens)
    if "0" <= letter <= "9" or (letter == "." and "0" <= source[at + 1 : at + 2] <= "9"):
        return _read_number(source, at, tokens)
    if letter in "()[]{}":
        tokens.append(Token(Kind.BRACKET, letter, at))
        return at + 1
    if source.startswith("//", at):
        end = source.find("\n", at)
        return len(source) if end < 0 else end + 1
    if source.startswith("/*", at):
        end = source.find("*/", at + 2)
        if end < 0:
            raise ExpressionError("a comment is not closed", at)
        return end + 2
    if word := _WORD.match(source, at):
        kind = Kind.OPERATOR if word.group() in WORD_OPERATORS else Kind.NAME
        tokens.append(Token(kind, word.group(), at))
        return word.end()
    if operator := _OPERATOR.match(source, at):
        tokens.append(Token(Kind.OPERATOR, operator.group(), at))
        return operator.end()
    raise ExpressionError(f"an expression cannot hold the character {letter!r}", at)


def _read_number(source: str, at: int, tokens: list[Token]) -> int:
    found = _NUMBER.match(source, at)
    end = found.end() if found else at
    if _WORD.match(source, end):
        raise ExpressionError(f"bad number {source[at : end + 1]!r}", at)
    tokens.append(Token(Kind.NUMBER, source[at:end], at))
    return end


def _read_raw_text(source: str, at: int, tokens: list[Token]) -> int:
    """A text in backticks: no escapes, two backticks stand for one."""
    parts: list[str] = []
    begin = at + 1
    while True:
        end = source.find("`", begin)
        if end < 0:
            raise ExpressionError("a text is not closed", at)
        parts.append(source[begin:end])
        if source[end + 1 : end + 2] != "`":
            tokens.append(Token(Kind.TEXT, "".join(parts), at))
            return end + 1
        parts.append("`")
        begin = end + 2


def _read_text(source: str, at: int, tokens: list[Token]) -> int:
    quote = source[at]
    stop = re.compile(rf"[\\\n{quote}]")
    parts: list[str] = []
    begin = at + 1
    while found := stop.search(source, begin):
        parts.append(source[begin : found.start()])
        if found.group() == quote:
            tokens.append(Token(Kind.TEXT, _join_surrogates("".join(parts)), at))
            return found.end()
        if found.group() == "\n":
            break
        letter, begin = _read_escape(source, found.start(), quote)
        parts.append(letter)
    raise ExpressionError("a text is not closed", at)


def _read_escape(source: str, at: int, quote: str) -> tuple[str, int]:
    """The character that the escape at `at` stands for, and where it ends."""
    mark = source[at + 1 : at + 2]
    if mark == quote and mark:
        return mark, at + 2
    if mark in _ESCAPES and mark:
        return _ESCAPES[mark], at + 2
    if mark in _HEX_LENGTHS and mark:
        length, base, begin = _HEX_LENGTHS[mark], 16, at + 2
    elif mark and mark in "01234567":
        length, base, begin = 3, 8, at + 1
    else:
        raise ExpressionError(f"a text holds the unknown escape \\{mark}", at)
    digits = source[begin : begin + length]
    allowed = "0123456789abcdefABCDEF" if base == 16 else "01234567"
    if len(digits) < length or any(digit not in allowed for digit in digits):
        raise ExpressionError("a text holds an incomplete escape", at)
    code = int(digits, base)
    if code > 0x10FFFF or (base == 8 and code > 0xFF):
        raise ExpressionError(
            f"a text holds an escape for a character that does not exist: \\{mark}{digits}", at
        )
    return chr(code), begin + length


def _join_surrogates(text: str) -> str:
    r"""Pairs such as `\ud83d\ude00` become their character, lone halves the replacement character."""
    if not any("\ud800" <= letter <= "\udfff" for letter in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
