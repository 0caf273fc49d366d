"""Title and body of a promotion's pull request."""

from __future__ import annotations

import difflib

from bot.domain.files import Change, File
from bot.domain.freight import Freight
from bot.domain.review import (
    ApplyRecord,
    CommitRecord,
    EffectRecord,
    GateRecord,
    Lane,
    Patch,
    Presence,
    Preview,
    PublishRecord,
    StepClass,
    StepReport,
)
from bot.domain.values import Value, show
from bot.domain.view import PromotionView
from bot.reports.markdown import COMMENT_LIMIT, Section, clean, code, details, fence, fit, plain, table
from bot.reports.plans import apply_line, destroy_warning, value_text

_LANES = {
    Lane.NO_OP: "Nothing to do",
    Lane.COMPLETE: "The diff is the whole change",
    Lane.EFFECTS: "Effects follow the merge",
    Lane.INFRA_ONLY: "Terraform is applied after the merge",
    Lane.COORDINATED: "Terraform is applied after the merge, then the values are written",
}


def render_title(view: PromotionView) -> str:
    """The title: Stage and what changes; at most 250 characters."""
    promotion = view.promotion
    verb = "roll back" if promotion.rollback else "promote"
    changes = _version_changes(view.current, promotion.freight)
    text = f"{verb}({promotion.project}): {promotion.stage} to {promotion.freight.alias}"
    if changes:
        text += f" ({', '.join(changes)})"
    return " ".join(clean(text).split())[:250]


def _version_changes(current: Freight | None, freight: Freight) -> list[str]:
    before = {image.repo_url: image.tag for image in current.images} if current is not None else {}
    return [
        f"{image.repo_url.rpartition('/')[2]} {image.tag}"
        for image in freight.images
        if before.get(image.repo_url) != image.tag
    ]


def render_body(view: PromotionView) -> str:
    """The body, within GitHub's limit; the machine block stands last and is never cut."""
    marker = f"\n\n{view.marker}" if view.marker else ""
    sections = [
        Section((_summary(view),)),
        Section((_versions(view),)),
        Section((_infra(view),)),
        Section((_late_values(view, full=True), _late_values(view, full=False))),
        Section((_on_merge(view),)),
        Section((_on_failure(view),)),
        Section((_gates(view),)),
        Section((_stages(view), "")),
        Section((_commands(view), "")),
    ]
    return fit(sections, COMMENT_LIMIT - len(marker.encode()) - 100) + marker


def _summary(view: PromotionView) -> str:
    promotion, preview = view.promotion, view.preview
    lines = [
        f"**{plain(promotion.freight.alias)}** goes to **{plain(promotion.stage)}**, asked for by {_who(view)}."
    ]
    if preview is not None:
        lines.append(f"**{_LANES[preview.lane]}.** {plain(preview.lane_reason)}")
        lines += [f"> [!CAUTION]\n> {plain(problem.message)}" for problem in preview.problems[:5]]
        if preview.held:
            lines.append(f"> [!CAUTION]\n> {plain(preview.held)}")
        lines += [f"> [!WARNING]\n> {plain(warning)}" for warning in preview.warnings[:10]]
    if view.waiting:
        lines.append(f"**Now:** {plain(view.waiting)}")
    return "\n\n".join(lines)


def _who(view: PromotionView) -> str:
    return "auto-promotion" if view.promotion.actor == "lockstep" else code(view.promotion.actor)


def _versions(view: PromotionView) -> str:
    before = {image.repo_url: image for image in view.current.images} if view.current is not None else {}
    rows = []
    for image in view.promotion.freight.images:
        old = before.get(image.repo_url)
        now = code(f"{old.tag} {_short(old.digest)}") if old is not None else "–"
        same = old is not None and (old.tag, old.digest) == (image.tag, image.digest)
        to = "unchanged" if same else code(f"{image.tag} {_short(image.digest)}")
        rows.append([code(image.repo_url), now, to])
    for commit in view.promotion.freight.commits:
        rows.append([code(commit.repo_url), "–", code(commit.tag or commit.id[:12])])
    for chart in view.promotion.freight.charts:
        rows.append([code(f"{chart.repo_url} {chart.name}".strip()), "–", code(chart.version)])
    return "### What changes\n\n" + table(["Artifact", f"In {plain(view.promotion.stage)} now", "To"], rows)


def _short(digest: str) -> str:
    return digest[7:19] if digest.startswith("sha256:") else digest[:12]


def _infra(view: PromotionView) -> str:
    if view.preview is None or not view.preview.applies:
        return ""
    rows = [[code(_inside(view.preview, a.directory)), apply_line(a)] for a in view.preview.applies]
    warnings = [destroy_warning(a.plan) for a in view.preview.applies if a.plan is not None]
    parts = ["### Terraform", table(["Directory", "What it will do"], rows), *(w for w in warnings if w)]
    return "\n\n".join(parts)


def _late_values(view: PromotionView, *, full: bool) -> str:
    """What is committed only after the apply, with the values that do not exist yet as such."""
    preview = view.preview
    if preview is None or not preview.split.deferred.changes:
        return ""
    lead = "### Committed after the merge\n\nThis is not in the diff, because Argo CD rolls out whatever is merged:"
    if not full:
        names = [f"- {code(change.path)}" for change in preview.split.deferred.changes[:100]]
        return lead + "\n\n" + "\n".join(names)
    return lead + "\n\n" + fence(patch_text(preview.split.deferred, preview), "diff")


def patch_text(patch: Patch, preview: Preview) -> str:
    """A patch as a unified diff, sentinels replaced by what they stand for."""
    text = "\n".join(_diff(change) for change in patch.changes)
    for sentinel, origin in preview.origins.items():
        text = text.replace(sentinel, f"<{origin}>")
    return text


def _diff(change: Change) -> str:
    before, after = _lines(change.before), _lines(change.after)
    if before is None or after is None:
        return f"Binary file {change.path} differs"
    names = (
        f"a/{change.path}" if change.before else "/dev/null",
        f"b/{change.path}" if change.after else "/dev/null",
    )
    return "\n".join(difflib.unified_diff(before, after, *names, lineterm="", n=2))


def _lines(file: File | None) -> list[str] | None:
    if file is None:
        return []
    try:
        return file.data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return None


def _on_merge(view: PromotionView) -> str:
    """Every step behind the merge, in order, with what it will do."""
    preview = view.preview
    if preview is None:
        return ""
    later = [
        s for s in preview.steps if s.index >= preview.split.cut and s.presence is not Presence.ON_FAILURE
    ]
    items = [line for step in later if (line := _step_line(step, view))]
    if not items:
        return ""
    numbered = "\n".join(f"{number}. {line}" for number, line in enumerate(items, start=1))
    return f"### On merge, in this order\n\n{numbered}"


def _step_line(step: StepReport, view: PromotionView) -> str:
    only = " *(only if its condition holds)*" if step.presence is Presence.CONDITIONAL else ""
    if step.presence is Presence.SKIPPED:
        return ""
    return f"{code(step.alias.rpartition('::')[2])} {_what(step, view)}{only}"


def _what(step: StepReport, view: PromotionView) -> str:
    record = step.record
    match record:
        case ApplyRecord():
            where = _inside(view.preview, record.directory) if view.preview is not None else record.directory
            return f"applies {code(where)}: {apply_line(record)}"
        case CommitRecord():
            return f"commits {len(record.changes)} file(s): {code(_first_line(record.message))}"
        case PublishRecord():
            return f"pushes to {code(record.branch or record.tag)} ({view.write_back})"
        case EffectRecord():
            details_ = ", ".join(
                f"{plain(name)} {code(value_text(value))}" for name, value in record.details[:6]
            )
            return f"{plain(record.title)} {code(record.address)}" + (f": {details_}" if details_ else "")
        case GateRecord():
            return f"waits: {plain(record.subject)}"
        case _ if step.step_class is StepClass.EDIT:
            files = ", ".join(code(_inside(view.preview, c.path)) for c in step.changes[:3])
            return f"edits {files}" if files else "changes nothing"
        case _ if step.step_class is StepClass.INFRA:
            return "reads the outputs"
        case _:
            return plain(step.message) or plain(step.kind)


def _inside(preview: Preview | None, path: str) -> str:
    """A path of the work tree as the repository names it."""
    if preview is not None and preview.checkout not in ("", "."):
        return path.removeprefix("./").removeprefix(f"{preview.checkout}/")
    return path.removeprefix("./")


def _first_line(message: Value) -> str:
    shown = show(message)
    return (shown if isinstance(shown, str) else str(shown)).strip().split("\n", 1)[0][:100]


def _on_failure(view: PromotionView) -> str:
    if view.preview is None:
        return ""
    items = [s for s in view.preview.steps if s.presence is Presence.ON_FAILURE]
    if not items:
        return ""
    return "### Only if something fails\n\n" + "\n".join(
        f"- {code(s.alias)} ({plain(s.kind)})" for s in items
    )


def _gates(view: PromotionView) -> str:
    if not view.gates:
        return ""
    lines = [
        f"- [{'x' if gate.open else ' '}] **{plain(gate.name)}**: {plain(gate.reason)}" for gate in view.gates
    ]
    verdicts = view.tally.verdicts if view.tally is not None else ()
    lines += [
        f"  - {code(v.login)} {'counts' if v.counted else 'does not count'}: {plain(v.reason)}"
        for v in verdicts
    ]
    merge = "Lockstep merges it when every gate is open." if view.auto_merge else "A person merges it."
    return "### Gates\n\n" + "\n".join(lines) + f"\n\n{merge}"


def _stages(view: PromotionView) -> str:
    rows = []
    for line in view.stages:
        name = f"**{plain(line.name)}** ← this" if line.here else plain(line.name)
        freight = plain(line.freight.alias) if line.freight is not None else "–"
        tags = ", ".join(i.tag for i in line.freight.images) if line.freight is not None else ""
        since = line.since.strftime("%Y-%m-%d %H:%M UTC") if line.since is not None else "–"
        rows.append([name, freight, code(tags) if tags else "–", since, "verified" if line.verified else "–"])
    return "### Pipeline\n\n" + table(["Stage", "Freight", "Versions", "Since", ""], rows) if rows else ""


def _commands(view: PromotionView) -> str:
    digest = view.promotion.digest
    rows = [
        ["`/plan`", "preview again"],
        ["`/hold REASON`, `/resume`", "keep it from being merged, and end that"],
        ["`/cancel`", "end this promotion"],
        [f"`/promote {view.promotion.stage} FREIGHT`", "promote other Freight instead"],
        ["`/explain`", "show every gate and why it is open or closed"],
        ["`/help`", "all commands"],
    ]
    foot = f"\n\nPreview digest {code(digest)}" if digest else ""
    link = f" · [details]({view.page})" if view.page else ""
    return details("Commands", table(["Comment", "What it does"], rows)) + foot + link
