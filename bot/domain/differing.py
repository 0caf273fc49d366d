"""Whether a Stage's steps would write something else than what stands on its branch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from bot.domain.files import Change
from bot.domain.review import Preview

_GONE = "removed"
_SHORTER = "shorter"

Wish = Counter[tuple[str, bytes]]
"""What a file would gain: lines with their number, that it goes away, or that it only loses lines."""


def wishes_of(preview: Preview) -> Mapping[str, Wish]:
    """What a walk over the Stage's steps would write to the target, by path; values that are not known are left out."""
    changes: dict[str, Change] = {}
    commits = [commit.changes for commit in preview.split.prepared]
    for change in [change for commit in [*commits, preview.split.deferred.changes] for change in commit]:
        first = changes.get(change.path, change)
        changes[change.path] = Change(change.path, first.before, change.after)
    sentinels = [sentinel.encode() for sentinel in preview.origins]
    wishes = {path: _wish(change, sentinels) for path, change in changes.items()}
    return {path: wish for path, wish in wishes.items() if wish}


def _wish(change: Change, sentinels: Collection[bytes]) -> Wish:
    if change.after is None:
        return Counter({(_GONE, b""): 1} if change.before is not None else {})
    before = Counter(change.before.data.split(b"\n") if change.before is not None else [])
    after = Counter(change.after.data.split(b"\n"))
    gained = after - before
    known = {line: n for line, n in gained.items() if not any(sentinel in line for sentinel in sentinels)}
    if not gained and before - after:
        return Counter({(_SHORTER, b"\n".join(sorted(before - after))): 1})
    return Counter({("line", line): n for line, n in known.items()})


def find_unwritten(
    left: Mapping[str, Wish], now: Mapping[str, Wish], paths: Collection[str]
) -> tuple[str, ...]:
    """The paths to which the steps would write now what they would not write right after they had run.

    Steps that never write the same twice (a counter) are thus not taken for a difference.
    """
    return tuple(
        path for path, wish in sorted(now.items()) if path in paths and wish - left.get(path, Counter())
    )
