"""Answers to commands: the decision tree, what runs where, and the table of commands."""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.actions import Gate
from bot.domain.promotion import State
from bot.domain.view import PromotionView
from bot.reports.body import render_problem, status_line
from bot.reports.comments import step_rows
from bot.reports.fitting import COMMENT_LIMIT, Section, fit
from bot.reports.gates import gate_name, gate_state, is_gated, missing, reviews, who_counts
from bot.reports.markdown import code, plain, table
from bot.reports.plans import apply_notes, apply_words
from bot.reports.states import reason_words, stages_table
from bot.reports.steps import inside
from bot.reports.wording import moment, plural

_MOST_STAGES = 200


def render_explain(view: PromotionView, *, limit: int = COMMENT_LIMIT) -> str:
    """The decision tree: the preview and every gate with its state, why, who counts, and what opens it when."""
    promotion = view.promotion
    goal = f"{plain(promotion.freight.alias)} to {plain(promotion.project)}/{plain(promotion.stage)}"
    sections = [Section((f"**{goal}**\n\n{status_line(view)}",))]
    begun = promotion.is_begun
    if begun and promotion.state is not State.SUCCEEDED:
        sections.append(Section((plain(reason_words(promotion, view.waiting)),)))
    gates = view.gates if is_gated(promotion) else ()
    lines = [*_preview(view), *(line for gate in gates for line in _gate(gate, view)), *_last(view)]
    rows = step_rows(view) if begun and view.outcome.runs else []
    lines += [
        f"- {icon} {name}" + (f": {said or took}" if said or took else "") for icon, name, took, said in rows
    ]
    lines += _verification(view) + _difference(view)
    lines += [f"- ℹ️ **Drift**: {plain(view.drift, 1000)}"] if view.drift else []
    # One list: a blank line between its items would part it, so it is one section, shortened from its end.
    sections.append(Section(tuple("\n".join(lines[:most]) for most in (1000, 300, 100, 20))))
    if view.preview is not None:
        sections += [Section((render_problem(p, view.preview),)) for p in view.preview.problems[:10]]
    return fit(sections, limit)


def _verification(view: PromotionView) -> list[str]:
    """How what was brought does in its Stage, as long as the Stage has it."""
    here = next((line for line in view.stages if line.here), None)
    freight = here.freight.name if here is not None and here.freight is not None else None
    promotion = view.promotion
    if here is None or promotion.state is not State.SUCCEEDED or freight != promotion.freight.name:
        return []
    if not here.state:
        return ["- ✅ **Verification**: verified" if here.verified else "- ⏳ **Verification**: not verified"]
    return [
        f"- {'⏳' if here.state.startswith('waits') else '❌'} **Verification**: {plain(here.state, 1000)}"
    ]


def _difference(view: PromotionView) -> list[str]:
    """That people's commits left the Stage with something else than its Freight asks for."""
    if not view.differs:
        return []
    back = f"ends when that is undone, or with {code(f'/promote {view.promotion.stage}')}"
    return [
        f"- ⚠️ **Differs**: {plain(view.differs, 500)}",
        f"  - {back}; until then nothing is promoted by itself",
    ]


def _preview(view: PromotionView) -> list[str]:
    preview = view.preview
    if preview is None:
        return [] if view.promotion.state.ended else ["- ⏳ **Preview**: being made"]
    made = f"made {moment(preview.made_at)}, digest {code(preview.digest)}"
    if preview.is_red:
        why = preview.held or f"{plural(len(preview.problems), 'problem')}, see below"
        lines = [
            f"- ❌ **Preview**: {plain(why)} ({made})",
            "  - opens with a mended branch or base, or `/plan`",
        ]
    else:
        lines = [f"- ✅ **Preview**: nothing stands against it ({made})"]
    for apply in preview.applies[:20]:
        said = "; ".join([apply_words(apply), *apply_notes(apply)])
        lines.append(f"  - Terraform in {code(inside(preview, apply.directory))}: {plain(said)}")
    return lines


def _gate(gate: Gate, view: PromotionView) -> list[str]:
    lines = [
        f"- {'✅' if gate.open else '⏳'} **{plain(gate_name(gate), 80)}**: {plain(gate_state(gate, view), 500)}"
    ]
    if gate.name == "approvals":
        lines += [f"  - {line}" for line in reviews(view)]
        who = who_counts(view)
        if who:
            lines.append(f"  - {who}")
    if not gate.open:
        by_time = f"  - opens by itself at {moment(gate.opens_at)}" if gate.opens_at is not None else ""
        lines.append(by_time or f"  - opens with {plain(missing(gate, view), 500)}")
    return lines


def _last(view: PromotionView) -> list[str]:
    if view.promotion.merge_commit is not None or view.promotion.state.ended:
        return []
    if view.early:
        applied = view.promotion.has_begun_ahead
        first = "" if applied else "what is listed under On `/apply` is done, "
        return [f"- ➡️ then {first}Lockstep merges, and what stands behind the merge follows"]
    who = "Lockstep merges" if view.auto_merge else "a person merges"
    return [f"- ➡️ then {who}, and every gate is asked again before anything is applied"]


def render_status(view: PromotionView, *, limit: int = COMMENT_LIMIT) -> str:
    """What runs in which Stage, since when, and whether it is verified there."""
    if not view.stages:
        return "There are no Stages."
    shown = tuple(stages_table(view.stages, most) for most in (_MOST_STAGES, 100, 50, 20))
    return fit([Section(shown)], limit)


def render_help(commands: Mapping[str, tuple[str, str]]) -> str:
    """The table of commands."""
    rows = [[code(usage), plain(what)] for usage, what in commands.values()]
    return "A command is the first line of a new comment.\n\n" + table(["Comment", "What it does"], rows)
