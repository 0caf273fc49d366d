"""Title and body of a promotion's pull request."""

from __future__ import annotations

from bot.domain.promotion import Promotion, State
from bot.domain.review import ApplyRecord, Lane, Preview, Problem
from bot.domain.splitting import find_missing
from bot.domain.values import show
from bot.domain.view import PromotionView
from bot.reports.committed import file_sections
from bot.reports.fitting import COMMENT_LIMIT, Section, fit, head_of
from bot.reports.gates import all_missing, gates_table, is_gated, is_ready, reviews, who_counts
from bot.reports.markdown import (
    authored,
    bullets,
    caution,
    code,
    details,
    plain,
    size,
    table,
    title,
    warning,
)
from bot.reports.plans import apply_notes, apply_words, loss_warning, losses
from bot.reports.states import headline, reason_words, stages_table
from bot.reports.steps import failure_steps, inside, merge_steps, numbered
from bot.reports.wording import (
    VersionChange,
    compare_versions,
    moment,
    plural,
    step_name,
)

_TITLE = 120
_OWN_TITLE = 250
"""Bytes of a title that the task itself gives; GitHub takes 256 characters."""
_MOST_ROWS = 50
_MOST_LINKS = 20
_IF_IT_FAILS = (
    "If a step before the merge fails, nothing is merged: the check is red, and `/retry` tries again. A push to this "
    "branch stops it before the merge; what was applied until then stays applied."
)
_LEAST = 2_000
"""Bytes that the text keeps however large the machine block is."""


def render_title(view: PromotionView) -> str:
    """`acme/staging: otel-app 1.0.0 → 1.1.0, lambda-app 1.0.0 → 1.1.0 (solar-marmot)`, at most 120 characters.

    A task that opens its pull request itself gives it a title of its own.
    """
    promotion = view.promotion
    request = view.preview.request if view.preview is not None else None
    own = title(str(show(request.title) or ""), _OWN_TITLE, inert=True) if request is not None else ""
    if own:
        return own
    lead = f"{promotion.project}/{promotion.stage}: {_kind(promotion)}"
    alias = promotion.freight.label
    changes = [_in_title(c) for c in compare_versions(view.current, promotion.freight) if c.is_change]
    if not changes:
        return title(f"{lead}{alias}", _TITLE, inert=True)
    for shown in range(len(changes), 0, -1):
        more = f" and {len(changes) - shown} more" if shown < len(changes) else ""
        text = f"{lead}{', '.join(changes[:shown])}{more} ({alias})"
        if size(text) <= _TITLE:
            return title(text, _TITLE, inert=True)
    return title(f"{lead}{plural(len(changes), 'change')} ({alias})", _TITLE, inert=True)


def _kind(promotion: Promotion) -> str:
    if promotion.corrects:
        return "undo drift of "
    return "roll back " if promotion.rollback else ""


def _in_title(change: VersionChange) -> str:
    before, after = change.before, change.after
    if after is None:
        return f"{change.name} removed"
    new = after.tag or after.exact
    if before is None:
        return f"{change.name} {new}"
    old = before.tag or before.exact
    return f"{change.name} {old} → {new}" if old != new else f"{change.name} {new} (new digest)"


def render_body(view: PromotionView) -> str:
    """The body, within GitHub's limit; the machine block stands last and is never cut."""
    marker = f"\n\n{view.marker}" if view.marker else ""
    if size(marker) > COMMENT_LIMIT - _LEAST:
        # Half a block is none, and a body with all of it would be refused for ever.
        marker = "\n\nThe machine-readable block is too large for this page; the commits carry it."
    return fit(_sections(view), COMMENT_LIMIT - size(marker)) + marker


def _sections(view: PromotionView) -> list[Section]:
    preview = view.preview
    sections = [Section((_head(view),))]
    if view.differs:
        sections.append(Section((warning([plain(view.differs, 500)]),)))
    if preview is None:
        sections.append(_versions(view))
    else:
        sections += [*_alarms(preview), _versions(view), _infra(preview), *file_sections(view, preview)]
        sections += [_on_merge(view), _on_failure(preview)]
    sections += [_gates(view), _stages(view)]
    sections += [Section((_commands(view),) * 3 + ("",)), Section((_foot(view),))]
    return [*sections, _from_task(preview)]


def _from_task(preview: Preview | None) -> Section:
    """What the task itself says of its pull request: last, so that nothing in it can hide what is said above."""
    request = preview.request if preview is not None else None
    text = authored(str(show(request.description) or "")).strip() if request is not None else ""
    if not text:
        return Section(("",))
    return Section((*(f"---\n\n{head_of(text, limit)}" for limit in (40_000, 16_000, 4_000)), ""))


# -- what goes where ---------------------------------------------------------------------------------------------


def _head(view: PromotionView) -> str:
    promotion, preview = view.promotion, view.preview
    freight, stage = f"**{plain(promotion.freight.alias)}**", f"**{plain(promotion.stage)}**"
    back, to = f"Rolls {stage} back to Freight {freight}", f"Brings Freight {freight} to {stage}"
    again = f"Undoes drift in {stage}, which keeps Freight {freight}"
    asker = "auto-promotion" if promotion.actor == "lockstep" else code(promotion.actor)
    what = back if promotion.rollback else again if promotion.corrects else to
    said = f"{what}, asked for by {asker}." if not promotion.why else f"{what}: {plain(promotion.why)}."
    if preview is not None and not preview.problems:
        said += f" {_lane(preview, 'The merge' if not view.early else '`/apply`')}{_risk(preview)}"
    reason = reason_words(promotion, view.waiting)
    begun = promotion.is_begun
    why = f" · {plain(reason)}" if begun and reason and promotion.state is not State.SUCCEEDED else ""
    return f"{said}\n\n**{status_line(view)}**{why}"


def _lane(preview: Preview, trigger: str) -> str:
    """What the merge, or `/apply`, sets off, in one sentence of Markdown."""
    match preview.lane:
        case Lane.NO_OP:
            return "Everything is as the Freight asks already."
        case Lane.COMPLETE:
            return "The diff is the whole change; Terraform is not run."
        case Lane.EFFECTS:
            return f"Terraform is not run; what {trigger[:1].lower()}{trigger[1:]} sets off is listed below."
        case Lane.INFRA_ONLY:
            return f"{trigger} makes Terraform apply; nothing is committed behind it."
        case Lane.COORDINATED:
            missing = {*preview.origins.values(), *find_missing(preview.steps)}
            late = sorted(code(f"<{origin}>") for origin in missing)
            why = f", since it needs {', '.join(late[:10])}" if late else ", in the order of the task"
            return f"{trigger} makes Terraform apply; the rest is committed after that{why}."


def _risk(preview: Preview) -> str:
    """How many resources are deleted or replaced, where Terraform does anything and its plans are known."""
    doing = [apply for apply in preview.applies if not apply.kind.does_nothing]
    if not doing or any(apply.plan is None for apply in doing):
        return ""
    lost = len(losses(preview))
    return (
        f" Terraform deletes or replaces **{plural(lost, 'resource')}**."
        if lost
        else " Terraform deletes and replaces nothing."
    )


def _alarms(preview: Preview) -> list[Section]:
    """What a reviewer must not miss: problems, what is lost, warnings."""
    lost = losses(preview)
    return [
        *(Section((render_problem(problem, preview),)) for problem in preview.problems[:5]),
        Section((caution([plain(preview.held)]) if preview.held else "",)),
        Section((loss_warning(lost),) * 3 + (loss_warning(lost, named=False),)),
        Section((warning([plain(text, 500) for text in preview.warnings[:10]]),)),
    ]


def status_line(view: PromotionView) -> str:
    """Where it stands now, in one line of Markdown."""
    promotion, preview = view.promotion, view.preview
    if promotion.merge_commit is not None or promotion.state not in (State.QUEUED, State.REVIEW):
        return headline(promotion)
    if preview is None:
        return "⏳ The preview is being made."
    if preview.is_red:
        return "❌ It may not be merged as it is."
    if is_ready(view):
        return f"✅ Every gate is open: {_merger(view)}."
    if view.gates:
        return f"⏳ Waits for {plain(all_missing(view))}."
    return f"⏳ {plain(view.waiting)}" if view.waiting else "⏳ The gates are being looked at."


def _merger(view: PromotionView) -> str:
    return "Lockstep merges it" if view.auto_merge else "a person merges it, Lockstep does the rest"


def render_problem(problem: Problem, preview: Preview) -> str:
    """A red block with the step, what went wrong, where, and whether it is tried again."""
    place = inside(preview, problem.path)
    said = f"{place.rpartition('/')[2]}:{problem.line}" in problem.message
    where = f" ({code(f'{place}:{problem.line}' if problem.line else place)})" if place and not said else ""
    kind = next((step.kind for step in preview.steps if step.alias == problem.alias), "")
    again = " It is tried again by itself." if problem.transient and "again" not in problem.message else ""
    return caution(
        [f"**{plain(step_name(problem.alias, kind), 80)}**: {plain(problem.message)}{where}{again}"]
    )


def _versions(view: PromotionView) -> Section:
    changes = compare_versions(view.current, view.promotion.freight)
    changed = [change for change in changes if change.is_change]
    same = [change for change in changes if not change.is_change]
    none = "–" if view.current is not None else "not promoted yet"
    rows = [
        [
            code(change.key),
            change.before.show() if change.before is not None else none,
            change.after.show(bold=True) if change.after is not None else "removed",
        ]
        for change in changed[:_MOST_ROWS]
    ]
    shown = table(["Artifact", f"{plain(view.promotion.stage)} has now", "will have"], rows)
    if len(changed) > _MOST_ROWS:
        shown += f"\n\nand {len(changed) - _MOST_ROWS:,} more"
    unchanged = ", ".join(f"{code(c.key)} {c.after.show()}" for c in same[:20] if c.after is not None)
    if unchanged:
        shown = f"{shown}\n\nUnchanged: {unchanged}" if shown else f"No version changes: {unchanged}"
    return Section((shown, shown, shown, f"{plural(len(changed), 'version')} to change"))


# -- what Terraform does and what is committed ---------------------------------------------------------------------


def _infra(preview: Preview) -> Section:
    applies = preview.applies
    if not applies:
        return Section(("",))
    rows = [[code(inside(preview, apply.directory)), _apply_cell(apply)] for apply in applies[:_MOST_ROWS]]
    shown = "### Terraform\n\n" + table(["Directory", "What it will do"], rows)
    if len(applies) > _MOST_ROWS:
        shown += f"\n\nand {len(applies) - _MOST_ROWS:,} more"
    return Section((shown + _left_out(preview),))


def _left_out(preview: Preview) -> str:
    """What a rollback that keeps the infrastructure does not write back."""
    found = [
        f"{code(inside(preview, path))}, which {code(step_name(step.alias, step.kind))} would change"
        for step in preview.steps
        for path in step.left_out
    ]
    if not found:
        return ""
    return (
        f"\n\nThis rollback keeps the infrastructure, so these are left as they are:\n\n{bullets(found, 20)}"
    )


def _apply_cell(apply: ApplyRecord) -> str:
    said = plain(apply_words(apply))
    bold = not apply.kind.does_nothing
    return "; ".join([f"**{said}**" if bold else said, *(plain(note) for note in apply_notes(apply))])


def _on_merge(view: PromotionView) -> Section:
    steps = merge_steps(view)
    if not steps:
        return Section(("The merge sets off nothing more.",))
    on = "On `/apply`" if view.early else "After the merge" if view.promotion.merge_commit else "On merge"
    shown = f"### {on}, in this order\n\n{numbered(steps)}"
    if view.early:
        shown += f"\n\n{_IF_IT_FAILS}"
    return Section((shown,) * 3 + (f"{on}: {plural(len(steps), 'step')}.",))


def _on_failure(preview: Preview) -> Section:
    steps = failure_steps(preview)
    return Section((f"### Only if something fails\n\n{steps}" if steps else "",))


# -- gates, pipeline, commands -------------------------------------------------------------------------------------


def _gates(view: PromotionView) -> Section:
    if not view.gates or not is_gated(view.promotion):
        return Section(("",))
    merge = "Lockstep merges it when every gate is open." if view.auto_merge else "A person merges it."
    if view.early:
        merge = "Lockstep merges it once it is applied; `/apply` is taken when every other gate is open."
    merge = "" if view.promotion.merge_commit is not None else merge
    parts = [
        gates_table(view),
        bullets(reviews(view), 20),
        " ".join(part for part in (who_counts(view), merge) if part),
    ]
    return Section(("### Gates\n\n" + "\n\n".join(part for part in parts if part),))


def _stages(view: PromotionView) -> Section:
    if not view.stages:
        return Section(("",))
    shown = f"### Pipeline\n\n{stages_table(view.stages, _MOST_ROWS)}"
    return Section((shown, shown, ""))


def _commands(view: PromotionView) -> str:
    stage = view.promotion.stage
    rows = [
        ["`/explain`", "every gate, and why it is open or closed"],
        *([["`/apply`", "apply it now and merge it then; an approver says so"]] if view.early else []),
        ["`/plan`", "preview again"],
        ["`/hold REASON`, `/resume`", "keep it from being merged, and end that"],
        [code(f"/promote {stage} FREIGHT"), "promote other Freight instead"],
        [code(f"/rollback {stage}"), "go back to the Freight that was verified here before"],
        ["`/cancel`", "end this promotion"],
        ["`/help`", "all commands"],
    ]
    return details("Commands, as the first line of a comment", table(["Comment", "What it does"], rows))


def _foot(view: PromotionView) -> str:
    parts = [f"Preview {code(view.promotion.digest)}"] if view.promotion.digest else []
    if view.preview is not None:
        parts.append(f"made {moment(view.preview.made_at)}")
    if view.page:
        parts.append(f"[details]({view.page})")
    links = [f"[{plain(link.title, 80)}](<{link.url}>)" for link in view.links[:_MOST_LINKS]]
    return "\n\n".join(" · ".join(line) for line in (links, parts) if line)
