"""Terraform's JSON lines (`-json`) as diagnostics, a log to read, and the reason of a failure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from bot.adapters.masks import Masks
from bot.domain.terraform import Diagnostic, Lock


class Reason(StrEnum):
    """What a failure means for the caller."""

    LOCKED = "locked"
    STALE = "stale"
    UNSAVED = "unsaved"
    FAILED = "failed"


SUMMARIES: tuple[tuple[str, Reason], ...] = (
    ("Error acquiring the state lock", Reason.LOCKED),
    ("Error locking state", Reason.LOCKED),
    ("Saved plan is stale", Reason.STALE),
    ("Saved plan does not match the given state", Reason.STALE),
    ("Plan file can no longer be applied", Reason.STALE),
    ("Failed to persist state to backend", Reason.UNSAVED),
    ("Failed to save state", Reason.UNSAVED),
    ("Error saving state", Reason.UNSAVED),
    ("Failed to update state", Reason.UNSAVED),
    ("Error releasing the state lock", Reason.UNSAVED),
)
"""Beginnings of an error's `summary` in the JSON stream; Terraform gives no code for them."""

TEXT_LIMIT = 512 * 1024
"""Characters of a log that are kept: its beginning and, above all, its end."""


class JsonLog:
    """What one command said, taken in line by line; everything that comes out of it is masked.

    Without masks (`None`) no text comes out at all. `show` gets each message as it arrives.
    """

    def __init__(self, masks: Masks | None, show: Callable[[str], None] | None = None) -> None:
        self._masks = masks
        self._show = show
        self._lines: list[str] = []
        self.diagnostics: list[Diagnostic] = []
        self.summary = ""
        self.changing = False
        self.reason = Reason.FAILED
        self._lock_detail = ""

    def feed(self, line: bytes) -> None:
        """Take in one line of standard output; what is not JSON (a crash, a plugin's noise) is kept as text."""
        text = line.decode("utf-8", "replace")
        try:
            message = json.loads(text)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            self._add(text)
            return
        match message.get("type"):
            case "diagnostic":
                self._diagnose(message.get("diagnostic") or {})
                return
            case "change_summary":
                self.summary = str(message.get("@message", ""))
            case "apply_start":
                self.changing = True
        self._add(str(message.get("@message", "")))

    def _add(self, text: str) -> None:
        if self._masks is None or not text.strip():
            return
        masked = self._masks(text)
        self._lines.append(masked)
        if self._show is not None:
            self._show(masked)

    def _diagnose(self, found: dict[str, Any]) -> None:
        summary, detail = str(found.get("summary", "")), str(found.get("detail", ""))
        place = found.get("range") or {}
        severity = str(found.get("severity", "error"))
        path, line = str(place.get("filename", "")), int((place.get("start") or {}).get("line", 0))
        if severity == "error":
            reason = next((r for start, r in SUMMARIES if summary.startswith(start)), Reason.FAILED)
            if self.reason is Reason.FAILED:
                self.reason = reason
            if reason is Reason.LOCKED:
                self._lock_detail = detail
        if self._masks is not None:
            self.diagnostics.append(
                Diagnostic(severity, self._masks(summary), self._masks(detail), self._masks(path), line)
            )
        where = f"  on {path} line {line}" if path else ""
        self._add("\n".join(part for part in (f"{severity.capitalize()}: {summary}", where, detail) if part))

    def add_text(self, text: str) -> None:
        """Take in standard error, or the output of a command that has no JSON."""
        for line in text.splitlines():
            self._add(line)

    @property
    def text(self) -> str:
        """The masked log, bounded."""
        return bounded("\n".join(self._lines))

    def lock(self, begun: datetime) -> Lock:
        """Who holds the state, if the failure was the lock; `begun` is when our command started."""
        return read_lock(self._lock_detail, begun, self._masks)

    def errors(self, tool: str) -> Sequence[Diagnostic]:
        """The diagnostics, or one made of the log if the command failed without any."""
        if any(d.severity == "error" for d in self.diagnostics):
            return self.diagnostics
        if self._masks is None:
            return [
                Diagnostic("error", f"{tool} failed; its messages are withheld, since they cannot be masked")
            ]
        first = next((m[1] for line in self._lines if (m := re.search(r"Error: (.+)", line))), "")
        return [
            *self.diagnostics,
            Diagnostic("error", first or f"{tool} failed without a message", self.text[-4000:]),
        ]


def bounded(text: str, limit: int = TEXT_LIMIT) -> str:
    """The text itself, or its beginning and end with a line between them that says what was left out."""
    if len(text) <= limit:
        return text
    head, tail = limit // 4, limit - limit // 4
    return f"{text[:head]}\n[{len(text) - limit} characters left out]\n{text[-tail:]}"


def read_lock(detail: str, begun: datetime, masks: Masks | None) -> Lock:
    """Who holds a lock, from the detail of the error.

    Some backends (http, pg) print our own request under "Lock Info"; such is told by its time or by another id in the
    message, and then nobody is named.
    """
    if masks is None:
        return Lock()
    text = masks(detail)
    fields = dict(re.findall(r"^\s*(ID|Operation|Who|Created):[ \t]*(.*?)[ \t]*$", text, re.MULTILINE))
    message = re.search(r"Error message: (.*?)(?:\n\s*Lock Info:|\n\n|\Z)", text, re.DOTALL)
    said = " ".join(message[1].split()) if message else ""
    holder = re.search(r"\bID=(\S+)", said)
    ours = _moment(fields.get("Created", "")) >= begun.timestamp() - 1
    if holder is not None and holder[1] != fields.get("ID"):
        return Lock(id=holder[1], message=said)
    if ours:
        return Lock(message=said)
    return Lock(
        id=fields.get("ID", ""),
        who=fields.get("Who", ""),
        operation=fields.get("Operation", ""),
        created=fields.get("Created", ""),
        message=said,
    )


def _moment(text: str) -> float:
    """Seconds since 1970 of Go's way to print a time, 0 if it is none."""
    found = re.match(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.\d+)? ([+-]\d{4})", text)
    if found is None:
        return 0.0
    return datetime.strptime(f"{found[1]} {found[2]} {found[3]}", "%Y-%m-%d %H:%M:%S %z").timestamp()
