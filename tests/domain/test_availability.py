from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.availability import (
    KnownFreight,
    approve_for_stage,
    available_freight,
    enter_stage,
    explain_availability,
    index_freight,
    is_freight_available,
    leave_stage,
    longest_soak,
    revoke_in_stage,
    verify_in_stage,
)
from bot.domain.freight import FreightOrigin, FreightStatus
from bot.domain.model import FreightSources
from tests.domain.builders import NOW, hours, known, stage

AFTER_DEV = FreightSources(stages=("dev",), required_soak_time=3600.0)
AFTER_BOTH = FreightSources(stages=("dev", "qa"), required_soak_time=3600.0, availability_strategy="All")


@pytest.mark.parametrize(
    ("sources", "freight", "available"),
    [
        pytest.param(FreightSources(direct=True), known("f"), True, id="straight from the Warehouse"),
        pytest.param(AFTER_DEV, known("f"), False, id="never verified upstream"),
        pytest.param(AFTER_DEV, known("f", verified={"dev": 2}), True, id="soaked long enough once"),
        pytest.param(
            AFTER_DEV, known("f", verified={"dev": 0}, current={"dev": 1}), True, id="soaks long enough now"
        ),
        pytest.param(AFTER_DEV, known("f", current={"dev": 5}), False, id="soak counts only once verified"),
        pytest.param(AFTER_DEV, known("f", approved=("prod",)), True, id="approved instead"),
        pytest.param(AFTER_DEV, known("f", approved=("qa",)), False, id="approved for another Stage"),
        pytest.param(AFTER_BOTH, known("f", verified={"dev": 2}), False, id="one of two is not all"),
        pytest.param(AFTER_BOTH, known("f", verified={"dev": 2, "qa": 1}), True, id="all of two"),
        pytest.param(
            FreightSources(direct=True), known("f", origin=FreightOrigin("x")), False, id="of another origin"
        ),
    ],
)
def test_availability(sources: FreightSources, freight: KnownFreight, available: bool) -> None:
    target = stage(sources=sources)
    assert is_freight_available(target, freight, NOW) is available
    assert explain_availability(target, freight, NOW).available is available
    listed = available_freight(
        target, index_freight([freight, known("other", origin=FreightOrigin("y"))]), NOW
    )
    assert (freight in listed) is available


def test_the_reason_names_a_time_when_time_alone_is_missing() -> None:
    soaking = known("f", verified={"dev": 0}, current={"dev": 0.5})
    answer = explain_availability(stage(sources=AFTER_DEV), soaking, NOW)
    assert not answer.available
    assert answer.reason == "it has soaked 30m of 1h in dev"
    assert answer.since == NOW + timedelta(minutes=30)
    assert is_freight_available(stage(sources=AFTER_DEV), soaking, answer.since)


def test_no_time_is_named_when_the_freight_has_left() -> None:
    answer = explain_availability(stage(sources=AFTER_DEV), known("f", verified={"dev": 0.5}), NOW)
    assert answer.since is None
    assert "no longer there" in answer.reason


def test_with_all_upstreams_the_last_one_counts() -> None:
    soaking = known("f", verified={"dev": 0, "qa": 0}, current={"dev": 0.5, "qa": 0.25})
    answer = explain_availability(stage(sources=AFTER_BOTH), soaking, NOW)
    assert answer.since == NOW + timedelta(minutes=45)


def test_match_upstream_gives_what_the_upstream_stage_has() -> None:
    sources = FreightSources(stages=("dev",), selection_policy="MatchUpstream")
    index = index_freight(
        [known("old", verified={"dev": 1}), known("now", verified={"dev": 1}, current={"dev": 1})]
    )
    assert [item.freight.name for item in available_freight(stage(sources=sources), index, NOW)] == ["now"]


def test_bookkeeping_of_a_stay() -> None:
    status = enter_stage(FreightStatus(), "dev", hours(5))
    status = enter_stage(status, "dev", hours(1))
    assert longest_soak(status, "dev", NOW) == 0
    status = verify_in_stage(status, "dev", hours(3))
    # As in Kargo, the two hours before it was proven are a part of the stay.
    assert longest_soak(status, "dev", NOW) == 5 * 3600
    left = leave_stage(status, "dev", NOW)
    assert left.currently_in == {}
    assert left.verified_in["dev"].longest_soak == 5 * 3600
    assert leave_stage(left, "dev", NOW) == left


def test_freight_that_comes_back_soaks_from_its_return() -> None:
    status = verify_in_stage(enter_stage(FreightStatus(), "dev", hours(9)), "dev", hours(8))
    status = enter_stage(leave_stage(status, "dev", hours(7)), "dev", hours(2))
    assert longest_soak(status, "dev", NOW) == 2 * 3600


def test_freight_that_failed_is_proven_nowhere_but_elsewhere() -> None:
    status = verify_in_stage(verify_in_stage(FreightStatus(), "dev", hours(5)), "qa", hours(4))
    revoked = revoke_in_stage(status, "dev")
    assert list(revoked.verified_in) == ["qa"]
    assert revoke_in_stage(revoked, "dev") == revoked


def test_the_first_verification_and_approval_are_kept() -> None:
    status = approve_for_stage(verify_in_stage(FreightStatus(), "dev", hours(3)), "prod", hours(2))
    again = approve_for_stage(verify_in_stage(status, "dev", NOW), "prod", NOW)
    assert again == status


def test_a_stay_before_verification_leaves_no_soak() -> None:
    status = leave_stage(enter_stage(FreightStatus(), "dev", hours(5)), "dev", NOW)
    assert verify_in_stage(status, "dev", NOW).verified_in["dev"].longest_soak == 0


PLACES = st.dictionaries(st.sampled_from(["dev", "qa", "other"]), st.floats(0, 3), max_size=3)


@given(
    st.builds(
        FreightSources,
        direct=st.booleans(),
        stages=st.lists(st.sampled_from(["dev", "qa"]), unique=True).map(tuple),
        required_soak_time=st.one_of(st.none(), st.sampled_from([0.0, 3600.0])),
        availability_strategy=st.sampled_from(["OneOf", "All"]),
    ),
    PLACES,
    PLACES,
    st.sampled_from([(), ("prod",), ("qa",)]),
)
def test_the_words_say_what_the_answer_is(
    sources: FreightSources, verified: dict[str, float], current: dict[str, float], approved: tuple[str, ...]
) -> None:
    target = stage(sources=sources)
    freight = known("f", verified=verified, current=current, approved=approved)
    answer = explain_availability(target, freight, NOW)
    assert answer.available is is_freight_available(target, freight, NOW)
    assert answer.reason
    if answer.since is not None:
        assert is_freight_available(target, freight, answer.since)
