from __future__ import annotations

import pytest

from bot.domain.auto_promotion import (
    Hold,
    StageProgress,
    effective_holds,
    find_policy,
    holds_after_promotion,
    is_auto_promotion_enabled,
    plan_auto_promotions,
    select_candidates,
)
from bot.domain.availability import index_freight
from bot.domain.freight import FreightName
from bot.domain.model import (
    FreightSources,
    Metadata,
    ProjectConfig,
    PromotionPolicy,
    Selector,
)
from bot.domain.promotion import State
from tests.domain.builders import NOW, ORIGIN, known, stage

OLD, NEW = known("old", age=5), known("new", age=1)
INDEX = index_freight([OLD, NEW])
HOLD = Hold(ORIGIN, FreightName("old"), reason="anna promoted alias-old")


def config(*policies: PromotionPolicy) -> ProjectConfig:
    return ProjectConfig(Metadata("proj", "proj"), promotion_policies=policies)


def test_the_first_policy_that_selects_decides() -> None:
    policies = config(
        PromotionPolicy(Selector(name="glob:dev-*")),
        PromotionPolicy(Selector(name="dev-1"), auto_promotion_enabled=True),
        PromotionPolicy(Selector(), auto_promotion_enabled=True),
    )
    assert not is_auto_promotion_enabled(policies, "dev-1", {})
    assert is_auto_promotion_enabled(policies, "prod", {})
    assert not is_auto_promotion_enabled(None, "prod", {})
    assert find_policy(config(), "prod", {}) is None


@pytest.mark.parametrize(
    ("progress", "promoted", "reason"),
    [
        pytest.param(StageProgress(), "new", "is available", id="the newest"),
        pytest.param(
            StageProgress(current={ORIGIN: FreightName("new")}), None, "already", id="already there"
        ),
        pytest.param(StageProgress(holds={ORIGIN: HOLD}), None, "anna promoted", id="on hold"),
        pytest.param(
            StageProgress(unfinished=frozenset({FreightName("new")})), None, "under way", id="under way"
        ),
        pytest.param(
            StageProgress(last_states={FreightName("new"): State.FAILED}),
            None,
            "ended Failed",
            id="failed before",
        ),
        pytest.param(
            StageProgress(last_states={FreightName("new"): State.SUCCEEDED}),
            "new",
            "available",
            id="worked before",
        ),
    ],
)
def test_what_is_promoted_and_why_not(progress: StageProgress, promoted: str | None, reason: str) -> None:
    (answer,) = plan_auto_promotions(stage(), INDEX, progress, NOW)
    assert (answer.freight.name if answer.freight else None) == promoted
    assert reason in answer.reason


def test_nothing_is_promoted_where_nothing_is_available() -> None:
    (answer,) = plan_auto_promotions(
        stage(sources=FreightSources(stages=("dev",))), INDEX, StageProgress(), NOW
    )
    assert answer.freight is None
    assert answer.reason == "no Freight of Warehouse/app is available"


def test_a_control_flow_stage_has_no_promotions() -> None:
    assert plan_auto_promotions(stage(steps=()), INDEX, StageProgress(), NOW) == ()


def test_match_upstream_waits_while_two_are_upstream() -> None:
    target = stage(sources=FreightSources(stages=("dev",), selection_policy="MatchUpstream"))
    both = [known(name, verified={"dev": 1}, current={"dev": 1}) for name in ("a", "b")]
    (answer,) = plan_auto_promotions(target, index_freight(both), StageProgress(), NOW)
    assert answer.freight is None
    assert "dev is changing" in answer.reason
    assert select_candidates(target, both) == {}


def test_promoting_something_else_holds_and_the_candidate_resumes() -> None:
    held = holds_after_promotion({}, HOLD, FreightName("new"))
    assert held == {ORIGIN: HOLD}
    resumed = holds_after_promotion(held, Hold(ORIGIN, FreightName("new")), FreightName("new"))
    assert resumed == {}
    assert effective_holds(held, enabled=False) == {}
    assert effective_holds(held, enabled=True) == held
