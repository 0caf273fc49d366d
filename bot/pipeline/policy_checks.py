"""What the schema cannot say of a ReviewPolicy: its expressions, its schedule and its patterns."""

from __future__ import annotations

from collections.abc import Iterator

from bot.domain.cron import parse_cron
from bot.domain.patterns import compile_name_pattern
from bot.domain.review_policy import ReviewPolicy
from bot.pipeline.expression_checks import Known, check_templates
from bot.pipeline.schema import Finding


def check_review_policy(policy: ReviewPolicy) -> Iterator[Finding]:
    """Everything that cannot be understood."""
    for index, variable in enumerate(policy.plan_env):
        yield from check_templates(variable.value, ("spec", "planEnv", index, "value"), Known())
    if policy.drift_schedule:
        try:
            parse_cron(policy.drift_schedule)
        except ValueError as error:
            yield Finding(("spec", "drift", "schedule"), f"the schedule cannot be understood: {error}")
    for index, pattern in enumerate(policy.drift_correct):
        try:
            compile_name_pattern(pattern)
        except ValueError as error:
            yield Finding(("spec", "drift", "correct", index), f"the pattern cannot be understood: {error}")
