"""Patches as unified diffs, with holes where a value does not exist yet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from bot.domain.files import Change, Mode
from bot.domain.unified import FileDiff, Sign, unified_diff

_MOST_LINE = 400
"""Characters of one line; a file may be a single line of any length."""


def patch_text(changes: Sequence[Change], origins: Mapping[str, str]) -> str:
    """The changes as one unified diff; sentinels are replaced by what they stand for, as `<known after apply: x>`."""
    text = "\n".join(line for change in changes for line in _lines(change, origins))
    return _fill(text, origins)


def _lines(change: Change, origins: Mapping[str, str]) -> Iterator[str]:
    path, before, after = change.path.replace("\n", "\\n"), change.before, change.after
    if before is not None and after is not None and before.mode is not after.mode:
        yield f"{path}: mode {before.mode} becomes {after.mode}"
    if after is not None and after.mode in (Mode.SYMLINK, Mode.SUBMODULE):
        yield f"{path} is a {'symbolic link' if after.mode is Mode.SYMLINK else 'submodule'}"
    found = unified_diff(
        path, before.data if before is not None else None, after.data if after is not None else None
    )
    if found is None:
        return
    mixed = _changes_line_ends(found)
    for line in found.render():
        shown = line[:-1] + "␍" * mixed if line.endswith("\r") else line
        # A sentinel that is cut in two would be shown as itself.
        yield shown if len(shown) <= _MOST_LINE else f"{_fill(shown, origins)[:_MOST_LINE]}…"


def _changes_line_ends(found: FileDiff) -> bool:
    """Whether carriage returns come or go; where all lines have them they are left out."""
    changed = [line for hunk in found.hunks for line in hunk.lines if line.sign is not Sign.SAME]
    ends = {line.text.endswith("\r") for line in changed}
    return len(ends) > 1


def _fill(text: str, origins: Mapping[str, str]) -> str:
    if not origins:
        return text
    pattern = re.compile("|".join(re.escape(s) for s in sorted(origins, key=len, reverse=True)))
    return pattern.sub(lambda match: f"<{origins[match[0]]}>", text)


def counted(changes: Sequence[Change]) -> str:
    """How many lines come and go: `+3 −1`."""
    added = removed = 0
    for change in changes:
        before, after = change.before, change.after
        found = unified_diff(
            change.path,
            before.data if before is not None else None,
            after.data if after is not None else None,
        )
        for hunk in found.hunks if found is not None else ():
            added += sum(line.sign is Sign.ADDED for line in hunk.lines)
            removed += sum(line.sign is Sign.REMOVED for line in hunk.lines)
    return f"+{added:,} −{removed:,}"
