"""What cannot be carried out is said on the Stages that need it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.domain.freight import FreightOrigin
from bot.domain.model import (
    ChartSubscription,
    FreightRequest,
    FreightSources,
    GitSubscription,
    ImageSubscription,
    Metadata,
    PromotionTask,
    PromotionTemplate,
    Selector,
    Source,
    Stage,
    Step,
    TaskReference,
    Warehouse,
)
from bot.domain.pipeline import Pipeline
from bot.domain.problems import Severity
from bot.domain.review_policy import ReviewPolicy
from bot.pipeline import find_not_carried_out

DEV = Stage(
    Metadata("dev", "shop", source=Source("stages.yaml", 3)),
    (FreightRequest(FreightOrigin("apps"), FreightSources(direct=True)),),
)
IMAGES = Warehouse(Metadata("apps", "shop"), (ImageSubscription("reg.example/app"),))
PROD = replace(DEV, metadata=Metadata("prod", "shop"))
GOOD = Pipeline(
    stages={("shop", "dev"): DEV, ("shop", "prod"): PROD},
    warehouses={("shop", "apps"): IMAGES},
    review_policies=(ReviewPolicy(Metadata("all")),),
)


def test_a_pipeline_of_images_is_carried_out() -> None:
    assert find_not_carried_out(GOOD) == ()


@pytest.mark.parametrize(
    "url", ["https://git.example/x", "https://git.example:8443/x.git", "http://127.0.0.1:3000/acme/x.git"]
)
def test_git_repositories_and_charts_are_carried_out(url: str) -> None:
    subscriptions = (GitSubscription(url), ChartSubscription("oci://reg.example/charts/app"))
    warehouse = replace(IMAGES, subscriptions=subscriptions)
    assert find_not_carried_out(replace(GOOD, warehouses={("shop", "apps"): warehouse})) == ()


@pytest.mark.parametrize(
    ("pipeline", "says"),
    [
        pytest.param(
            replace(
                GOOD,
                warehouses={
                    ("shop", "apps"): replace(
                        IMAGES, subscriptions=(GitSubscription("ssh://git@git.example/x"),)
                    )
                },
                stages={("shop", "dev"): DEV},
            ),
            "https alone",
            id="a git repository by ssh",
        ),
    ],
)
def test_a_stage_that_needs_more_has_an_error(pipeline: Pipeline, says: str) -> None:
    (problem,) = find_not_carried_out(pipeline)
    assert says in problem.message
    assert (problem.severity, problem.project, problem.stage) == (Severity.ERROR, "shop", "dev")
    assert (problem.path, problem.line) == ("stages.yaml", 3)


def test_a_state_in_git_is_refused_with_replicas_alone() -> None:
    policy = ReviewPolicy(Metadata("local"), Selector("dev"), state_in_git=True)
    pipeline = replace(GOOD, review_policies=(policy,))
    assert find_not_carried_out(pipeline) == ()
    (problem,) = find_not_carried_out(pipeline, replicas=True)
    assert (problem.severity, problem.project, problem.stage) == (Severity.ERROR, "shop", "dev")
    assert "the ReviewPolicy local says stateInGit: true, which is refused on PostgreSQL" in problem.message


def test_a_state_in_git_is_never_left_to_a_branch_that_may_not_be_merged() -> None:
    policy = ReviewPolicy(Metadata("local"), Selector("dev"), state_in_git=True, apply="BeforeMerge")
    (problem,) = find_not_carried_out(replace(GOOD, review_policies=(policy,)))
    assert (problem.severity, problem.project, problem.stage) == (Severity.ERROR, "shop", "dev")
    assert "would take the state with it" in problem.message


def uses(*kinds: str) -> tuple[Step, ...]:
    return tuple(Step(uses=kind, alias=f"s{number}") for number, kind in enumerate(kinds))


EARLY = uses("git-push", "git-open-pr", "tf-apply", "git-wait-for-pr")


@pytest.mark.parametrize(
    ("steps", "policy", "says"),
    [
        pytest.param(
            uses("git-open-pr", "git-wait-for-pr", "git-open-pr"),
            {},
            "opens 2 pull requests",
            id="two of them",
        ),
        pytest.param(uses("git-wait-for-pr"), {}, "has not opened", id="somebody else's"),
        pytest.param(uses("git-merge-pr", "git-open-pr"), {}, "has not opened", id="the wrong order"),
        pytest.param(
            uses("git-open-pr", "argocd-update"), {}, "add git-wait-for-pr", id="one that nothing waits for"
        ),
        pytest.param(EARLY, {}, "tf-apply stands before git-wait-for-pr", id="an apply before the review"),
        pytest.param(
            EARLY,
            {"effects_before_review": True},
            "effectsBeforeReview is not carried out yet",
            id="an apply before the review that the policy wants",
        ),
        pytest.param(
            uses("git-open-pr", "git-wait-for-pr"),
            {"apply": "BeforeMerge"},
            "what stands behind that is done after the merge",
            id="an apply before the merge that the task itself waits for",
        ),
        pytest.param(
            uses("git-open-pr", "git-wait-for-pr"), {"review": "None"}, "review: None", id="no review at all"
        ),
    ],
)
def test_a_task_whose_own_pull_request_cannot_be_guarded_is_an_error(
    steps: tuple[Step, ...], policy: dict[str, Any], says: str
) -> None:
    dev = replace(DEV, template=PromotionTemplate(steps))
    policies = (ReviewPolicy(Metadata("all"), **policy),)
    (problem,) = find_not_carried_out(replace(GOOD, stages={("shop", "dev"): dev}, review_policies=policies))
    assert says in problem.message
    assert (problem.severity, problem.key, problem.stage) == (
        Severity.ERROR,
        "spec.promotionTemplate",
        "dev",
    )


@pytest.mark.parametrize("last", ["git-wait-for-pr", "git-merge-pr"])
def test_a_task_that_awaits_its_own_pull_request_is_carried_out(last: str) -> None:
    steps = uses("git-clone", "git-commit", "git-push", "git-open-pr", last, "tf-apply", "argocd-update")
    dev = replace(DEV, template=PromotionTemplate(steps))
    assert find_not_carried_out(replace(GOOD, stages={("shop", "dev"): dev})) == ()


def test_such_an_error_is_found_wherever_the_steps_stand() -> None:
    opening = Step(uses="git-open-pr", alias="open")
    task = PromotionTask(Metadata("release", "shop"), (opening,))
    direct = replace(DEV, template=PromotionTemplate((opening,)))
    through = replace(PROD, template=PromotionTemplate((Step(task=TaskReference("release"), alias="t"),)))
    pipeline = replace(
        GOOD, stages={("shop", "dev"): direct, ("shop", "prod"): through}, tasks={("shop", "release"): task}
    )
    found = find_not_carried_out(pipeline)
    assert {problem.stage for problem in found} == {"dev", "prod"}
    assert all("behind git-open-pr" in problem.message for problem in found)


def test_a_warehouse_whose_freight_is_made_by_hand_is_carried_out() -> None:
    by_hand = replace(IMAGES, freight_creation_policy="Manual")
    assert find_not_carried_out(replace(GOOD, warehouses={("shop", "apps"): by_hand})) == ()
