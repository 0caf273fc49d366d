"""What differs between two states of a file, as the lines of a unified diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

# Above this many pairs of lines the exact matching takes seconds, so the middle is shown as replaced.
_MAX_PAIRS = 4_000_000


class Sign(StrEnum):
    """What became of a line."""

    SAME = " "
    REMOVED = "-"
    ADDED = "+"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a hunk, without its line end; `ended` is false for a last line that has none."""

    sign: Sign
    text: str
    ended: bool = True


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that changed with their surroundings; starts count from 1, 0 stands for an empty side."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class FileDiff:
    """How one file differs. A binary file is only named; a file that is not there before or after says so."""

    path: str
    added: bool
    removed: bool
    binary: bool
    hunks: tuple[Hunk, ...]

    def render(self) -> Iterator[str]:
        """The lines of the unified format, without line ends."""
        yield f"--- {'/dev/null' if self.added else 'a/' + self.path}"
        yield f"+++ {'/dev/null' if self.removed else 'b/' + self.path}"
        if self.binary:
            yield "Binary files differ"
        for hunk in self.hunks:
            yield f"@@ -{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count} @@"
            for line in hunk.lines:
                yield line.sign + line.text
                if not line.ended:
                    yield "\\ No newline at end of file"


def unified_diff(
    path: str, before: bytes | None, after: bytes | None, *, context: int = 3
) -> FileDiff | None:
    """How a file changes; None if it does not. None as bytes means that there is no file.

    A file that is no UTF-8 or holds a NUL is binary. Carriage returns belong to the text of a line.
    """
    if before == after:
        return None
    old, new = _decode(before or b""), _decode(after or b"")
    added, removed = before is None, after is None
    if old is None or new is None:
        return FileDiff(path, added, removed, binary=True, hunks=())
    return FileDiff(
        path, added, removed, binary=False, hunks=tuple(_hunks(_lines(old), _lines(new), context))
    )


def _decode(data: bytes) -> str | None:
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    ended = [line + "\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended


def _hunks(old: list[str], new: list[str], context: int) -> Iterator[Hunk]:
    for group in _groups(_operations(old, new), context):
        old_start, old_end = group[0][1], group[-1][2]
        new_start, new_end = group[0][3], group[-1][4]
        lines: list[Line] = []
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                lines += [_line(Sign.SAME, text) for text in old[i1:i2]]
                continue
            lines += [_line(Sign.REMOVED, text) for text in old[i1:i2]]
            lines += [_line(Sign.ADDED, text) for text in new[j1:j2]]
        old_count, new_count = old_end - old_start, new_end - new_start
        yield Hunk(
            old_start + (1 if old_count else 0), old_count, new_start + (1 if new_count else 0), new_count, tuple(lines)
        )  # fmt: skip


def _line(sign: Sign, text: str) -> Line:
    return Line(sign, text.removesuffix("\n"), ended=text.endswith("\n"))


_Operation: TypeAlias = tuple[str, int, int, int, int]


def _operations(old: list[str], new: list[str]) -> list[_Operation]:
    """Equal and replaced stretches; what both begin and end with is set aside before the lines are matched."""
    shorter = min(len(old), len(new))
    start = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    limit = shorter - start
    end = next((at for at in range(limit) if old[-1 - at] != new[-1 - at]), limit)
    old_end, new_end = len(old) - end, len(new) - end
    middle: list[_Operation]
    if (old_end - start) * (new_end - start) > _MAX_PAIRS:
        middle = [("replace", start, old_end, start, new_end)]
    else:
        matcher = difflib.SequenceMatcher(None, old[start:old_end], new[start:new_end], autojunk=False)
        middle = [
            (kind, i1 + start, i2 + start, j1 + start, j2 + start) for kind, i1, i2, j1, j2 in matcher.get_opcodes()
        ]  # fmt: skip
    head: list[_Operation] = [("equal", 0, start, 0, start)] if start else []
    tail: list[_Operation] = [("equal", old_end, len(old), new_end, len(new))] if end else []
    return [*head, *middle, *tail]


def _groups(operations: list[_Operation], context: int) -> Iterator[list[_Operation]]:
    """The operations cut into hunks: long equal stretches keep only `context` lines at each change."""
    group: list[_Operation] = []
    for position, (kind, i1, i2, j1, j2) in enumerate(operations):
        if kind != "equal":
            group.append((kind, i1, i2, j1, j2))
            continue
        is_last = position == len(operations) - 1
        keep_after = min(context, i2 - i1) if group else 0
        keep_before = 0 if is_last else min(context, i2 - i1)
        if group and not is_last and i2 - i1 <= keep_after + keep_before:
            group.append((kind, i1, i2, j1, j2))
            continue
        if group:
            yield [*group, (kind, i1, i1 + keep_after, j1, j1 + keep_after)]
        group = [] if is_last else [(kind, i2 - keep_before, i2, j2 - keep_before, j2)]
    if group:
        yield group
