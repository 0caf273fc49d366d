"""What the steps of a promotion will do, as the list that a reviewer reads before the merge."""

from __future__ import annotations

from bot.domain.before_merge import merge_point
from bot.domain.promotion import StepStatus
from bot.domain.review import (
    ApplyKind,
    ApplyRecord,
    CommitRecord,
    EffectRecord,
    GateRecord,
    Presence,
    Preview,
    PublishRecord,
    StepReport,
)
from bot.domain.step_kinds import StepClass
from bot.domain.values import Sensitive, Text, Unknown, Value, show
from bot.domain.view import PromotionView
from bot.reports.markdown import bullets, code, names, plain
from bot.reports.masking import HIDDEN, names_secret
from bot.reports.plans import apply_words, value_text
from bot.reports.wording import plural, step_name

_MOST_STEPS = 60
_MOST_DETAILS = 8
_SILENT = (StepClass.PURE, StepClass.READ, StepClass.REVIEW)
"""Classes that change nothing anywhere; they are listed only if the task waits for what they do."""


def inside(preview: Preview, path: str) -> str:
    """A path of the work tree as the repository names it."""
    bare = path.removeprefix("./")
    places = [place.removeprefix("./") for place in preview.checkouts]
    # In any of them the path is the same file; a checkout may lie inside another.
    found = [place for place in places if place not in ("", ".") and bare.startswith(f"{place}/")]
    return bare.removeprefix(f"{max(found, key=len)}/") if found else bare


def merge_steps(view: PromotionView) -> list[str]:
    """Every step behind the merge in order, as Markdown; steps that change nothing are left out."""
    preview = view.preview
    if preview is None:
        return []
    later = [step for step in preview.steps if _runs_later(step, preview)]
    point = merge_point(preview) if view.early else 0
    before = [line for step in later if step.index < point and (line := _line(step, preview, view))]
    behind = [line for step in later if step.index >= point and (line := _line(step, preview, view))]
    if not view.early:
        return behind
    merge = f"**merge**: squash this pull request into {code(preview.target.branch)}, when its check is green"
    return [*before, merge, *behind]


def _runs_later(step: StepReport, preview: Preview) -> bool:
    if step.presence in (Presence.SKIPPED, Presence.ON_FAILURE):
        return False
    if step.index >= preview.split.cut:
        return True
    # Notes, and applies that change outputs alone, are prepared but take effect only after the merge.
    outputs_only = isinstance(step.record, ApplyRecord) and step.record.kind is ApplyKind.OUTPUTS_ONLY
    return outputs_only or step.step_class is StepClass.NOTE


def _line(step: StepReport, preview: Preview, view: PromotionView) -> str:
    what = _what(step, preview, view)
    if not what:
        return ""
    only = ", only if its condition holds then" if step.presence is Presence.CONDITIONAL else ""
    return f"**{plain(step_name(step.alias, step.kind), 80)}**: {what}{only}"


def _what(step: StepReport, preview: Preview, view: PromotionView) -> str:
    """What a step does, as Markdown that begins with a verb; empty if there is nothing to tell."""
    record = step.record
    match record:
        case ApplyRecord():
            return _apply(record, preview)
        case CommitRecord():
            return _commit(record, preview)
        case PublishRecord():
            if view.early and step.index < merge_point(preview) and not record.tag and not record.generated:
                return "push onto the branch of this pull request"
            return _publish(record, preview, view)
        case EffectRecord():
            return _effect(record)
        case GateRecord():
            return f"wait for {plain(record.subject, 200)}"
    if step.step_class is StepClass.EDIT:
        files = list(dict.fromkeys(inside(preview, change.path) for change in step.changes))
        return f"write {names(files, 5)}" if files else ""
    if step.kind == "tf-output":
        return "read the outputs that the apply leaves"
    if step.may_stop:
        return f"may stop here: {plain(step.message, 200)}"
    if step.step_class in _SILENT or step.status is StepStatus.SKIPPED:
        return ""
    return plain(step.message, 200) or f"run {code(step.kind)}"


def _apply(record: ApplyRecord, preview: Preview) -> str:
    where = code(inside(preview, record.directory))
    if record.kind.does_nothing:
        return ""
    return f"apply {where}: {plain(apply_words(record))}"


def _commit(record: CommitRecord, preview: Preview) -> str:
    """What is committed behind the merge: the prepared files of the target are in the merge already."""
    deferred = {change.path for change in preview.split.deferred.changes}
    paths = [c.path for c in record.changes if record.checkout not in preview.checkouts or c.path in deferred]
    if not paths:
        return ""
    return f"commit {names(paths, 3)} as {code(first_line(record.message), 100)}"


def _publish(record: PublishRecord, preview: Preview, view: PromotionView) -> str:
    if record.tag:
        return f"push the tag {code(record.tag)}"
    if record.generated:
        return "push to a branch of its own"
    target = preview.target
    is_target = record.checkout in preview.checkouts and record.branch == target.branch
    if is_target and view.follow_up:
        return f"open a follow-up pull request to {code(record.branch)} and merge it when it is green"
    return f"push to {code(record.branch)}"


def _effect(record: EffectRecord) -> str:
    shown = [
        f"{plain(name, 60)} {code(HIDDEN if _is_secret(name, value) else value_text(value))}"
        for name, value in record.details[:_MOST_DETAILS]
        if value_text(value) not in record.title
    ]
    if len(record.details) > _MOST_DETAILS:
        shown.append(f"and {len(record.details) - _MOST_DETAILS:,} more")
    known = not record.address or record.address in record.title
    where = "" if known else f" ({plain(record.address, 200)})"
    return f"{plain(record.title, 200)}{where}" + (f": {', '.join(shown)}" if shown else "")


def _is_secret(name: str, value: Value) -> bool:
    """Whether a value is known in clear although its name says that nobody should see it."""
    return names_secret(name) and not isinstance(value, Unknown | Sensitive | Text)


def first_line(message: Value) -> str:
    """The first line of a commit message, holes shown."""
    shown = show(message)
    return (shown if isinstance(shown, str) else str(shown)).strip().split("\n", 1)[0]


def numbered(lines: list[str]) -> str:
    """An ordered list, as far as it goes."""
    shown = [f"{number}. {line}" for number, line in enumerate(lines[:_MOST_STEPS], start=1)]
    if len(lines) > _MOST_STEPS:
        shown.append(f"\nand {plural(len(lines) - _MOST_STEPS, 'step')} more")
    return "\n".join(shown)


def failure_steps(preview: Preview) -> str:
    """The steps that run only if something fails, as a list."""
    found = [step for step in preview.steps if step.presence is Presence.ON_FAILURE]
    return bullets(
        [f"**{plain(step_name(s.alias, s.kind), 80)}** ({code(s.kind)})" for s in found], _MOST_STEPS
    )
