"""RE2 syntax as Go reads it, turned into a tree of four kinds of node.

Captures and greediness are dropped, since only the question whether a text matches is ever asked.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TypeAlias

_MAX_REPEAT = 1000
_MAX_DEPTH = 100
_MAX_PATTERN = 10_000
_ANY = ((0, 0x10FFFF),)
_DIGITS = ((48, 57),)
_SPACES = ((9, 10), (12, 13), (32, 32))
_WORD = ((48, 57), (65, 90), (95, 95), (97, 122))
_PERL = {"d": _DIGITS, "s": _SPACES, "w": _WORD}
_POSIX = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGITS,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_CONTROL = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_CATEGORIES = frozenset(
    major + minor
    for major, minors in {
        "C": "cfos",
        "L": "lmotu",
        "M": "cen",
        "N": "dlo",
        "P": "cdefios",
        "S": "ckmo",
        "Z": "lps",
    }.items()
    for minor in ("", *minors)
)
Ranges: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Characters:
    """A test of one character: code point ranges, Unicode categories, and sets that it must not be in."""

    ranges: Ranges = ()
    categories: tuple[str, ...] = ()
    excluded: tuple[Characters, ...] = ()
    """Each adds the characters that are *not* in it."""
    negated: bool = False
    fold: bool = False

    def contains(self, char: str) -> bool:
        """Whether the character passes; with `fold` any of its cases may."""
        forms = {char, char.lower(), char.upper(), *_FOLDED.get(char, ())} if self.fold else {char}
        return any(self._has(form) for form in forms if len(form) == 1) != self.negated

    def _has(self, char: str) -> bool:
        code = ord(char)
        if any(low <= code <= high for low, high in self.ranges):
            return True
        if self.categories and unicodedata.category(char).startswith(self.categories):
            return True
        return any(not other.contains(char) for other in self.excluded)


_FOLDED = {
    "k": ("\u212a",),
    "K": ("\u212a",),
    "\u212a": ("k", "K"),
    "s": ("\u017f",),
    "S": ("\u017f",),
    "\u017f": ("s", "S"),
}


@dataclass(frozen=True, slots=True)
class Assertion:
    """A condition on a place: `begin-text`, `end-text`, `begin-line`, `end-line`, `boundary` or `inside`."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts that follow each other."""

    parts: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Choices of which one must match."""

    choices: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part that stands at least and at most so often; None has no limit."""

    body: Node
    least: int
    most: int | None


Node: TypeAlias = "Characters | Assertion | Sequence | Alternatives | Repeat"


def parse_regex(pattern: str) -> Node:
    """The tree of a pattern; raises ValueError with the reason where Go would refuse it."""
    if len(pattern) > _MAX_PATTERN:
        raise ValueError(f"the regular expression is longer than {_MAX_PATTERN} characters")
    parser = _Parser(pattern)
    node = parser.parse_alternatives(0)
    if parser.position < len(pattern):
        raise ValueError(f"unexpected ')' in the regular expression {pattern!r}")
    return node


class _Parser:
    """A recursive descent over one pattern; flags are those of the group that is being read."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.flags: frozenset[str] = frozenset()
        self.names: set[str] = set()

    def error(self, message: str) -> ValueError:
        return ValueError(f"{message} in the regular expression {self.pattern!r}")

    def peek(self, length: int = 1) -> str:
        return self.pattern[self.position : self.position + length]

    def take(self) -> str:
        if self.position >= len(self.pattern):
            raise self.error("the end comes too early")
        self.position += 1
        return self.pattern[self.position - 1]

    def accept(self, text: str) -> bool:
        if not self.pattern.startswith(text, self.position):
            return False
        self.position += len(text)
        return True

    def parse_alternatives(self, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise self.error("groups are nested too deeply")
        flags = self.flags
        choices = [self.parse_sequence(depth)]
        while self.accept("|"):
            choices.append(self.parse_sequence(depth))
        self.flags = flags
        return choices[0] if len(choices) == 1 else Alternatives(tuple(choices))

    def parse_sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.position < len(self.pattern) and self.peek() not in {"|", ")"}:
            if self.accept("\\Q"):
                literal, _, _ = self.pattern[self.position :].partition("\\E")
                self.position += len(literal) + 2
                self.position = min(self.position, len(self.pattern))
                parts.extend(self.literal(ord(char)) for char in literal)
                self.repeat_last(parts)
                continue
            node = self.parse_atom(depth)
            if node is not None:
                parts.append(node)
                self.repeat_last(parts)
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def repeat_last(self, parts: list[Node]) -> None:
        repeated = False
        while (bounds := self.parse_bounds()) is not None:
            if repeated or not parts:
                raise self.error("a repetition operator has nothing of its own to repeat")
            self.accept("?")
            parts[-1] = Repeat(parts[-1], *bounds)
            repeated = True

    def parse_bounds(self) -> tuple[int, int | None] | None:
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if self.peek() in simple:
            return simple[self.take()]
        if self.peek() != "{":
            return None
        body, brace, _ = self.pattern[self.position + 1 :].partition("}")
        low, comma, high = body.partition(",")
        if not brace or not _is_number(low) or (high and not _is_number(high)):
            return None
        self.position += len(body) + 2
        least = int(low[:5])
        most = int(high[:5]) if high else (None if comma else least)
        if least > _MAX_REPEAT or (most is not None and (most > _MAX_REPEAT or most < least)):
            raise self.error(f"the repeat count {{{body}}} is not allowed")
        return least, most

    def parse_atom(self, depth: int) -> Node | None:
        char = self.take()
        match char:
            case "(":
                return self.parse_group(depth)
            case "[":
                return self.parse_class()
            case ".":
                return Characters(_ANY) if "s" in self.flags else Characters(((10, 10),), negated=True)
            case "^":
                return Assertion("begin-line" if "m" in self.flags else "begin-text")
            case "$":
                return Assertion("end-line" if "m" in self.flags else "end-text")
            case "\\":
                return self.parse_escape()
            case "*" | "+" | "?":
                raise self.error(f"{char!r} has nothing to repeat")
            case _:
                return self.literal(ord(char))

    def literal(self, code: int) -> Characters:
        return Characters(((code, code),), fold="i" in self.flags)

    def parse_group(self, depth: int) -> Node | None:
        outer = self.flags
        if self.accept("?"):
            if self.accept("P<") or (
                self.peek() == "<" and self.peek(2) not in {"<=", "<!"} and self.accept("<")
            ):
                self.parse_name()
            elif self.parse_flags():
                return None
        node = self.parse_alternatives(depth + 1)
        if not self.accept(")"):
            raise self.error("a ')' is missing")
        self.flags = outer
        return node

    def parse_name(self) -> None:
        name, bracket, _ = self.pattern[self.position :].partition(">")
        if (
            not bracket
            or not name
            or not all(char.isascii() and (char.isalnum() or char == "_") for char in name)
        ):
            raise self.error("a group has no valid name")
        if name in self.names:
            raise self.error(f"the group name {name!r} is used twice")
        self.names.add(name)
        self.position += len(name) + 1

    def parse_flags(self) -> bool:
        """Reads `i-s:` or `i)`; True if the flags hold for the rest of the surrounding group."""
        flags, adding, seen = set(self.flags), True, False
        while True:
            char = self.take()
            if char in "imsU":
                flags = flags | {char} if adding else flags - {char}
                seen = True
            elif char == "-" and adding:
                adding, seen = False, False
            elif char in ":)" and (seen or adding):
                self.flags = frozenset(flags)
                return char == ")"
            else:
                raise self.error("look-around and other Perl extensions are not allowed; '(?' is wrong")

    def parse_escape(self) -> Node:
        char = self.peek()
        assertions = {"A": "begin-text", "z": "end-text", "b": "boundary", "B": "inside"}
        if char in assertions:
            self.take()
            return Assertion(assertions[char])
        found = self.parse_set_escape()
        return found if found is not None else self.literal(self.parse_code())

    def parse_set_escape(self) -> Characters | None:
        """A class such as `\\d` or `\\p{L}`, or None if the escape stands for one character."""
        char = self.peek()
        fold = "i" in self.flags
        if char and char in "dswDSW":
            self.take()
            return Characters(_PERL[char.lower()], negated=char.isupper(), fold=fold)
        if not char or char not in "pP":
            return None
        negated = self.take() == "P"
        name = self.take()
        if name == "{":
            name, brace, _ = self.pattern[self.position :].partition("}")
            if not brace:
                raise self.error("a '}' is missing")
            self.position += len(name) + 1
            if name.startswith("^"):
                name, negated = name[1:], not negated
        if name == "Any":
            return Characters(_ANY, negated=negated)
        if name not in _CATEGORIES:
            raise self.error(f"the Unicode class {name!r} is not known (general categories are)")
        return Characters(categories=(name,), negated=negated, fold=fold)

    def parse_code(self) -> int:
        char = self.take()
        if char in _CONTROL:
            return _CONTROL[char]
        if char == "x":
            return self.parse_hex()
        if char in "01234567":
            if char != "0" and (not self.peek() or self.peek() not in "01234567"):
                raise self.error(f"the back-reference \\{char} is not allowed")
            digits = char
            while len(digits) < 3 and self.peek() and self.peek() in "01234567":
                digits += self.take()
            return int(digits, 8)
        if char.isascii() and not char.isalnum():
            return ord(char)
        raise self.error(f"the escape \\{char} is not known")

    def parse_hex(self) -> int:
        if self.accept("{"):
            digits, brace, _ = self.pattern[self.position :].partition("}")
            self.position += len(digits) + 1
        else:
            digits, brace = self.peek(2), "}" if len(self.peek(2)) == 2 else ""
            self.position += 2
        if (
            not brace
            or not digits
            or len(digits) > 8
            or any(char not in "0123456789abcdefABCDEF" for char in digits)
        ):
            raise self.error("a hexadecimal escape is wrong")
        if int(digits, 16) > 0x10FFFF:
            raise self.error("a hexadecimal escape is no character")
        return int(digits, 16)

    def parse_class(self) -> Characters:
        negated = self.accept("^")
        ranges: list[tuple[int, int]] = []
        categories: list[str] = []
        excluded: list[Characters] = []
        first = True
        while first or self.peek() != "]":
            first = False
            found = self.parse_class_set()
            if found is None:
                ranges.append(self.parse_range())
            elif found.negated:
                excluded.append(Characters(found.ranges, found.categories, fold=found.fold))
            else:
                ranges.extend(found.ranges)
                categories.extend(found.categories)
        self.take()
        return Characters(
            tuple(ranges), tuple(categories), tuple(excluded), negated=negated, fold="i" in self.flags
        )

    def parse_class_set(self) -> Characters | None:
        if self.peek(2) == "[:":
            name, end, _ = self.pattern[self.position + 2 :].partition(":]")
            if end:
                negated = name.startswith("^")
                if name.lstrip("^") not in _POSIX:
                    raise self.error(f"the class [:{name}:] is not known")
                self.position += len(name) + 4
                return Characters(_POSIX[name.lstrip("^")], negated=negated)
        if self.peek() == "\\" and self.peek(2)[1:] in {*"dswDSWpP"}:
            self.take()
            return self.parse_set_escape()
        return None

    def parse_range(self) -> tuple[int, int]:
        low = high = self.parse_class_code()
        if self.peek() == "-" and self.peek(2) not in {"-", "-]"}:
            self.take()
            high = self.parse_class_code()
            if high < low:
                raise self.error("a range in a class runs backwards")
        return low, high

    def parse_class_code(self) -> int:
        char = self.take()
        return self.parse_code() if char == "\\" else ord(char)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
