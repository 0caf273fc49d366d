"""What is wrong with a configuration, at its place, in words that say how to mend it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """An error is not carried out; a warning is, but somebody should look at it."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One problem: file, line (from 1; 0 if no line is to blame), key path such as `spec.vars[0].name`, message.

    An error with a `stage` (and its `project`) stops that Stage alone; one without stops the whole configuration,
    so that the last good one stays in force.
    """

    path: str
    line: int
    key: str
    message: str
    severity: Severity = Severity.ERROR
    stage: str = ""
    project: str = ""


def sort_problems(problems: Iterable[ConfigProblem]) -> tuple[ConfigProblem, ...]:
    """The problems by file, line and key, each once."""
    return tuple(
        sorted(
            dict.fromkeys(problems),
            key=lambda item: (
                item.path,
                item.line,
                item.key,
                item.severity,
                item.project,
                item.stage,
                item.message,
            ),
        )
    )
