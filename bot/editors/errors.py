"""What an editor says when it refuses an edit."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class EditError(Exception):
    """An edit was refused and nothing was changed.

    `message` says what was looked for, what is there and, where one is close, the key that was perhaps meant;
    it names no file, since editors see text alone. `line` counts from 1, None if no line can be named.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.message = message
        self.line = line


def suggest(wanted: str, known: Iterable[str]) -> str:
    """The end of a message: the nearest known keys, or what there is when none is near, or nothing."""
    names = list(dict.fromkeys(known))
    near = difflib.get_close_matches(wanted, names[:2000], n=3, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(repr(name) for name in near)}?"
    if not names:
        return "; there are no keys at that place"
    shown = ", ".join(repr(name) for name in names[:6])
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return f"; there is {shown}{more}"
