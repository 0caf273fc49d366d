"""The audit log: who did what when, each entry bound to the one before by its hash.

Whoever changes or removes an entry must write every later one anew, and then differs from the entries that markers on
GitHub name. A hash is SHA-256 over canonical JSON, so that anybody can compute it without our key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

_NOTHING = "0" * 64


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Something that was done: `actor` is a login, or `lockstep`; `kind` a word, `message` says it in a sentence."""

    at: datetime
    kind: str
    message: str
    actor: str = "lockstep"
    project: str = ""
    stage: str = ""
    promotion: str = ""


@dataclass(frozen=True, slots=True)
class AuditHead:
    """An entry by its number, which counts from 1, and its hash."""

    number: int = 0
    hash: str = _NOTHING


BEGINNING = AuditHead()
"""What the first entry follows."""


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An entry as it is kept: `previous` is the hash of the one before."""

    entry: AuditEntry
    number: int
    previous: str
    hash: str


@dataclass(frozen=True, slots=True)
class AuditBounds:
    """What is kept beside the entries: the last one that was forgotten, and the newest one."""

    forgotten: AuditHead = AuditHead()
    newest: AuditHead = AuditHead()


@dataclass(frozen=True, slots=True)
class Anchor:
    """An entry that a signed marker names; `where` says where the marker stands."""

    where: str
    head: AuditHead


def chain_entry(entry: AuditEntry, before: AuditHead) -> AuditRow:
    """The entry as the one that follows `before`."""
    number = before.number + 1
    return AuditRow(entry, number, before.hash, hash_entry(entry, number, before.hash))


def hash_entry(entry: AuditEntry, number: int, previous: str) -> str:
    """The hash of an entry; times count in whole microseconds, as every database keeps them."""
    parts = [
        number,
        round(entry.at.timestamp() * 1_000_000),
        entry.kind,
        entry.actor,
        entry.project,
        entry.stage,
        entry.promotion,
        entry.message,
        previous,
    ]
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def verify_chain(rows: Iterable[AuditRow], bounds: AuditBounds) -> Sequence[str]:
    """Every place where the chain is broken, in order; `rows` are all that are kept, oldest first."""
    problems: list[str] = []
    last = bounds.forgotten
    for row in rows:
        problems += _break(row, last)
        last = AuditHead(row.number, row.hash)
    if last.number < bounds.newest.number:
        problems.append(
            f"entries {last.number + 1} to {bounds.newest.number} are missing: the log ends too early"
        )
    elif last != bounds.newest:
        problems.append(f"the log ends with entry {last.number}, which is not the last one that was written")
    return problems


def _break(row: AuditRow, last: AuditHead) -> list[str]:
    problems = []
    if row.number != last.number + 1:
        missing = f"{last.number + 1}" + (f" to {row.number - 1}" if row.number - last.number > 2 else "")
        problems.append(f"before entry {row.number} something is missing: entry {missing} is not there")
    elif row.previous != last.hash:
        problems.append(
            f"entry {row.number} does not follow entry {last.number}: its link has another hash than that has"
        )
    if hash_entry(row.entry, row.number, row.previous) != row.hash:
        problems.append(f"entry {row.number} was changed: its content does not have its hash")
    return problems


def verify_anchors(
    anchors: Iterable[Anchor], hashes: Mapping[int, str], bounds: AuditBounds
) -> tuple[int, Sequence[str]]:
    """How many markers agree with the log, and what the others name instead.

    A marker of an entry that was forgotten says nothing; `hashes` are those of the kept entries by their number.
    """
    agreed, problems = 0, []
    for anchor in anchors:
        if anchor.head.number <= bounds.forgotten.number:
            continue
        found = hashes.get(anchor.head.number)
        if found == anchor.head.hash:
            agreed += 1
        elif found is None:
            problems.append(f"{anchor.where} names entry {anchor.head.number}, which is not in the log")
        else:
            problems.append(f"{anchor.where} names entry {anchor.head.number} with another hash")
    return agreed, problems
