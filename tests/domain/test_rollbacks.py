"""When a Stage goes back by itself, and to what."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.analysis import AnalysisRun, Phase
from bot.domain.freight import FreightName, FreightOrigin
from bot.domain.github import PullNumber
from bot.domain.history import FreightCollection
from bot.domain.model import PromotionPolicy, Selector
from bot.domain.promotion import Following, Promotion, State
from bot.domain.rollbacks import LATEST, Failure, find_failure, former_freight, ways_back
from tests.domain import reviews as b

POLICY = PromotionPolicy(Selector(name="dev"), auto_rollback=True)
WIDE = replace(
    POLICY, rollback_on_promotion=("Failed", "Errored"), rollback_on_verification=("Failed", "Error")
)
DONE = b.promotion(state=State.SUCCEEDED, finished_at=b.NOW)
BROKEN = b.promotion(state=State.FAILED, blocked=True, finished_at=b.NOW, reason="terraform apply failed")
FOLLOWS = Following(PullNumber(7), b.NOW, b.NOW)


def run(phase: Phase = Phase.FAILED, **changes: object) -> AnalysisRun:
    made = AnalysisRun(
        id="dev.1.a",
        project=DONE.project,
        stage=DONE.stage,
        collection="c",
        freight=(DONE.freight.name,),
        promotion=DONE.id,
        created_at=b.NOW,
        phase=phase,
        message='metric "ok" failed',
        settled=True,
        finished_at=b.NOW,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("policy", "last", "verification", "goes_back"),
    [
        pytest.param(POLICY, DONE, run(), True, id="its verification failed"),
        pytest.param(POLICY, DONE, run(Phase.ERROR), False, id="an error is not named by default"),
        pytest.param(WIDE, DONE, run(Phase.ERROR), True, id="an error that is named"),
        pytest.param(POLICY, DONE, run(Phase.SUCCESSFUL), False, id="its verification succeeded"),
        pytest.param(POLICY, DONE, run(Phase.INCONCLUSIVE), False, id="nothing was proven"),
        pytest.param(POLICY, DONE, run(Phase.ABORTED), False, id="somebody aborted it"),
        pytest.param(POLICY, DONE, run(actor="uma"), False, id="somebody asked for the verification"),
        pytest.param(POLICY, DONE, run(settled=False), False, id="the Freight does not know of it yet"),
        pytest.param(POLICY, DONE, run(promotion="dev.0.z"), False, id="a run of an earlier promotion"),
        pytest.param(POLICY, DONE, None, False, id="nothing is verified"),
        pytest.param(
            POLICY, replace(DONE, rollback=True), run(), False, id="a rollback that fails is not rolled back"
        ),
        pytest.param(POLICY, DONE, run(finished_at=b.NOW - LATEST), True, id="twenty minutes ago"),
        pytest.param(
            POLICY, DONE, run(finished_at=b.NOW - LATEST - timedelta(seconds=1)), False, id="too long ago"
        ),
        pytest.param(POLICY, BROKEN, None, False, id="a failed promotion, by default"),
        pytest.param(WIDE, BROKEN, None, True, id="a failed promotion that is named"),
        pytest.param(WIDE, replace(BROKEN, state=State.ERRORED), None, True, id="an error after the merge"),
        pytest.param(WIDE, replace(BROKEN, rollback=True), None, False, id="a rollback whose apply failed"),
        pytest.param(WIDE, replace(BROKEN, corrects=True), None, False, id="what was to undo drift failed"),
        pytest.param(WIDE, replace(BROKEN, follows=FOLLOWS), None, False, id="what followed a merge failed"),
        pytest.param(WIDE, replace(DONE, follows=FOLLOWS), run(), False, id="and so did its verification"),
        pytest.param(
            WIDE,
            replace(BROKEN, finished_at=b.NOW - timedelta(hours=1)),
            None,
            False,
            id="failed an hour ago",
        ),
        pytest.param(
            WIDE, replace(BROKEN, blocked=False), None, False, id="it failed before anything was merged"
        ),
        pytest.param(
            WIDE, replace(BROKEN, blocked=False, state=State.ABORTED), None, False, id="somebody closed it"
        ),
        pytest.param(
            replace(WIDE, auto_rollback=False), DONE, run(), False, id="the policy does not ask for it"
        ),
        pytest.param(None, DONE, run(), False, id="no policy"),
        pytest.param(WIDE, None, None, False, id="nothing was promoted yet"),
    ],
)
def test_when_a_stage_goes_back(
    policy: PromotionPolicy | None, last: Promotion | None, verification: AnalysisRun | None, goes_back: bool
) -> None:
    failure = find_failure(policy, last, verification, b.NOW)
    assert (failure is not None) == goes_back
    if failure is not None:
        assert failure.freight == DONE.freight.name
        assert "calm-otter" in failure.reason
        assert "failed" in failure.reason or "could not be carried out" in failure.reason


def test_it_goes_back_along_its_own_history() -> None:
    origin, other = FreightOrigin("otel"), FreightOrigin("web")
    names = [FreightName(letter * 40) for letter in "abc"]
    history = (
        FreightCollection({origin: names[0], other: names[2]}),
        FreightCollection({origin: names[0]}),
        FreightCollection({origin: names[1], other: names[0]}),
        FreightCollection({other: names[1]}),
        FreightCollection({origin: names[2]}),
    )
    assert [*former_freight(history, Failure(origin, names[0], "failed"))] == [names[1], names[2]]
    # A promotion that failed half-way never became what the Stage has.
    failed = Failure(origin, FreightName("f" * 40), "failed")
    assert next(former_freight(history, failed)) == names[0]


def test_a_person_goes_back_past_what_runs_but_not_past_what_a_failed_promotion_left_in_place() -> None:
    origin = FreightOrigin("otel")
    names = [FreightName(letter * 40) for letter in "abc"]
    history = tuple(FreightCollection({origin: name}) for name in (names[0], names[1], names[0], names[2]))
    assert [*ways_back(history, None)] == [names[1], names[2]]
    assert [*ways_back(history, FreightName("f" * 40))] == names
    assert [*ways_back((), None)] == []
