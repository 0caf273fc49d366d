"""The issue that says a Stage drifted, the comments on it, and the answer to `/drift`.

What was found comes from plans and is shown as in a plan comment: values masked, text made inert, detail given up in
steps to keep GitHub's limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.drift import DriftRecord, Finding, StageLook, StateLook
from bot.reports.fitting import COMMENT_LIMIT, Section, fit
from bot.reports.markdown import bullets, code, names, plain, title, warning
from bot.reports.plans import changes_table, holds_data, is_loss, loss_warning, outputs_table
from bot.reports.wording import moment, plural

_MOST_NAMES = 200
_TITLE = 120


@dataclass(frozen=True, slots=True)
class DriftText:
    """Title and body of an issue, without its marker."""

    title: str
    body: str


def render_issue(record: DriftRecord, shown: StageLook, *, limit: int = COMMENT_LIMIT) -> DriftText:
    """The issue of a Stage; `shown` is the look whose drift it lists, `record.last` may be a later one."""
    stage = f"{record.project}/{record.stage}"
    heading = title(f"{stage}: the infrastructure is not as it was applied", _TITLE, inert=True)
    sections = [Section((_head(record, shown),)), Section((_later(record),))]
    sections += _found(shown)
    sections += [Section((_what_to_do(),))]
    return DriftText(heading, fit(sections, limit))


def render_change(before: StageLook | None, look: StageLook, *, limit: int = COMMENT_LIMIT) -> str:
    """The comment that tells how the drift changed since it was told last."""
    old = _addresses(before) if before is not None else set()
    new = _addresses(look)
    lines = [f"The drift changed: now {_amount(look)}, seen {moment(look.at)}."]
    if new - old:
        lines.append(f"New: {names(sorted(new - old), 50)}")
    if old - new:
        lines.append(f"Gone: {names(sorted(old - new), 50)}")
    if new == old:
        lines.append("The same resources changed in another way; the issue shows how.")
    return fit([Section((line,)) for line in lines], limit)


def render_gone(record: DriftRecord, look: StageLook) -> str:
    """The comment with which the issue is closed."""
    since = f" It was first seen {moment(record.drifted_since)}." if record.drifted_since else ""
    return f"The drift is gone: at {moment(look.at)} every plan of unchanged inputs was empty.{since}"


def render_answer(record: DriftRecord, look: StageLook, *, limit: int = COMMENT_LIMIT) -> str:
    """The answer to `/drift`."""
    stage = f"**{plain(record.project)}/{plain(record.stage)}**"
    match look.finding:
        case Finding.DRIFT:
            issue = f" #{record.issue} keeps track of it." if record.issue and record.open else ""
            first = f"{stage} drifted: {_amount(look)}.{issue} {code('/drift fix')} opens a pull request."
            sections = [Section((first,)), *_found(look)]
        case Finding.NONE if not look.states:
            sections = [Section((f"{stage} has no Terraform to look at.",))]
        case Finding.NONE:
            said = f"{stage} has not drifted: every plan of unchanged inputs is empty."
            sections = [Section((said,)), *_outside(look.states)]
        case Finding.PENDING:
            sections = [Section((f"Nothing can be said of drift in {stage} now.",)), _others(look)]
        case Finding.UNSEEN:
            sections = [
                Section((f"{stage} could not be looked at, which does not mean that it has not drifted.",))
            ]
            sections.append(_others(look))
    if record.problem:
        sections.append(Section((warning([f"Its issue could not be written: {plain(record.problem)}"]),)))
    return fit(sections, limit)


# -- parts -----------------------------------------------------------------------------------------------------


def _head(record: DriftRecord, shown: StageLook) -> str:
    freight = f" with Freight **{plain(shown.freight)}**" if shown.freight else ""
    first = record.drifted_since or shown.at
    return (
        f"**{_amount(shown)}** of **{plain(record.project)}/{plain(record.stage)}** are not as they were applied"
        f"{freight}. The inputs are unchanged since, so somebody or something else changed them.\n\n"
        f"First seen {moment(first)}, last seen {moment(shown.at)}. Promotions go on as usual."
    )


def _amount(look: StageLook) -> str:
    return plural(look.count, "resource or output", "resources or outputs")


def _later(record: DriftRecord) -> str:
    """What a later look says that proved nothing."""
    last = record.last
    if last is None or last.finding in (Finding.DRIFT, Finding.NONE):
        return ""
    first = "could not be made" if last.finding is Finding.UNSEEN else "proved nothing"
    lines = [f"**The last look, {moment(last.at)}, {first}.** What is shown below may still be there."]
    return warning([*lines, *_reasons(last)])


def _found(look: StageLook) -> list[Section]:
    """The changes by state, what undoing them loses first, and the states of which nothing is known."""
    lost = [change for state in look.drifted for change in state.changes if is_loss(change)]
    lost.sort(key=lambda change: not holds_data(change))
    alarm, counted = loss_warning(lost), loss_warning(lost, named=False)
    price = "Bringing back what was applied has a price:"
    sections = [Section((price,)), Section((alarm, alarm, alarm, counted))] if lost else []
    for state in look.drifted:
        sections += _state(state)
    return [*sections, *_outside(look.states), _others(look)]


def _state(state: StateLook) -> list[Section]:
    count = plural(state.count, "change", "changes")
    head = f"#### Terraform in {code(state.directory)}: {count} to bring back what was applied"
    sections = [Section((head,))]
    if state.changes:
        table = changes_table(state.changes)
        listed = [f"{change.action.value} {code(change.address, 120)}" for change in state.changes]
        sections.append(Section((table, table, bullets(listed, _MOST_NAMES), "")))
    if state.outputs:
        table = outputs_table(state.outputs)
        short = names([output.name for output in state.outputs], _MOST_NAMES)
        sections.append(Section((table, table, f"Outputs: {short}", "")))
    left = state.count - len(state.changes) - len(state.outputs)
    return [*sections, Section((f"and {left:,} more",))] if left > 0 else sections


def _outside(states: Sequence[StateLook]) -> list[Section]:
    left = [address for state in states for address in state.outside]
    if not left:
        return []
    lead = "Changed outside of Terraform as well, without anything to bring back: "
    return [Section((lead + names(left, 20),) * 3 + (f"{lead}{len(left):,}",))]


def _others(look: StageLook) -> Section:
    reasons = _reasons(look)
    return Section((f"Not planned:\n\n{bullets(reasons, 20)}" if reasons else "",))


def _reasons(look: StageLook) -> list[str]:
    """Why nothing is known of some states, as Markdown."""
    said = [plain(state.reason, 600) for state in look.states if state.reason]
    return [*said, *([plain(look.problem, 600)] if look.problem else [])]


def _what_to_do() -> str:
    lines = [
        f"{code('/drift fix')} opens a pull request that brings back what was applied; it is reviewed and applied like "
        "any promotion.",
        "If the change is to stay, write it into the Terraform files.",
        f"{code('/drift')} looks again now. This issue is closed by itself when the drift is gone; one that somebody "
        "closes stays closed until the drift is another.",
    ]
    return bullets(lines, len(lines))


def _addresses(look: StageLook) -> set[str]:
    return {change.address for state in look.drifted for change in state.changes} | {
        f"output {output.name}" for state in look.drifted for output in state.outputs
    }
