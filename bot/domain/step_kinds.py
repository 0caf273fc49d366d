"""What a step kind declares of itself: its class, and how long and how often it is tried."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class StepClass(StrEnum):
    """What a step kind does to the world; an undeclared kind is an act."""

    EDIT = "edit"
    READ = "read"
    PURE = "pure"
    INFRA = "infra"
    COMMIT = "commit"
    PUBLISH = "publish"
    WAIT = "wait"
    NOTE = "note"
    ACT = "act"
    REVIEW = "review"


AWAITS_MERGE = frozenset({"git-wait-for-pr", "git-merge-pr"})
"""Steps of a task's own that end with the merge of the pull request that it opened."""

ASKS_PEOPLE = frozenset({"get-user-input", "wait-for-approval"})
"""Steps that people answer on the pull request, so that there must be one."""


def short_alias(alias: str) -> str:
    """The name that the author gave a step, without the task that it comes from (`promote::ask`)."""
    return alias.rpartition("::")[2]


@dataclass(frozen=True, slots=True)
class StepKind:
    """A step kind by its name in YAML. Times are seconds; `timeout` 0 means none."""

    name: str
    step_class: StepClass
    timeout: float = 0.0
    error_threshold: int = 1
