"""Comments: the plan before the merge, the outcome after it, and answers to commands."""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.promotion import Promotion, State, StepRun, StepStatus
from bot.domain.review import ApplyRecord
from bot.domain.values import Value
from bot.domain.view import PromotionView
from bot.reports.markdown import COMMENT_LIMIT, Section, code, details, fence, fit, plain, shorten, table
from bot.reports.plans import apply_line, changes_table, destroy_warning, full_text, outputs_table

_ICONS = {
    StepStatus.SUCCEEDED: "✅",
    StepStatus.SKIPPED: "➖",
    StepStatus.RUNNING: "⏳",
    StepStatus.FAILED: "❌",
    StepStatus.ERRORED: "❌",
    StepStatus.ABORTED: "⛔",
}


def render_plan_comment(view: PromotionView) -> str:
    """The sticky plan comment: counts, what is lost, a row a resource, then Terraform's own words."""
    preview = view.preview
    if preview is None:
        return ""
    sections = [Section((f"### Plan for {plain(view.promotion.stage)}",))]
    for problem in preview.problems:
        log = fence(shorten(problem.log, 8000)) if problem.log else ""
        place = f" ({code(f'{problem.path}:{problem.line}')})" if problem.path else ""
        first = f"> [!CAUTION]\n> {code(problem.alias)} {plain(problem.message)}{place}"
        sections.append(Section((f"{first}\n\n{log}" if log else first, first)))
    for apply in preview.applies:
        sections += _apply_sections(apply)
    if not preview.applies:
        sections.append(Section(("Nothing of this promotion is Terraform's.",)))
    sections.append(
        Section((f"Preview digest {code(preview.digest)}, made {preview.made_at:%Y-%m-%d %H:%M} UTC",))
    )
    return fit(sections, COMMENT_LIMIT)


def _apply_sections(apply: ApplyRecord) -> list[Section]:
    head = f"**{code(apply.directory)}**: {apply_line(apply)}"
    if apply.plan is None:
        return [Section((head,))]
    warning = destroy_warning(apply.plan)
    drift = ""
    if apply.plan.drift:
        names = ", ".join(code(r.address) for r in apply.plan.drift[:10])
        drift = f"Changed outside of Terraform since the last apply: {names}"
    pending = ""
    if apply.pending:
        names = ", ".join(code(address) for address in sorted(apply.pending)[:10])
        pending = f"Pending from before this promotion: {names}"
    return [
        Section((head,)),
        Section((warning,)),
        Section((changes_table(apply.plan), "")),
        Section((outputs_table(apply.plan), "")),
        Section((drift, "")),
        Section((pending, "")),
        Section((full_text(apply, 40_000), full_text(apply, 8_000), "")),
    ]


def render_outcome_comment(view: PromotionView) -> str:
    """How far the promotion is after its merge, step by step."""
    promotion = view.promotion
    head = f"### {_headline(promotion)}"
    sections = [Section((head,)), Section((plain(promotion.reason or view.waiting),))]
    if promotion.stop is not None and promotion.state is State.STOPPED:
        sections += _stop_sections(promotion)
    sections.append(Section((_steps_table(view), "")))
    sections += [Section((log, "")) for log in _logs(view.outcome.runs)]
    if promotion.state in (State.FAILED, State.ERRORED) and promotion.blocked:
        sections.append(
            Section(
                (
                    f"`{promotion.stage}` is blocked until somebody says what happens: `/retry` tries the failed step "
                    f"again, `/rollback {promotion.stage}` brings the former Freight back.",
                )
            )
        )
    return fit(sections, COMMENT_LIMIT)


def _headline(promotion: Promotion) -> str:
    name = f"{plain(promotion.freight.alias)} in {plain(promotion.stage)}"
    match promotion.state:
        case State.SUCCEEDED:
            return f"✅ {name}: done and verified"
        case State.FAILED | State.ERRORED:
            return f"❌ {name}: failed"
        case State.STOPPED:
            return f"✋ {name}: stopped, somebody must look"
        case State.HELD:
            return f"✋ {name}: merged, held"
        case State.ABORTED:
            return f"⛔ {name}: ended"
        case _:
            return f"⏳ {name}: under way"


def _stop_sections(promotion: Promotion) -> list[Section]:
    stop = promotion.stop
    if stop is None:
        return []
    shown = "\n".join(stop.details[:50])
    ask = (
        f"`/apply {stop.digest}` by an approver accepts exactly this; else `/rollback {promotion.stage}` or a revert."
        if stop.digest
        else f"`/rollback {promotion.stage}` brings the former Freight back."
    )
    return [Section((fence(shown, "diff") if shown else "",)), Section((ask,))]


def _steps_table(view: PromotionView) -> str:
    rows = []
    for step in view.promotion.steps:
        run = view.outcome.runs.get(step.alias)
        if run is None:
            continue
        icon = _ICONS[run.status]
        message = run.message or _result(run)
        rows.append([icon, code(step.alias.rpartition("::")[2]), plain(message[:300])])
    return table(["", "Step", ""], rows) if rows else ""


def _result(run: StepRun) -> str:
    for name in ("result", "commit"):
        value: Value = run.output.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _logs(runs: Mapping[str, StepRun]) -> list[str]:
    found = []
    for run in runs.values():
        log = run.detail.get("log")
        if run.status in (StepStatus.FAILED, StepStatus.ERRORED) and isinstance(log, str) and log:
            found.append(
                details(f"Log of <code>{plain(run.alias)}</code>", fence(shorten(log, 20_000)), open_=True)
            )
    return found


def render_explain(view: PromotionView) -> str:
    """The decision tree: every gate, and who counts."""
    lines = [
        f"**{plain(view.promotion.stage)}**, {plain(view.promotion.freight.alias)}: {plain(view.waiting)}"
    ]
    lines += [
        f"- {'✅' if gate.open else '⏳'} **{plain(gate.name)}**: {plain(gate.reason)}" for gate in view.gates
    ]
    if view.tally is not None:
        for verdict in view.tally.verdicts:
            counts = "counts" if verdict.counted else "does not count"
            lines.append(f"  - {code(verdict.login)} {counts}: {plain(verdict.reason)}")
    if view.preview is not None:
        lines += [
            f"- ❌ {plain(problem.alias)}: {plain(problem.message)}" for problem in view.preview.problems
        ]
    return fit([Section((line,)) for line in lines], COMMENT_LIMIT)


def render_status(view: PromotionView) -> str:
    """What runs in which Stage."""
    rows = []
    for line in view.stages:
        tags = ", ".join(i.tag for i in line.freight.images) if line.freight is not None else ""
        alias = plain(line.freight.alias) if line.freight is not None else "–"
        rows.append(
            [plain(line.name), alias, code(tags) if tags else "–", "verified" if line.verified else "–"]
        )
    return table(["Stage", "Freight", "Versions", ""], rows)


def render_help(commands: Mapping[str, tuple[str, str]]) -> str:
    """The table of commands."""
    return table(
        ["Comment", "What it does"], [[code(usage), plain(what)] for usage, what in commands.values()]
    )
