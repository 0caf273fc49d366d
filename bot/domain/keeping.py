"""`rollback: {infra: Keep}`: a rollback brings back the older Freight and leaves what Terraform reads as it is."""

from __future__ import annotations

from collections.abc import Iterable

from bot.domain.promotion import Promotion
from bot.domain.review import ApplyKind, ApplyRecord, KeptRecord, StepReport
from bot.domain.review_policy import ReviewPolicy

KEPT = "The rollback keeps the infrastructure"
"""The result of a Terraform step that is left out."""


def keeps_infra(promotion: Promotion, policy: ReviewPolicy) -> bool:
    """Whether this Promotion leaves the infrastructure as it is."""
    return promotion.rollback and policy.rollback_infra == "Keep"


def kept_paths(steps: Iterable[StepReport]) -> frozenset[str]:
    """The paths in the work tree that are left as they are: inputs of every Terraform directory that is kept."""
    found: frozenset[str] = frozenset()
    for step in steps:
        match step.record:
            case ApplyRecord(kind=ApplyKind.KEPT, input_paths=paths) | KeptRecord(input_paths=paths):
                found |= paths
    return found


def why_unclear(directory: str, whole: str) -> str:
    """What is said where it cannot be told which files Terraform reads; empty if it can."""
    if not whole:
        return ""
    return (
        f"{KEPT.lower()} (rollback.infra: Keep), but which files {directory} reads cannot be told: {whole}. Write such "
        "paths as constants, or set rollback.infra: WithFreight"
    )
