"""What an approver accepted in place of what was expected, carried on to what follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.files import Change
from bot.domain.review import StepReport
from bot.domain.values import Value


def changed_values(approved: Value, actual: Value) -> tuple[tuple[str, str], ...]:
    """Known texts and numbers of one value that are others in another of the same shape, as pairs of their texts."""
    match approved, actual:
        case dict(), dict():
            return tuple(
                pair
                for key, value in approved.items()
                if key in actual
                for pair in changed_values(value, actual[key])
            )
        case list(), list():
            paired = zip(approved, actual, strict=False)
            return tuple(pair for one, other in paired for pair in changed_values(one, other))
        case (str() | int() | float(), str() | int() | float()) if approved != actual and str(approved):
            return ((str(approved), str(actual)),)
        case _:
            return ()


def changed_outputs(approved: Sequence[StepReport], now: Sequence[StepReport]) -> tuple[tuple[str, str], ...]:
    """Outputs of Terraform that are others than was expected, as pairs of texts.

    A walk that came past such an output did so because an approver has accepted it.
    """
    pairs: list[tuple[str, str]] = []
    for report in now:
        if report.kind == "tf-output":
            pairs += changed_values(dict(approved[report.index].output), dict(report.output))
    return tuple(pairs)


def with_accepted(
    approved: Sequence[Change], actual: Sequence[Change], values: Sequence[tuple[str, str]]
) -> list[Change]:
    """The approved changes with those lines of the actual ones that differ by accepted values alone.

    `values` are pairs of what was expected and what was accepted. A file that was not to change may do so for them.
    """
    if not values:
        return list(approved)
    wanted = {change.path: change for change in approved}
    for change in actual:
        known = wanted.get(change.path, Change(change.path, change.before, change.before))
        merged = _merge(known, change, values)
        if merged is not None:
            wanted[change.path] = merged
    return list(wanted.values())


def _merge(approved: Change, actual: Change, values: Sequence[tuple[str, str]]) -> Change | None:
    """The approved change with the lines of the actual one that follow from the values; None if there are none."""
    if approved.after is None or actual.after is None:
        return None
    lines, theirs = approved.after.data.split(b"\n"), actual.after.data.split(b"\n")
    if len(lines) != len(theirs):
        return None
    merged = [
        other if line != other and _put(line, values) == other else line
        for line, other in zip(lines, theirs, strict=True)
    ]
    return (
        replace(approved, after=replace(approved.after, data=b"\n".join(merged))) if merged != lines else None
    )


def _put(line: bytes, values: Sequence[tuple[str, str]]) -> bytes:
    for old, new in sorted(values, key=lambda pair: len(pair[0]), reverse=True):
        line = line.replace(old.encode(), new.encode())
    return line
