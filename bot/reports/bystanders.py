"""The required check on a person's own pull request: what it touches, and whose approval that needs."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.approvals import Tally
from bot.domain.files import CommitId
from bot.domain.github import CheckRun, Conclusion, PullNumber
from bot.reports.markdown import code, plain

_SHOWN = 20


def render_untouched_check(number: PullNumber, head: CommitId) -> CheckRun:
    """Green: no Stage lives on anything that it touches."""
    return CheckRun(
        name="lockstep",
        head=head,
        title="Touches no promotion",
        summary="This pull request is none of Lockstep's promotions and touches no Stage: nothing is to be approved.",
        conclusion=Conclusion.SUCCESS,
        external_id=f"pull/{number}",
    )


def render_touching_check(
    number: PullNumber, head: CommitId, touched: Sequence[tuple[str, str]], tallies: Sequence[Tally]
) -> CheckRun:
    """Green once every tally is enough; `touched` are Stages, each with a path (or a reason) that says so."""
    enough = all(tally.enough for tally in tallies)
    names = ", ".join(name for name, _ in touched[:3]) + (" and more" if len(touched) > 3 else "")
    lines = [f"- {plain(name)}: {code(path)}" for name, path in touched[:_SHOWN]]
    if len(touched) > _SHOWN:
        lines.append(f"- and {len(touched) - _SHOWN} more")
    summary = "\n".join(
        [
            "This pull request touches what Stages live on, so it needs the approvals that their policies ask for: of "
            "its present head, by people who neither opened it nor wrote a commit of it.",
            "",
            *lines,
            "",
            *(f"- {line}" for tally in tallies for line in _counts(tally)),
        ]
    )
    return CheckRun(
        name="lockstep",
        head=head,
        title=plain(f"Touches {names}: {'approved' if enough else 'waits for approvals'}", 200),
        summary=summary,
        conclusion=Conclusion.SUCCESS if enough else None,
        external_id=f"pull/{number}",
    )


def _counts(tally: Tally) -> list[str]:
    lines = [f"{tally.count} of {tally.needed} approvals"]
    lines += [f"{plain(login)} asks for changes" for login in tally.objections]
    lines += [plain(f"{v.login}: {v.reason}") for v in tally.verdicts if not v.counted]
    return lines
