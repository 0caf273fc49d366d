"""Whether what would be committed is the approved patch with its holes filled (section 8 of the review gate)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from bot.domain.files import Change, File
from bot.domain.promotion import StepStatus
from bot.domain.review import Presence, StepReport


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which the actual patch is not the approved one."""

    path: str
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"{self.path}: approved {self.expected}, now {self.actual}"


def compare_patch(
    approved: Sequence[Change], actual: Sequence[Change], origins: Mapping[str, str]
) -> tuple[Difference, ...]:
    """How an actual patch differs from the approved one.

    `origins` maps the sentinels of the approved patch to what they stand for; a sentinel takes any text of one line.
    Files, modes, and every known byte must be equal.
    """
    wanted = {change.path: change for change in approved}
    got = {change.path: change for change in actual}
    found: list[Difference] = []
    for path in sorted(set(wanted) | set(got)):
        if path not in got:
            found.append(Difference(path, "a change", "none"))
        elif path not in wanted:
            found.append(Difference(path, "no change", "a change"))
        else:
            found.extend(_compare_file(path, wanted[path], got[path], origins))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Filled:
    """A line of a patch that was approved with a hole, `<origin>` in place of it, and what it became."""

    path: str
    approved: str
    actual: str


def find_filled(
    approved: Sequence[Change], actual: Sequence[Change], origins: Mapping[str, str]
) -> tuple[Filled, ...]:
    """The lines of an actual patch whose values were not known when it was approved; it fits the approved one."""
    wanted = {change.path: change for change in approved}
    found: list[Filled] = []
    for change in actual:
        if change.path not in wanted:
            continue
        pairs = zip(*_paired(wanted[change.path], change), strict=False)
        found += [
            Filled(change.path, _with_origins(line, origins).strip(), now.strip())
            for line, now in pairs
            if any(sentinel in line for sentinel in origins)
        ]
    return tuple(found)


def _paired(approved: Change, actual: Change) -> tuple[list[str], list[str]]:
    """Lines of the one that belong to those of the other."""
    if approved.before == actual.before and approved.after is not None and actual.after is not None:
        return _lines(approved.after), _lines(actual.after)
    return _edits(approved).added, _edits(actual).added


def paths_left_open(
    approved: Sequence[StepReport], now: Sequence[StepReport], checkout: str
) -> frozenset[str]:
    """Paths of a checkout that hold an edit which was to be made only under a condition, and was not made.

    What a reviewer saw of such a file was all under that condition, so it cannot be compared.
    """
    made = {step.alias for step in now if step.status is not StepStatus.SKIPPED}
    prefix = "" if checkout in ("", ".") else f"{checkout}/"
    return frozenset(
        path.removeprefix(prefix)
        for step in approved
        if step.presence is Presence.CONDITIONAL and step.alias not in made
        for path in step.wrote
        if path.startswith(prefix)
    )


def _compare_file(
    path: str, approved: Change, actual: Change, origins: Mapping[str, str]
) -> list[Difference]:
    wanted, got = approved.after, actual.after
    if wanted is None or got is None:
        if wanted is got:
            return []
        return [
            Difference(path, "removed" if wanted is None else "kept", "removed" if got is None else "kept")
        ]
    if wanted.mode is not got.mode:
        return [Difference(path, f"mode {wanted.mode}", f"mode {got.mode}")]
    if wanted.data == got.data:
        return []
    if approved.before == actual.before:
        return _compare_lines(path, _lines(wanted), _lines(got), origins)
    # The file has changed elsewhere since: what counts is that the same lines become the same lines.
    mine, theirs = _edits(approved), _edits(actual)
    removed = _compare_lines(path, mine.removed, theirs.removed, {})
    return removed or _compare_lines(path, mine.added, theirs.added, origins)


@dataclass(frozen=True, slots=True)
class _Edits:
    """The lines that a change takes out and puts in, in order."""

    removed: list[str]
    added: list[str]


def _edits(change: Change) -> _Edits:
    before = _lines(change.before) if change.before is not None else []
    after = _lines(change.after) if change.after is not None else []
    removed: list[str] = []
    added: list[str] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            removed += before[i1:i2]
            added += after[j1:j2]
    return _Edits(removed, added)


def _compare_lines(
    path: str, wanted: list[str], got: list[str], origins: Mapping[str, str]
) -> list[Difference]:
    if len(wanted) != len(got):
        return [Difference(path, f"{len(wanted)} lines", f"{len(got)} lines")]
    found = []
    for number, (line, actual) in enumerate(zip(wanted, got, strict=True), start=1):
        if line != actual and not _fits(line, actual, origins):
            shown = _with_origins(line, origins)
            found.append(Difference(f"{path}:{number}", shown.strip(), actual.strip()))
    return found


def _with_origins(line: str, origins: Mapping[str, str]) -> str:
    for sentinel in sorted(origins, key=len, reverse=True):
        line = line.replace(sentinel, f"<{origins[sentinel]}>")
    return line


def _fits(line: str, actual: str, origins: Mapping[str, str]) -> bool:
    """Whether a line is the approved one with its holes filled; quotes may come round a filled hole.

    What stands between the holes is looked for from left to right, so that no value, however long, makes it slow.
    """
    first, *others = _known_parts(line, origins)
    if not others or not actual.startswith(first) or actual.count("\r") != line.count("\r"):
        return False
    *middle, last = others
    at = len(first)
    for known in middle:
        found = actual.find(known, at)
        if found < 0:
            return False
        at = found + len(known)
    return len(actual) - len(last) >= at and actual.endswith(last)


def _known_parts(line: str, origins: Mapping[str, str]) -> list[str]:
    """What stands before, between and behind the holes of a line."""
    parts = [line]
    # Longest first, since one sentinel may begin like another.
    for sentinel in sorted(origins, key=len, reverse=True):
        parts = [piece for part in parts for piece in part.split(sentinel)]
    return parts


def _lines(file: File) -> list[str]:
    return file.data.decode("utf-8", "surrogateescape").split("\n")
