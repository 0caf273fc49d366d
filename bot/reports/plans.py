"""Terraform plans as people read them: counts first, what is lost, then resource by resource, then Terraform's text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.review import ApplyKind, ApplyRecord, Preview
from bot.domain.terraform import Action, AttributeChange, OutputChange, Plan, ResourceChange, count
from bot.domain.values import Sensitive, Text, Unknown, Value, show
from bot.reports.fitting import Section, head_of
from bot.reports.markdown import (
    bullets,
    caution,
    clean,
    code,
    cut,
    details,
    fence,
    html_code,
    names,
    plain,
    table,
)
from bot.reports.wording import plural

_MOST_ROWS = 100
_MOST_NAMES = 60
_MOST_LOST = 10
_VALUE = 60
_WHOLE = 1_000_000
_SYMBOLS = {
    Action.CREATE: "+",
    Action.UPDATE: "~",
    Action.REPLACE: "-/+",
    Action.DELETE: "-",
    Action.FORGET: "×",
    Action.READ: "<=",
    Action.NO_OP: "=",
}
_DATA = frozenset(
    {
        "bucket",
        "database",
        "db",
        "disk",
        "dns",
        "dynamodb",
        "efs",
        "elasticache",
        "elasticsearch",
        "iam",
        "key",
    }
    | {"kms", "opensearch", "rds", "redis", "secret", "secretsmanager", "spanner", "sql", "storage", "table"}
    | {"volume", "zone"}
)
"""Parts of resource types whose loss a person cannot undo by applying again: data, keys, names, rights."""
_REASONS = {
    "delete_because_no_resource_config": "no longer in the configuration",
    "delete_because_no_module": "its module is no longer in the configuration",
    "delete_because_wrong_repetition": "its index is of another kind now",
    "delete_because_count_index": "its index is beyond `count` now",
    "delete_because_each_key": "its key is no longer in `for_each`",
    "delete_because_no_move_target": "it moves to where nothing is configured",
    "replace_because_tainted": "it is tainted",
    "replace_by_request": "asked for by `-replace`",
    "replace_by_triggers": "by `replace_triggered_by`",
}
"""Terraform's reasons (`action_reason` of its plan JSON) in words; those that attributes tell are left to them."""


# -- in one line -------------------------------------------------------------------------------------------------


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
    return ", ".join(f"{number:,} {what}" for number, what in parts if number) or "no changes"


def apply_words(apply: ApplyRecord) -> str:
    """What one apply will do, as prose for `plain` or a title."""
    match apply.kind:
        case ApplyKind.UNCHANGED:
            return f"not planned: its inputs equal those applied at `{apply.applied_at[:12] or 'the last apply'}`"
        case ApplyKind.EMPTY:
            return "no changes"
        case ApplyKind.KEPT:
            return "not planned: this rollback keeps the infrastructure as it is"
        case ApplyKind.UNKNOWABLE:
            return "planned after the merge: it needs what an earlier step will tell"
    if apply.plan is None:
        return "the plan failed"
    found = counts_line(apply.plan)
    match apply.kind:
        case ApplyKind.PROVISIONAL:
            return f"{found} as of today: an earlier apply comes first, then it is planned again"
        case ApplyKind.OUTPUTS_ONLY:
            return f"{found}, no resource changes"
        case _:
            return found


def apply_title(apply: ApplyRecord, directory: str) -> str:
    """What one apply will do and where, as prose for a title."""
    words = apply_words(apply)
    match apply.kind:
        case ApplyKind.UNCHANGED | ApplyKind.UNKNOWABLE | ApplyKind.KEPT:
            said, _, why = words.partition(": ")
            return f"{said} in {directory}: {why}"
        case ApplyKind.PROVISIONAL if apply.plan is not None:
            return f"{counts_line(apply.plan)} in {directory} as of today"
        case _:
            return f"{words} in {directory}"


def apply_notes(apply: ApplyRecord) -> list[str]:
    """What a reviewer should know beside the counts, as prose for `plain`: what is not this release's doing."""
    plan, notes = apply.plan, []
    if apply.previous_failed:
        notes.append("the last apply here failed")
    if plan is None:
        return notes
    grouped = group_changes(apply)
    if grouped.pending and not grouped.own:
        notes.append("all of it pending from an earlier change that was never applied")
    elif grouped.pending:
        notes.append(f"{len(grouped.pending):,} pending from an earlier change that was never applied")
    if grouped.drifted:
        notes.append(f"{len(grouped.drifted):,} also changed outside of Terraform")
    return notes


def is_loss(change: ResourceChange) -> bool:
    """Whether something that exists is destroyed."""
    return change.action in (Action.DELETE, Action.REPLACE)


def holds_data(change: ResourceChange) -> bool:
    """Whether losing it loses data, keys, names or rights."""
    return not _DATA.isdisjoint(change.type.lower().split("_"))


@dataclass(frozen=True, slots=True)
class Grouped:
    """The changes of a plan by cause: this release's own, left over from before, and touched outside of Terraform."""

    own: tuple[ResourceChange, ...]
    pending: tuple[ResourceChange, ...]
    drifted: tuple[ResourceChange, ...]


def group_changes(apply: ApplyRecord) -> Grouped:
    """Every change once; a pending one counts as such even if it was touched outside, too."""
    if apply.plan is None:
        return Grouped((), (), ())
    outside = {change.address for change in apply.plan.drift}
    own, pending, drifted = [], [], []
    for change in apply.plan.changes:
        if change.address in apply.pending:
            pending.append(change)
        elif change.address in outside:
            drifted.append(change)
        else:
            own.append(change)
    return Grouped(tuple(own), tuple(pending), tuple(drifted))


# -- what is lost --------------------------------------------------------------------------------------------------


def losses(preview: Preview) -> list[ResourceChange]:
    """Everything that is deleted or replaced, what holds data first."""
    lost = [
        c for apply in preview.applies if apply.plan is not None for c in apply.plan.resources if is_loss(c)
    ]
    return sorted(lost, key=lambda change: not holds_data(change))


def loss_warning(lost: Sequence[ResourceChange], *, named: bool = True) -> str:
    """A red block that says what is lost, empty if nothing is; without names it only counts."""
    if not lost:
        return ""
    data = sum(holds_data(change) for change in lost)
    first = f"**{plural(len(lost), 'resource')} {'is' if len(lost) == 1 else 'are'} deleted or replaced"
    first += f", {data:,} of a kind that holds data, keys or rights.**" if data else ".**"
    lines = [first]
    if named:
        lines += [f"{code(c.address)}: {_change_words(c)}" for c in lost[:_MOST_LOST]]
        if len(lost) > _MOST_LOST:
            lines.append(f"and {len(lost) - _MOST_LOST:,} more")
    return caution(lines)


def _change_words(change: ResourceChange) -> str:
    """What happens to one resource and why, as Markdown."""
    words = {Action.DELETE: "deleted", Action.REPLACE: "**deleted and created again**"}
    said = words.get(change.action, change.action.value)
    why = _why(change)
    return f"{said} ({why})" if why else said


def _why(change: ResourceChange) -> str:
    forced = [attribute for attribute in change.attributes if attribute.forces_replacement]
    if forced:
        return f"forced by {', '.join(_attribute(a) for a in forced[:2])}{' …' if len(forced) > 2 else ''}"
    if change.reason in _REASONS:
        return plain(_REASONS[change.reason])
    if change.reason and not change.reason.startswith("replace_because_cannot_update"):
        return plain(change.reason.replace("_", " "), 120)
    return ""


# -- resource by resource --------------------------------------------------------------------------------------


def changes_table(changes: Sequence[ResourceChange]) -> str:
    """One row a resource, as far as rows go."""
    shown = table(["", "Resource", "What"], [_change_row(change) for change in changes[:_MOST_ROWS]])
    if len(changes) > _MOST_ROWS:
        shown += f"\n\nand {len(changes) - _MOST_ROWS:,} more"
    return shown


def _change_row(change: ResourceChange) -> list[str]:
    what = change.action.value
    if change.action is Action.REPLACE:
        what = "**replace**"
    elif change.action is Action.DELETE:
        what = "**delete**"
    if change.importing:
        what = f"import, then {what}" if change.action is not Action.NO_OP else "import"
    if change.moved_from:
        what = f"move from {code(change.moved_from)}, {what}"
    why = _why(change)
    if why:
        what += f", {why}"
    elif change.action is Action.UPDATE:
        shown = ", ".join(_attribute(a) for a in change.attributes[:3])
        more = f" and {len(change.attributes) - 3:,} more" if len(change.attributes) > 3 else ""
        what += f": {shown}{more}" if shown else ""
    return [code(_SYMBOLS[change.action]), code(change.address), what]


def _attribute(change: AttributeChange) -> str:
    """`image_uri` `…:1.0.0` → `…:1.1.0`; of a list or map only the path."""
    path = code(change.path, 80)
    if not (_is_scalar(change.before) and _is_scalar(change.after)) or change.before is None:
        return path
    before, after = _trim(value_text(change.before, _WHOLE), value_text(change.after, _WHOLE))
    return f"{path} {code(before, _VALUE)} → {code(after, _VALUE)}"


def _is_scalar(value: Value) -> bool:
    return not isinstance(value, list | dict)


def _trim(before: str, after: str) -> tuple[str, str]:
    """Two long texts without what both begin with, so that a reader sees where they differ."""
    if max(len(before), len(after)) <= _VALUE:
        return before, after
    same = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
    start = max(same - 15, 0)
    return (f"…{before[start:]}", f"…{after[start:]}") if start else (before, after)


def outputs_table(outputs: Sequence[OutputChange]) -> str:
    """Changed outputs from old to new, unknown ones as such."""
    shown = table(["Output", "Now", "After the apply"], [_output_row(o) for o in outputs[:_MOST_ROWS]])
    if len(outputs) > _MOST_ROWS:
        shown += f"\n\nand {len(outputs) - _MOST_ROWS:,} more"
    return shown


def _output_row(output: OutputChange) -> list[str]:
    now = "–" if output.before is None else code(value_text(output.before))
    return [code(output.name), now, "removed" if output.absent else code(value_text(output.after))]


def changed_outputs(plan: Plan) -> tuple[OutputChange, ...]:
    """The outputs that the plan changes."""
    return tuple(output for output in plan.outputs if output.action is not Action.NO_OP)


def value_text(value: Value, limit: int = 120) -> str:
    """A value on one line, marks as their bracketed text; strings without quotes."""
    if isinstance(value, str):
        return cut(value, limit)
    if isinstance(value, Unknown | Sensitive | Text):
        return cut(str(value), limit)
    return cut(json.dumps(show(value), ensure_ascii=False), limit)


# -- sections of the plan comment ------------------------------------------------------------------------------


def apply_sections(apply: ApplyRecord, directory: str, room: int) -> list[Section]:
    """One apply at every level of detail; `room` is how many bytes of Terraform's own text are shown at the first."""
    head = f"{code(directory)}: **{plain(apply_words(apply))}**"
    notes = apply_notes(apply)
    if notes:
        head += f" · {plain('; '.join(notes))}"
    if apply.plan is None:
        return [Section((head,))]
    grouped, outputs = group_changes(apply), changed_outputs(apply.plan)
    lost = sorted((c for c in apply.plan.resources if is_loss(c)), key=lambda change: not holds_data(change))
    return [
        Section((head,)),
        Section((loss_warning(lost),) * 3 + (loss_warning(lost, named=False),)),
        _changes_section("", grouped.own),
        _changes_section("Pending from an earlier change that was never applied:", grouped.pending),
        _changes_section("Also changed outside of Terraform since the last apply:", grouped.drifted),
        _outputs_section(outputs),
        _drift_section(apply.plan),
        Section((_full_text(apply, directory, room), "")),
    ]


def _changes_section(title: str, changes: Sequence[ResourceChange]) -> Section:
    if not changes:
        return Section(("",))
    lead = f"{title}\n\n" if title else ""
    rows = lead + changes_table(changes)
    by_name = lead + bullets([f"{c.action.value} {code(c.address, 120)}" for c in changes], _MOST_NAMES)
    return Section((rows, rows, by_name, f"{title} {len(changes):,}" if title else ""))


def _outputs_section(outputs: Sequence[OutputChange]) -> Section:
    if not outputs:
        return Section(("",))
    rows = outputs_table(outputs)
    return Section((rows, rows, f"Outputs: {names([o.name for o in outputs], _MOST_NAMES)}", ""))


def _drift_section(plan: Plan) -> Section:
    """What was changed outside and is not touched by this plan; the rest stands in a table of its own."""
    touched = {change.address for change in plan.changes}
    left = [change.address for change in plan.drift if change.address not in touched]
    if not left:
        return Section(("",))
    lead = "Changed outside of Terraform since the last apply, and left as it is: "
    return Section((lead + names(left, 20),) * 3 + (f"{lead}{len(left):,}",))


def _full_text(apply: ApplyRecord, directory: str, room: int) -> str:
    if not apply.text or room < 500:
        return ""
    summary = f"Terraform's own text for {html_code(directory)}"
    return details(summary, fence(head_of(clean(apply.text), room)))
