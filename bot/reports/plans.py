"""Terraform plans as people read them: counts first, then addresses, then the text."""

from __future__ import annotations

import json

from bot.domain.review import ApplyKind, ApplyRecord
from bot.domain.terraform import Action, OutputChange, Plan, ResourceChange, count
from bot.domain.values import Value, show
from bot.reports.markdown import code, details, fence, plain, shorten, table

_MOST_ROWS = 50
_SYMBOLS = {
    Action.CREATE: "+",
    Action.UPDATE: "~",
    Action.REPLACE: "-/+",
    Action.DELETE: "-",
    Action.FORGET: "×",
    Action.READ: "<=",
    Action.NO_OP: " ",
}
_STATEFUL = (
    "db",
    "rds",
    "bucket",
    "disk",
    "volume",
    "dns",
    "zone",
    "kms",
    "key",
    "iam",
    "dynamodb",
    "database",
    "sql",
)


def counts_line(plan: Plan) -> str:
    """`1 to create, 2 to update`; outputs are named too, since Terraform's own line leaves them out."""
    counts = count(plan)
    parts = [
        (counts.create, "to create"),
        (counts.update, "to update"),
        (counts.replace, "to replace"),
        (counts.delete, "to delete"),
        (counts.import_, "to import"),
        (counts.move, "to move"),
        (counts.forget, "to forget"),
        (counts.outputs, "output" if counts.outputs == 1 else "outputs"),
    ]
    shown = [f"{number} {what}" for number, what in parts if number]
    return ", ".join(shown) or "no changes"


def apply_line(apply: ApplyRecord) -> str:
    """What one apply will do, in one line."""
    match apply.kind:
        case ApplyKind.UNCHANGED:
            return f"not planned: its inputs equal those applied at {code(apply.applied_at[:12])}"
        case ApplyKind.EMPTY:
            return "planned: no changes"
        case ApplyKind.PROVISIONAL:
            found = counts_line(apply.plan) if apply.plan is not None else "not planned"
            return f"provisional, {found} today: planned again after the earlier apply"
        case ApplyKind.UNKNOWABLE:
            return "cannot be planned yet: it needs what an earlier step will tell"
        case _:
            return counts_line(apply.plan) if apply.plan is not None else "not planned"


def destroy_warning(plan: Plan) -> str:
    """A warning that names what is lost, empty if nothing is."""
    lost = [r for r in plan.resources if r.action in (Action.DELETE, Action.REPLACE)]
    if not lost:
        return ""
    stateful = [r for r in lost if any(word in r.type.lower().split("_") for word in _STATEFUL)]
    names = ", ".join(code(r.address) for r in (stateful or lost)[:10])
    more = f" and {len(lost) - 10} more" if len(lost) > 10 else ""
    if stateful:
        return f"> [!CAUTION]\n> This plan deletes or replaces resources that hold data: {names}{more}."
    return f"> [!WARNING]\n> This plan deletes or replaces: {names}{more}."


def changes_table(plan: Plan) -> str:
    """One row a resource, at most fifty."""
    rows = [_row(change) for change in plan.changes[:_MOST_ROWS]]
    if not rows:
        return ""
    text = table(["", "Resource", "What"], rows)
    if len(plan.changes) > _MOST_ROWS:
        text += f"\n\n… and {len(plan.changes) - _MOST_ROWS} more."
    return text


def _row(change: ResourceChange) -> list[str]:
    paths = [a.path for a in change.attributes]
    what = change.action.value
    if change.importing:
        what = f"import, {what}"
    if change.moved_from:
        what = f"moved from {change.moved_from}, {what}"
    forces = [a.path for a in change.attributes if a.forces_replacement]
    if forces:
        what += f" because of {', '.join(forces[:3])}"
    elif change.action is Action.UPDATE and paths:
        what += f": {', '.join(paths[:4])}{' …' if len(paths) > 4 else ''}"
    return [code(_SYMBOLS[change.action]), code(change.address), plain(what)]


def outputs_table(plan: Plan) -> str:
    """Changed outputs from old to new, unknown ones as such."""
    changed = [o for o in plan.outputs if o.action is not Action.NO_OP]
    if not changed:
        return ""
    return table(["Output", "Now", "After the apply"], [_output(o) for o in changed[:_MOST_ROWS]])


def _output(output: OutputChange) -> list[str]:
    after = "removed" if output.absent else code(value_text(output.after))
    return [code(output.name), code(value_text(output.before)), after]


def value_text(value: Value) -> str:
    """A value on one line; marks as their bracketed text."""
    shown = show(value)
    text = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
    return text if len(text) <= 120 else text[:117] + "…"


def full_text(apply: ApplyRecord, limit: int) -> str:
    """Terraform's own text, folded, shortened to a number of bytes; empty if there is none."""
    if not apply.text:
        return ""
    return details(
        f"Terraform's own words for <code>{plain(apply.directory)}</code>", fence(shorten(apply.text, limit))
    )
