"""Path globs as doublestar reads them: `*`, `?`, `**`, `[a-z]`, `[!a]`, `{one,other}` and backslash.

`**` stands for any number of directories where it fills a whole segment, and for `*` elsewhere. A trailing `/**`
also matches the directory itself. The glob must match the whole text.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import lru_cache

from bot.domain.regex import Regex
from bot.domain.regex_syntax import Alternatives, Assertion, Characters, Node, Repeat, Sequence

_MAX_ALTERNATIVES = 500
_MAX_GLOB = 2_000
_ANYTHING = Repeat(Characters(((0, 0x10FFFF),)), 0, None)
_NO_SLASH = Characters(((47, 47),), negated=True)
_STAR = Repeat(_NO_SLASH, 0, None)
_SLASH = Characters(((47, 47),))
_DIRECTORIES = Repeat(Sequence((_STAR, _SLASH)), 0, None)
_EMPTY = Sequence()
_SEGMENT = "\0"
"""Marks, inside an expanded alternative, that doublestar takes its beginning for that of a segment."""


@lru_cache(maxsize=512)
def compile_glob(pattern: str) -> Regex:
    """The glob as an expression to search with; raises ValueError if it is malformed or beyond all measure."""
    if len(pattern) > _MAX_GLOB:
        raise ValueError(f"the glob is longer than {_MAX_GLOB} characters")
    _check(pattern)
    choices = tuple(_translate(expanded) for expanded in _expand(pattern.replace(_SEGMENT, "\\\0")))
    return Regex(pattern, Sequence((Assertion("begin-text"), Alternatives(choices), Assertion("end-text"))))


def _check(pattern: str) -> None:
    depth = position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            position += 1
            if position == len(pattern):
                raise ValueError(f"the glob {pattern!r} ends in a backslash")
        elif char == "[":
            position = _end_of_class(pattern, position)
        elif char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth < 0:
                raise ValueError(f"the glob {pattern!r} closes a '}}' that was not opened")
        position += 1
    if depth:
        raise ValueError(f"the glob {pattern!r} has no '}}' for a '{{'")


def _end_of_class(pattern: str, start: int) -> int:
    position = start + 1
    if pattern[position : position + 1] in {"^", "!"}:
        position += 1
    if pattern[position : position + 1] == "]":
        raise ValueError(f"the glob {pattern!r} has an empty class")
    while position < len(pattern):
        if pattern[position] == "\\":
            position += 1
        elif pattern[position] == "]":
            return position
        position += 1
    raise ValueError(f"the glob {pattern!r} has no ']' for a '['")


def _expand(pattern: str) -> list[str]:
    """The pattern once for each choice of its alternatives; braces in classes and behind backslashes stay."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        current = waiting.pop()
        found = _first_braces(current)
        if found is None:
            done.append(current)
        else:
            start, commas, end = found
            edges = [start, *commas, end]
            for left, right in itertools.pairwise(edges):
                waiting.append(f"{current[:start]}{_SEGMENT}{current[left + 1 : right]}{current[end + 1 :]}")
        if len(done) + len(waiting) > _MAX_ALTERNATIVES:
            raise ValueError(f"the glob {pattern!r} has more than {_MAX_ALTERNATIVES} alternatives")
    return done


def _first_braces(pattern: str) -> tuple[int, list[int], int] | None:
    start, depth, position = -1, 0, 0
    commas: list[int] = []
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            position += 1
        elif char == "[":
            position = _end_of_class(pattern, position)
        elif char == "{":
            start = position if depth == 0 else start
            depth += 1
        elif char == "," and depth == 1:
            commas.append(position)
        elif char == "}":
            depth -= 1
            if depth == 0:
                return start, commas, position
        position += 1
    return None


@dataclass(slots=True)
class _Translation:
    pattern: str
    position: int = 0
    at_segment_start: bool = True
    parts: list[Node] = field(default_factory=list)


def _translate(pattern: str) -> Node:
    """One pattern without alternatives as a tree."""
    work = _Translation(pattern)
    while work.position < len(pattern):
        if _translate_trailing(work):
            break
        char = pattern[work.position]
        if char == _SEGMENT:
            work.at_segment_start = True
            work.position += 1
        elif char == "*":
            _translate_stars(work)
        else:
            _translate_character(work, char)
    return Sequence(tuple(work.parts))


def _translate_trailing(work: _Translation) -> bool:
    # `a/**` and `a/**/` match `a` itself, since it might be a directory.
    rest = work.pattern[work.position :]
    if rest not in {"/**", "/**/"}:
        return False
    inside: Node = _ANYTHING if rest == "/**" else _DIRECTORIES
    work.parts.append(Alternatives((Sequence((_SLASH, inside)), _EMPTY)))
    return True


def _translate_stars(work: _Translation) -> None:
    rest = work.pattern[work.position :]
    if work.at_segment_start and rest == "**":
        work.parts.append(_ANYTHING)
        work.position += 2
    elif work.at_segment_start and rest.startswith("**/"):
        work.parts.append(_DIRECTORIES)
        work.position += 3
    else:
        work.parts.append(_STAR)
        work.position += 2 if rest.startswith("**") else 1
        work.at_segment_start = False


def _translate_character(work: _Translation, char: str) -> None:
    work.at_segment_start = char == "/"
    if char == "?":
        work.parts.append(_NO_SLASH)
    elif char == "[":
        end = _end_of_class(work.pattern, work.position)
        work.parts.append(_class(work.pattern[work.position + 1 : end]))
        work.position = end
    else:
        if char == "\\":
            work.position += 1
            char = work.pattern[work.position]
        work.parts.append(Characters(((ord(char), ord(char)),)))
    work.position += 1


def _class(body: str) -> Characters:
    negated = body[0] in {"^", "!"}
    codes = _class_codes(body[1:] if negated else body)
    ranges: list[tuple[int, int]] = []
    index = 0
    while index < len(codes):
        low, is_dash = codes[index]
        if not is_dash and index + 2 < len(codes) and codes[index + 1][1]:
            ranges.append((low, codes[index + 2][0]))
            index += 3
        else:
            ranges.append((low, low))
            index += 1
    return Characters(tuple(ranges), negated=negated)


def _class_codes(body: str) -> list[tuple[int, bool]]:
    """Code points of a class, each with whether it is a dash that may make a range."""
    codes: list[tuple[int, bool]] = []
    position = 0
    while position < len(body):
        escaped = body[position] == "\\" and position + 1 < len(body)
        position += escaped
        codes.append((ord(body[position]), body[position] == "-" and not escaped))
        position += 1
    return codes
