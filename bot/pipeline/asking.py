"""What keeps a task from asking people: no pull request to ask on, or a question that cannot be asked."""

from __future__ import annotations

from collections.abc import Sequence

from bot.domain.model import Step
from bot.domain.questions import QuestionError, parse_question
from bot.domain.review_policy import ReviewPolicy
from bot.domain.step_kinds import ASKS_PEOPLE
from bot.domain.values import Json, json_texts
from bot.expressions.templates import has_expression


def find_asking_problem(steps: Sequence[Step], policy: ReviewPolicy) -> str:
    """Why a step of the task cannot ask what it asks, empty if all can; what holds an expression is seen later."""
    asking = [step for step in steps if step.uses in ASKS_PEOPLE]
    if asking and policy.review == "None":
        return (
            f"{asking[0].uses} asks people on the pull request, but the ReviewPolicy {policy.metadata.name} says "
            "review: None, so that there is none; leave the step out, or say autoMerge: true"
        )
    for step in asking:
        schema = step.config.get("schema")
        if step.uses != "get-user-input" or not isinstance(schema, dict) or _has_expression(schema):
            continue
        try:
            parse_question(schema)
        except QuestionError as error:
            return f"get-user-input cannot ask what its schema says: {error}"
    return ""


def _has_expression(schema: dict[str, Json]) -> bool:
    return any(map(has_expression, json_texts(schema)))
