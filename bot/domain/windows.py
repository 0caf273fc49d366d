"""Promotion windows: when a Stage may be promoted, and when that changes.

An active Deny window closes; if any Allow window is meant for the Stage, one of them must be active. Windows of the
project and of the cluster count together. They hold for every promotion, whoever asked for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from bot.domain.model import PromotionWindow, Stage
from bot.domain.patterns import matches_selector
from bot.domain.pipeline import Pipeline
from bot.domain.recurrence import Recurrence, parse_moment, parse_rule

_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST = timedelta(days=366)
_MOST_CHANGES = 500


@dataclass(frozen=True, slots=True)
class WindowState:
    """Whether a Stage's windows let it be promoted, why, and when that changes (None: never, or nobody knows)."""

    is_open: bool
    reason: str = ""
    changes_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Window:
    name: str
    denies: bool
    times: Recurrence = field(repr=False)


@lru_cache(maxsize=1024)
def _times(dtstart: str, dtend: str, rrule: str) -> Recurrence:
    start = parse_moment(dtstart) if dtstart else _FIRST
    end = parse_moment(dtend) if dtend else None
    if rrule and (not dtstart or end is None):
        raise ValueError("a window with rrule needs dtstart and dtend")
    length = None
    if end is not None:
        local = end.astimezone(start.tzinfo)
        length = local.replace(tzinfo=None) - start.replace(tzinfo=None)
        if length <= timedelta(0):
            raise ValueError("the window ends before it begins")
        if rrule and length > _LONGEST:
            raise ValueError("a recurring window may not be longer than a year")
    return Recurrence(start, length, parse_rule(rrule) if rrule else None)


def check_window(window: PromotionWindow) -> None:
    """Raises ValueError with the reason if the window's times cannot be understood."""
    _times(window.dtstart, window.dtend, window.rrule)


def stage_windows(pipeline: Pipeline, stage: Stage) -> tuple[PromotionWindow, ...]:
    """The windows of project and cluster that are meant for a Stage; raises ValueError for a wrong selector."""
    project, metadata = stage.metadata.namespace, stage.metadata
    config, cluster = pipeline.project_configs.get(project), pipeline.cluster_config
    own = config.promotion_windows if config is not None else ()
    shared = cluster.promotion_windows if cluster is not None else ()
    return tuple(
        window
        for window in (*own, *shared)
        if matches_selector(window.stage_selector, metadata.name, metadata.labels)
        and matches_selector(window.project_selector, project, _NO_LABELS)
    )


_NO_LABELS: Mapping[str, str] = {}
"""Projects have no labels here, so a projectSelector selects by name."""


def window_state(windows: Iterable[PromotionWindow], now: datetime) -> WindowState:
    """What the windows that are meant for a Stage say now; raises ValueError for one that cannot be understood."""
    parsed = [
        _Window(item.name, item.kind == "Deny", _times(item.dtstart, item.dtend, item.rrule))
        for item in windows
    ]
    closed = _why_closed(parsed, now)
    if not parsed:
        return WindowState(is_open=True)
    return WindowState(
        is_open=not closed, reason=closed, changes_at=_next_change(parsed, now, closed=bool(closed))
    )


def _why_closed(windows: Sequence[_Window], now: datetime) -> str:
    for window in windows:
        if window.denies and window.times.is_active(now):
            return f"the window {window.name} forbids promotions now"
    allowing = [window for window in windows if not window.denies]
    if allowing and not any(window.times.is_active(now) for window in allowing):
        return f"promotions are allowed only in the window {' or '.join(item.name for item in allowing)}"
    return ""


def _next_change(windows: Sequence[_Window], now: datetime, *, closed: bool) -> datetime | None:
    """The next moment at which the answer is the other one."""
    moment: datetime | None = now
    for _ in range(_MOST_CHANGES):
        assert moment is not None
        changes = [window.times.next_change(moment) for window in windows]
        moment = min((change.astimezone(UTC) for change in changes if change is not None), default=None)
        if moment is None:
            return None
        if bool(_why_closed(windows, moment)) is not closed:
            return moment
    return None
