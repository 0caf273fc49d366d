"""`/answer [STEP] NAME=VALUE ...`: what somebody answers to a step, as it was typed.

A value is quoted where it has blanks in it: `name="two words"`, with `\\"` and `\\\\` for those characters, or
`name='as it stands'`. Further pairs may stand in the lines right below; the first blank line ends them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.domain.command_arguments import CONTROL, WrongArgumentError
from bot.domain.questions import FIELD_NAME

_ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:-]{0,126}")
_PAIR = re.compile(
    r"""(?P<name>[^\s="']+)=(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>[^']*)'|(?P<plain>[^\s"'][^\s]*)?)(?=\s|$)"""
)
_ESCAPED = re.compile(r"\\(.)")
_MOST = 50
_LONGEST = 4000
_USE = 'write NAME=VALUE, and a value with blanks in it as NAME="..."'


@dataclass(frozen=True, slots=True)
class Answer:
    """The pairs that were given, in order; an empty alias means the one step that asks. No `repr` shows a value."""

    alias: str = ""
    values: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def parse_answer(rest: str, below: Sequence[str]) -> Answer:
    """The answer on the rest of a line and in the lines below it; raises WrongArgumentError."""
    lines = [rest]
    for line in below:
        stripped = line.strip(" \t\r")
        if not stripped:
            break
        lines.append(stripped)
    if sum(len(line) for line in lines) > _LONGEST:
        raise WrongArgumentError(f"an answer has at most {_LONGEST} characters")
    first, *others = rest.split(None, 1)[:2] or [""]
    alias = ""
    if first and "=" not in first:
        if _ALIAS.fullmatch(first) is None:
            raise WrongArgumentError("a step is named by its alias, the word behind `as:`")
        alias, lines[0] = first, others[0] if others else ""
    pairs: dict[str, str] = {}
    for line in lines:
        for name, value in _pairs(line):
            if name in pairs:
                raise WrongArgumentError(f"{name} stands there twice, so it is not clear what is meant")
            pairs[name] = value
    if len(pairs) > _MOST:
        raise WrongArgumentError(f"an answer has at most {_MOST} values")
    return Answer(alias, tuple(pairs.items()))


def _pairs(line: str) -> list[tuple[str, str]]:
    if CONTROL.search(line.replace("\t", " ")) is not None:
        raise WrongArgumentError("the answer holds invisible characters: type it anew")
    found, at = [], 0
    while at < len(line):
        match = _PAIR.match(line, at)
        if match is None or FIELD_NAME.fullmatch(match["name"]) is None:
            raise WrongArgumentError(_USE)
        value = match["plain"] or match["single"] or ""
        if match["double"] is not None:
            value = _ESCAPED.sub(r"\1", match["double"])
        found.append((match["name"], value))
        at = match.end()
        while at < len(line) and line[at] in " \t":
            at += 1
    return found
