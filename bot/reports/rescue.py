"""What the commands print that deal with the database: what was restored, the audit log, a Stage's decision."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from bot.domain.audit import AuditBounds, AuditRow
from bot.domain.promotion import Promotion
from bot.reports.markdown import clean
from bot.reports.wording import moment, plural


def render_restored(
    promotions: Sequence[Promotion],
    counts: Sequence[tuple[str, int]],
    known: int,
    missing: Sequence[tuple[str, str]],
) -> str:
    """A line for each restored Promotion, the sums, and what could not be restored and why."""
    lines = [_restored(promotion) for promotion in promotions]
    sums = ", ".join(f"{count} {name}" for name, count in counts)
    lines.append(
        f"restored: {sums}" + (f"; {plural(known, 'promotion')} were known already" if known else "")
    )
    lines += [f"not restored: {clean(where)}: {clean(why)}" for where, why in missing]
    return "\n".join(lines)


def _restored(promotion: Promotion) -> str:
    where = f"{promotion.project}/{promotion.stage} #{promotion.pull}"
    said = (
        "open, previewed again"
        if not promotion.state.ended
        else f"{promotion.state.value}: {promotion.reason}"
    )
    return clean(f"{where:<24} {promotion.freight.alias:<20} {said}")


def render_audit(rows: Iterable[AuditRow]) -> str:
    """A line for each entry."""
    return "\n".join(
        clean(
            f"{row.number:>6}  {moment(row.entry.at)}  {row.entry.actor}  {row.entry.kind}  "
            f"{_where(row)}{' '.join(row.entry.message.split())}"
        )
        for row in rows
    )


def render_audit_json(rows: Iterable[AuditRow]) -> str:
    """A JSON object a line, with everything that the hash is made of."""
    return "\n".join(
        json.dumps(
            {
                "number": row.number,
                "at": row.entry.at.isoformat(),
                "kind": row.entry.kind,
                "actor": row.entry.actor,
                "project": row.entry.project,
                "stage": row.entry.stage,
                "promotion": row.entry.promotion,
                "message": row.entry.message,
                "previous": row.previous,
                "hash": row.hash,
            }
        )
        for row in rows
    )


def _where(row: AuditRow) -> str:
    stage = f"{row.entry.project}/{row.entry.stage}" if row.entry.stage else row.entry.project
    return f"{stage}: " if stage else ""


def render_verdict(entries: int, bounds: AuditBounds, anchors: int, problems: Sequence[str]) -> str:
    """Every place where the log is broken, and what it was held against."""
    kept = f"{plural(entries, 'entry', 'entries')} up to {bounds.newest.number}"
    if bounds.forgotten.number:
        kept += f" (those up to {bounds.forgotten.number} are not kept)"
    held = f"{kept}, held against {plural(anchors, 'marker')} on GitHub that agree"
    if not problems:
        return f"the audit log is unbroken: {held}"
    return "\n".join([*(clean(problem) for problem in problems), f"the audit log is broken: {held}"])
