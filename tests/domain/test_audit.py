"""Whatever is done to the audit log shows, and where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.domain.audit import (
    BEGINNING,
    Anchor,
    AuditBounds,
    AuditEntry,
    AuditHead,
    AuditRow,
    chain_entry,
    verify_anchors,
    verify_chain,
)

AT = datetime(2026, 5, 1, 12, 30, 0, 250_000, tzinfo=UTC)


def chain(count: int, after: AuditHead = BEGINNING) -> list[AuditRow]:
    rows, last = [], after
    for number in range(count):
        rows.append(chain_entry(AuditEntry(AT, "command", f"entry {number}", "olivia", "shop", "dev"), last))
        last = AuditHead(rows[-1].number, rows[-1].hash)
    return rows


def bounds(rows: Sequence[AuditRow], forgotten: AuditHead = BEGINNING) -> AuditBounds:
    return AuditBounds(forgotten, AuditHead(rows[-1].number, rows[-1].hash))


def with_row(rows: list[AuditRow], row: AuditRow) -> list[AuditRow]:
    return [row if other.number == row.number else other for other in rows]


def rewritten(rows: list[AuditRow]) -> list[AuditRow]:
    """The third entry changed, with a hash that fits it."""
    before = AuditHead(rows[1].number, rows[1].hash)
    return with_row(rows, chain_entry(replace(rows[2].entry, message="other"), before))


def test_a_whole_log_is_unbroken() -> None:
    rows = chain(5)
    assert verify_chain(rows, bounds(rows)) == []


def test_a_log_without_its_oldest_entries_is_unbroken() -> None:
    rows = chain(5)
    assert verify_chain(rows[2:], bounds(rows, AuditHead(2, rows[1].hash))) == []


def test_a_log_that_never_had_an_entry_is_unbroken() -> None:
    assert verify_chain([], AuditBounds()) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda rows: with_row(rows, replace(rows[2], entry=replace(rows[2].entry, actor="x"))),
            "entry 3 was changed",
        ),
        (rewritten, "entry 4 does not follow entry 3"),
        (lambda rows: rows[:2] + rows[3:], "before entry 4 something is missing: entry 3 is not there"),
        (lambda rows: rows[2:], "before entry 3 something is missing: entry 1 to 2 is not there"),
        (lambda rows: rows[:3], "entries 4 to 5 are missing"),
        (lambda rows: rows + chain(6)[5:], "ends with entry 6, which is not the last one"),
    ],
    ids=[
        "an entry that was changed",
        "an entry that was changed with its hash",
        "an entry that was removed",
        "the oldest entries, removed by somebody else than the bot",
        "the newest entries, removed",
        "an entry that was added by somebody else",
    ],
)
def test_what_was_done_to_a_log_shows(change: Callable[[list[AuditRow]], list[AuditRow]], says: str) -> None:
    rows = chain(5)
    problems = verify_chain(change(rows), bounds(rows))
    assert len(problems) == 1
    assert says in problems[0]


def test_a_log_that_was_written_anew_as_a_whole_differs_from_the_markers() -> None:
    rows, forged = chain(5), chain(5, AuditHead(0, "f" * 64))
    anchors = [Anchor("a/b#1", AuditHead(2, rows[1].hash)), Anchor("a/b#2", AuditHead(9, "9" * 64))]
    hashes = {row.number: row.hash for row in forged}
    agreed, problems = verify_anchors(anchors, hashes, bounds(forged))
    assert agreed == 0
    assert problems == [
        "a/b#1 names entry 2 with another hash",
        "a/b#2 names entry 9, which is not in the log",
    ]


def test_a_marker_of_an_entry_that_was_forgotten_says_nothing() -> None:
    rows = chain(5)
    anchors = [Anchor("a/b#1", AuditHead(number, rows[number - 1].hash)) for number in (1, 4)]
    kept = {row.number: row.hash for row in rows[2:]}
    assert verify_anchors(anchors, kept, bounds(rows, AuditHead(2, rows[1].hash))) == (1, [])
