"""What verifications hold back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.actions import Gate
from bot.domain.analysis import AnalysisRun, Phase
from bot.domain.availability import approve_for_stage, verify_in_stage
from bot.domain.freight import FreightStatus
from bot.domain.model import FreightSources
from bot.workflow.proofs import explain_verifications, verification_gates
from tests.domain import builders, reviews

STAGE = builders.stage("staging", sources=FreightSources(stages=("dev",)))
PROMOTION = reviews.in_review(freight=builders.freight("a" * 40))
FAILED = AnalysisRun(
    "dev.1",
    "proj",
    "dev",
    "",
    (PROMOTION.freight.name,),
    "dev.1",
    builders.NOW,
    phase=Phase.FAILED,
    message="private",
)
WAITS = "waits for verification: 1 of 2 measurements"
PROVEN = verify_in_stage(FreightStatus(), "dev", builders.NOW)
APPROVED = approve_for_stage(FreightStatus(), "staging", builders.NOW)
CLOSED = Gate("verified", False, "verification failed in dev")


@pytest.mark.parametrize(
    ("run", "status", "verifying", "gates"),
    [
        pytest.param(FAILED, FreightStatus(), "", (CLOSED,), id="it failed upstream"),
        pytest.param(FAILED, PROVEN, "", (), id="it failed elsewhere and is proven where it counts"),
        pytest.param(FAILED, APPROVED, "", (), id="it failed and somebody approved it"),
        pytest.param(replace(FAILED, freight=()), FreightStatus(), "", (), id="other Freight failed"),
        pytest.param(replace(FAILED, phase=Phase.ERROR), FreightStatus(), "", (), id="nothing was proven"),
        pytest.param(
            replace(FAILED, stage="qa"),
            FreightStatus(),
            WAITS,
            (Gate("verification", False, WAITS),),
            id="it is measured",
        ),
    ],
)
def test_what_keeps_a_promotion_waiting(
    run: AnalysisRun, status: FreightStatus, verifying: str, gates: tuple[Gate, ...]
) -> None:
    seen = replace(reviews.snapshot(verifying=verifying), stage=STAGE)
    assert verification_gates(seen, PROMOTION, {run.stage: run}, status) == gates
    assert verification_gates(seen, replace(PROMOTION, rollback=True), {run.stage: run}, status) == ()


def test_the_reason_of_the_next_stage_stands_beside_its_own() -> None:
    runs = {"dev": FAILED, "other": replace(FAILED, stage="other")}
    assert (
        explain_verifications(STAGE, runs, (None, "no Freight is available", None))[1]
        == "verification failed in dev"
    )
    found = explain_verifications(STAGE, runs, (None, "the Stage has old already", None))
    assert found == (None, "the Stage has old already; verification failed in dev", None)
    chosen = (PROMOTION.freight, "it is available", None)
    assert explain_verifications(STAGE, runs, chosen) == chosen
