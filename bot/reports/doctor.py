"""The doctor's findings: as a table for a terminal, as JSON for programs, as a comment on a pull request."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from bot.domain.doctor import Finding, Level
from bot.reports.fitting import COMMENT_LIMIT, Section, fit
from bot.reports.markdown import clean, plain
from bot.reports.wording import plural

_WIDTH = 100
_ICONS = {Level.OK: "✅", Level.WARNING: "⚠️", Level.FAILURE: "❌", Level.UNKNOWN: "❔"}
_PRIVATE = frozenset({"data directory", "vault key", "database", "terraform", "git"})
"""Checks whose details are the operator's business, not that of everybody who can read a repository."""


def render_table(findings: Sequence[Finding]) -> str:
    """A line for each finding, what to do under it, and the sum."""
    wide = max((len(finding.check) for finding in findings), default=0)
    lines: list[str] = []
    for finding in findings:
        said = clean(": ".join(part for part in (finding.subject, finding.message) if part))
        start = f"{finding.level.value:<8} {finding.check:<{wide}}  "
        indent = " " * len(start)
        lines += textwrap.wrap(said, _WIDTH, initial_indent=start, subsequent_indent=indent) or [start]
        if finding.remedy:
            mend = f"to do: {clean(finding.remedy)}"
            lines += textwrap.wrap(mend, _WIDTH, initial_indent=indent, subsequent_indent=indent)
    return "\n".join([*lines, "", summary(findings)])


def summary(findings: Sequence[Finding]) -> str:
    """How many of each kind, in words."""
    counts = Counter(finding.level for finding in findings)
    bad = counts[Level.FAILURE]
    parts = [f"{plural(bad, 'thing')} to mend" if bad else "nothing to mend"]
    if counts[Level.WARNING]:
        parts.append(plural(counts[Level.WARNING], "warning"))
    if counts[Level.UNKNOWN]:
        parts.append(f"{counts[Level.UNKNOWN]} could not be looked at")
    return f"{', '.join(parts)}; {counts[Level.OK]} in order"


def render_json(findings: Sequence[Finding]) -> str:
    """One object: `findings` with `check`, `subject`, `level`, `message` and `remedy`, and `ok`."""
    bad = any(finding.level is Level.FAILURE for finding in findings)
    return json.dumps({"ok": not bad, "findings": [asdict(finding) for finding in findings]}, indent=2)


def render_doctor(findings: Sequence[Finding], *, limit: int = COMMENT_LIMIT) -> str:
    """What is not in order, for whoever can read the repository: details of the bot's own machine are left out."""
    lines = []
    for finding in findings:
        if finding.level is Level.OK:
            continue
        where = f" {plain(finding.subject, 200)}" if finding.subject and finding.check not in _PRIVATE else ""
        said = (
            finding.message if finding.check not in _PRIVATE else "see `lockstep doctor` on the bot's machine"
        )
        lines.append(f"- {_ICONS[finding.level]} **{finding.check}**{where}: {plain(said, 500)}")
        if finding.remedy and finding.check not in _PRIVATE:
            lines.append(f"  - {plain(finding.remedy, 500)}")
    sections = [Section((f"**{summary(findings)}**",))]
    if lines:
        sections.append(Section(tuple("\n".join(lines[:most]) for most in (200, 60, 20))))
    return fit(sections, limit)
