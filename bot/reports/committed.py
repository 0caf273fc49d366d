"""What a promotion commits: by the merge, after it, and elsewhere."""

from __future__ import annotations

from bot.domain.review import Patch, Preview
from bot.domain.urls import normalize_git_url
from bot.domain.view import PromotionView
from bot.reports.fitting import Section, head_of
from bot.reports.markdown import bullets, clean, code, fence, names
from bot.reports.patches import counted, patch_text
from bot.reports.wording import plural

_MOST_TARGETS = 50
_MOST_PATHS = 100
_MOST_PATCHES = 3
"""How many other branches are shown line by line."""


def file_sections(view: PromotionView, preview: Preview) -> list[Section]:
    """In this order: what the diff holds, what is committed after the merge, what is pushed elsewhere."""
    found = [
        _prepared(view, preview),
        deferred_section(view, preview),
        _others(preview, others=view.show_others),
    ]
    shown = [section for section in found if section.at(0)]
    return [Section(("### Files",)), *shown] if shown else []


def _prepared(view: PromotionView, preview: Preview) -> Section:
    paths = sorted({change.path for commit in preview.split.prepared for change in commit.changes})
    lines = []
    if paths:
        lines.append(f"In the diff of this pull request: {names(paths, 20)}.")
    elif preview.split.deferred.changes or preview.applies:
        lines.append("The diff of this pull request is empty: nothing can be committed before the merge.")
    if view.people_commits:
        commits = [commit[:12] for commit in view.people_commits]
        lines.append(
            f"People committed to the branch, too, and their commits are merged with it: {names(commits, 10)}."
        )
    whole = "\n\n".join(lines)
    return Section((whole, whole, whole, f"In the diff: {plural(len(paths), 'file')}." if lines else ""))


def deferred_section(view: PromotionView, preview: Preview) -> Section:
    """What is committed only later, with the values that do not exist yet as such."""
    changes = preview.split.deferred.changes
    if not changes:
        return Section(("",))
    when = "once Terraform has succeeded" if preview.applies else "once the steps before it are done"
    where = "onto this branch after `/apply`" if view.early else "after the merge"
    lead = f"Committed {where}, {when} ({counted(changes)})"
    why = "it holds what the apply leaves" if view.early else "whatever is merged is rolled out at once"
    how = _by_follow_up(preview) if view.follow_up and not view.early else ""
    reason = f"{lead}. It is not in the diff, because {why}{how}:"
    patch = clean(patch_text(changes, preview.origins))
    paths = bullets([code(change.path) for change in changes], _MOST_PATHS)
    return Section(
        (
            f"{reason}\n\n{fence(head_of(patch, 30_000), 'diff')}",
            f"{reason}\n\n{fence(head_of(patch, 8_000), 'diff')}",
            f"{reason}\n\n{paths}",
            f"{lead}: {plural(len(changes), 'file')}.",
        )
    )


def _by_follow_up(preview: Preview) -> str:
    why = ""
    if preview.write_back:
        kinds = names(preview.write_back.split(", "), 10)
        why = f", since rules of the branch refuse the App's push ({kinds})"
    return f". It is committed by a follow-up pull request{why}"


def is_shown(patch: Patch, preview: Preview, *, others: bool) -> bool:
    """Whether what is pushed elsewhere is shown line by line.

    Another repository may be less readable than that of the pull request, so the policy must say that its lines may be
    shown (`others`).
    """
    same = normalize_git_url(patch.target.url) == normalize_git_url(preview.target.url)
    return same or others


def _others(preview: Preview, *, others: bool) -> Section:
    """What is pushed elsewhere: of another repository names and counts."""
    patches = preview.split.others
    lines = [
        f"pushed to {code(patch.target.url)} {code(patch.target.branch)}: {plural(len(patch.changes), 'file')} "
        f"({counted(patch.changes)})"
        for patch in patches
    ]
    named = [
        f"{line}: {names([change.path for change in patch.changes], 20)}" if patch.changes else line
        for line, patch in zip(lines, patches, strict=True)
    ]
    scratch = (
        [f"written on the way, published nowhere: {names(list(preview.split.scratch), 10)}"]
        if preview.split.scratch
        else []
    )
    if not lines and not scratch:
        return Section(("",))
    whole, short = ("Elsewhere:\n\n" + bullets([*found, *scratch], _MOST_TARGETS) for found in (named, lines))
    shown = [patch for patch in patches if patch.changes and is_shown(patch, preview, others=others)]
    fenced = "".join(f"\n\n{_patch_of(patch, preview)}" for patch in shown[:_MOST_PATCHES])
    return Section((whole + fenced, whole, short))


def _patch_of(patch: Patch, preview: Preview) -> str:
    where = f"{code(patch.target.url)} {code(patch.target.branch)}"
    text = clean(patch_text(patch.changes, preview.origins))
    return f"For {where}:\n\n{fence(head_of(text, 8_000), 'diff')}"
