"""The small words of every report: steps, moments, durations, versions, and what is promoted from where to where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.domain.freight import Freight
from bot.domain.promotion import StepRun, StepStatus
from bot.domain.tasks import SEPARATOR, is_reserved_alias
from bot.reports.markdown import code


def step_name(alias: str, kind: str) -> str:
    """The alias that a person wrote, else the step's kind."""
    own = alias.rpartition(SEPARATOR)[2]
    return kind if kind and (not own or is_reserved_alias(own)) else own


def moment(at: datetime) -> str:
    """A time to the minute: `2026-05-04 09:00 UTC`."""
    return at.strftime("%Y-%m-%d %H:%M UTC")


def duration(span: timedelta) -> str:
    """How long something took: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`."""
    seconds = max(span.total_seconds(), 0.0)
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def run_time(run: StepRun, now: datetime) -> str:
    """How long a step took, or has run so far; empty if it did not run or nobody knows when it ended."""
    if run.begun_at is None or run.status is StepStatus.SKIPPED:
        return ""
    if run.status is StepStatus.RUNNING:
        return f"{duration(now - run.begun_at)} so far"
    return "" if run.finished_at is None else duration(run.finished_at - run.begun_at)


def run_message(run: StepRun) -> str:
    """What the step said, else its result; other outputs are not shown, since nobody looked whether they may be."""
    if run.message:
        return run.message
    for name in ("result", "commit"):
        value = run.output.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def plural(number: int, one: str, many: str = "") -> str:
    """A number with its noun: `1 file`, `2 files`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


# -- versions --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Version:
    """One artifact of Freight: `key` tells which, `name` is short, `tag` what people say, `exact` what never moves."""

    key: str
    name: str
    tag: str
    exact: str = ""

    def show(self, *, bold: bool = False) -> str:
        """Tag and exact revision as Markdown; `bold` sets off what people call it by."""
        named = code(self.tag or self.exact)
        named = f"**{named}**" if bold else named
        return f"{named} ({code(self.exact)})" if self.tag and self.exact not in ("", self.tag) else named


@dataclass(frozen=True, slots=True)
class VersionChange:
    """One artifact as the Stage has it, None if it has none, and as it will be, None if it goes away."""

    before: Version | None
    after: Version | None

    @property
    def is_change(self) -> bool:
        """Whether the two differ; equal tags of different digests do."""
        return self.before != self.after

    @property
    def name(self) -> str:
        """The artifact's short name."""
        return self._any.name

    @property
    def key(self) -> str:
        """The artifact's whole name."""
        return self._any.key

    @property
    def _any(self) -> Version:
        found = self.after or self.before
        return found if found is not None else Version("", "", "")


def versions_of(freight: Freight) -> tuple[Version, ...]:
    """Everything that Freight holds, images first."""
    images = (Version(i.repo_url, _last(i.repo_url), i.tag, _digest(i.digest)) for i in freight.images)
    charts = (
        Version(f"{c.repo_url} {c.name}".strip(), c.name or _last(c.repo_url), c.version)
        for c in freight.charts
    )
    commits = (
        Version(f"{c.repo_url} {c.subscription_name}".strip(), _last(c.repo_url), c.tag, c.id[:12])
        for c in freight.commits
    )
    artifacts = (
        Version(f"{a.artifact_type} {a.subscription_name}".strip(), a.subscription_name, a.version)
        for a in freight.artifacts
    )
    return (*images, *charts, *commits, *artifacts)


def compare_versions(current: Freight | None, freight: Freight) -> tuple[VersionChange, ...]:
    """Artifact by artifact, in the order of the new Freight; what only the old one has stands last."""
    old = _by_key(versions_of(current) if current is not None else ())
    new = _by_key(versions_of(freight))
    return tuple(VersionChange(old.get(key), new.get(key)) for key in dict.fromkeys([*new, *old]))


def _by_key(versions: Iterable[Version]) -> dict[str, Version]:
    """The versions by artifact; a second one of the same artifact is kept beside the first."""
    found: dict[str, Version] = {}
    for version in versions:
        key, number = version.key, 1
        while key in found:
            number += 1
            key = f"{version.key} {number}"
        found[key] = version
    return found


def versions_line(freight: Freight) -> str:
    """What Freight holds in one line of Markdown: `otel-app 1.1.0, lambda-app 1.1.0`."""
    shown = [f"{v.name} {v.tag or v.exact}".strip() for v in versions_of(freight)]
    return code(", ".join(shown)) if shown else "–"


def _last(address: str) -> str:
    return address.rstrip("/").rpartition("/")[2].removesuffix(".git")


def _digest(digest: str) -> str:
    return digest.partition(":")[2][:12] if ":" in digest else digest[:12]
