"""The gates of a promotion: what is open, what it waits for, whose approvals count."""

from __future__ import annotations

from bot.domain.actions import Gate
from bot.domain.promotion import Promotion, State
from bot.domain.view import PromotionView
from bot.reports.markdown import code, plain, table
from bot.reports.wording import moment, plural

_MOST_REVIEWS = 20
_NAMES = {
    "apply": "Apply",
    "approvals": "Approvals",
    "conflict": "Merge conflict",
    "draft": "Draft",
    "freeze": "Freeze",
    "hold": "Hold",
    "verification": "Verification",
    "verified": "Verified before",
    "wait": "Waits for",
    "window": "Window",
}


def is_ready(view: PromotionView) -> bool:
    """Whether everything that keeps it from being merged is out of the way."""
    red = view.preview is None or view.preview.is_red
    return not red and bool(view.gates) and all(gate.open for gate in view.gates)


def is_gated(promotion: Promotion) -> bool:
    """Whether gates still decide about it: before the merge, and where it was merged past a closed one."""
    if promotion.state.ended:
        return False
    return promotion.merge_commit is None or promotion.state is State.HELD


def closed_gates(view: PromotionView) -> tuple[Gate, ...]:
    """The gates that are closed."""
    return tuple(gate for gate in view.gates if not gate.open)


def gates_title(view: PromotionView) -> str:
    """`Waits for 1 approval (2 of 3 gates open)`, or that all are; prose for a title."""
    if not view.gates:
        return view.waiting or "Looking"
    closed = closed_gates(view)
    if not closed:
        return "Every gate is open"
    opened = len(view.gates) - len(closed)
    return f"Waits for {all_missing(view)} ({opened} of {len(view.gates)} gates open)"


def all_missing(view: PromotionView) -> str:
    """What the closed gates wait for, in a few words each; prose."""
    return "; ".join(missing(gate, view) + _until(gate) for gate in closed_gates(view))


def _until(gate: Gate) -> str:
    return f" until {moment(gate.opens_at)}" if gate.opens_at is not None else ""


def missing(gate: Gate, view: PromotionView) -> str:
    """What a closed gate waits for, in a few words; prose."""
    tally = view.tally
    if gate.name == "approvals" and tally is not None and not tally.objections:
        left = max(tally.needed - tally.count, 0)
        for_loss = max(tally.destroy_needed - tally.destroy_count, 0)
        if for_loss:
            return f"{plural(max(left, for_loss), 'approval')}, {for_loss} of them for what is deleted or replaced"
        if left:
            return plural(left, "approval")
    words = {
        "apply": _apply(gate),
        "approvals": f"a new review ({gate.reason})",
        "conflict": f"a person ({gate.reason})",
        "draft": "a person (the pull request is a draft)",
        "freeze": f"`/unfreeze` (frozen: {gate.reason.removeprefix('frozen: ')})",
        "hold": f"`/resume` (held: {gate.reason.removeprefix('on hold: ')})",
        "verification": f"the end of the verification ({gate.reason.removeprefix('waits for verification: ')})",
        "verified": f"another verification, or `/approve` ({gate.reason})",
        "wait": gate.reason,
        "window": f"the promotion window ({gate.reason})",
    }
    return words.get(gate.name, f"{gate.name}: {gate.reason}")


def _apply(gate: Gate) -> str:
    """What opens the gate of an apply before the merge."""
    asked = gate.reason.removeprefix("waits for ")
    return asked if asked != gate.reason else f"the end of the apply ({gate.reason})"


def gates_table(view: PromotionView) -> str:
    """Every gate with its state, and when it opens."""
    rows = [
        [
            "✅" if gate.open else "⏳",
            plain(gate_name(gate), 80),
            plain(gate_state(gate, view), 500),
            moment(gate.opens_at) if gate.opens_at is not None and not gate.open else "",
        ]
        for gate in view.gates
    ]
    if not any(row[3] for row in rows):
        return table(["", "Gate", "Now"], [row[:3] for row in rows])
    return table(["", "Gate", "Now", "Opens"], rows)


def gate_name(gate: Gate) -> str:
    """The gate's name as people read it; prose."""
    return _NAMES.get(gate.name, gate.name)


def gate_state(gate: Gate, view: PromotionView) -> str:
    """How the gate is now, in a few words; prose."""
    tally = view.tally
    if gate.open and gate.name == "window" and gate.opens_at is not None:
        return f"{gate.reason}, until {moment(gate.opens_at)}"
    if gate.open or gate.name != "approvals" or tally is None or tally.objections:
        return gate.reason
    said = f"{tally.count} of {tally.needed}"
    if tally.destroy_needed:
        said += f", and {tally.destroy_count} of {tally.destroy_needed} for what is deleted or replaced"
    return said


def reviews(view: PromotionView) -> list[str]:
    """Reviewer by reviewer whether the review counts, and why not, as Markdown."""
    verdicts = view.tally.verdicts if view.tally is not None else ()
    return [
        f"{'✅' if v.counted else '❌'} {code(v.login)} {'counts' if v.counted else 'does not count'}: "
        f"{plain(v.reason, 300)}"
        for v in verdicts[:_MOST_REVIEWS]
    ]


def who_counts(view: PromotionView) -> str:
    """Whose approval counts, in one sentence; empty if the policy is not known or asks nobody."""
    rule, tally = view.approvals, view.tally
    if rule is None or tally is None or tally.by_policy or not (tally.needed or tally.destroy_needed):
        return ""
    asker = view.promotion.actor
    but = "nobody who wrote a commit of it"
    if not rule.requester and asker != "lockstep":
        but = f"not {code(asker)}, who asked for this, and {but}"
    sentence = f"Who may approve: {_whom(rule.from_)}, but {but}."
    if tally.destroy_needed and rule.on_destroy.from_:
        sentence += f" Of what is deleted or replaced: {_whom(rule.on_destroy.from_)}."
    return sentence


def _whom(entries: tuple[str, ...]) -> str:
    return " or ".join(code(entry) for entry in entries) if entries else "everybody with write permission"
