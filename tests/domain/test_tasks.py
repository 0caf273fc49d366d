from __future__ import annotations

import pytest

from bot.domain.model import (
    Metadata,
    PromotionTask,
    Step,
    TaskReference,
    Variable,
)
from bot.domain.tasks import TaskError, inflate_steps, is_reserved_alias, missing_inputs

TASK = PromotionTask(
    Metadata("apply", "proj"),
    (Step(uses="tf-apply", variables=(Variable("inner", "i"),)), Step(uses="tf-output", alias="out")),
    (Variable("dir", None), Variable("region", "eu")),
)


def use(*variables: Variable, alias: str = "", kind: str = "PromotionTask") -> Step:
    return Step(task=TaskReference("apply", kind), alias=alias, variables=variables)


def test_a_task_becomes_its_steps_with_defaults_first() -> None:
    steps = inflate_steps([Step(uses="git-clone"), use(Variable("dir", "tf"))], {"apply": TASK}, {})
    assert [step.alias for step in steps] == ["step-1", "task-2::step-1", "task-2::out"]
    assert steps[1].variables == (Variable("region", "eu"), Variable("dir", "tf"), Variable("inner", "i"))


def test_a_promotion_level_value_takes_the_place_of_a_default() -> None:
    steps = inflate_steps([use()], {"apply": TASK}, {}, [Variable("dir", "tf"), Variable("region", "us")])
    assert steps[0].variables == (Variable("inner", "i"),)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (use(), "needs a value for dir"),
        (use(Variable("dir", "")), "needs a value for dir"),
        (
            use(Variable("dir", "x"), kind="ClusterPromotionTask"),
            "ClusterPromotionTask 'apply' does not exist",
        ),
        (use(Variable("dir", "x"), kind="Recipe"), "is no kind of task"),
        (Step(task=TaskReference("nope")), "'nope' does not exist"),
    ],
)
def test_what_cannot_be_inflated_says_why(step: Step, message: str) -> None:
    with pytest.raises(TaskError, match=message):
        inflate_steps([step], {"apply": TASK}, {})


def test_reserved_aliases() -> None:
    assert is_reserved_alias("step-1")
    assert is_reserved_alias("task-20")
    assert not is_reserved_alias("mystep-1")
    assert missing_inputs(TASK, use(), []) == ("dir",)
