"""What measurements come to, by the rules of Argo Rollouts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.analysis import (
    AnalysisRun,
    Measurement,
    Metric,
    Phase,
    Verdict,
    WebQuery,
    begin,
    describe_run,
    end,
    find_due,
    next_time,
    record,
    verdict,
)
from bot.domain.codec import decode, encode
from bot.domain.freight import FreightName
from tests.domain.builders import NOW

PHASES = {
    "s": Phase.SUCCESSFUL,
    "f": Phase.FAILED,
    "i": Phase.INCONCLUSIVE,
    "e": Phase.ERROR,
}
FIVE = Metric("ok", WebQuery("https://probe.example"), interval=60.0, count=5)


def run(*metrics: Metric, dry: tuple[str, ...] = ()) -> AnalysisRun:
    made = AnalysisRun(
        "dev.1.aaaaaaa", "shop", "dev", "c" * 40, (FreightName("a" * 40),), "dev.1.aaaaaaa", NOW
    )
    return begin(replace(made, metrics=metrics, dry_run=frozenset(dry)), NOW)


def taken(letter: str, at: float = 0, message: str = "") -> Measurement:
    time = NOW + timedelta(seconds=at)
    return Measurement(PHASES[letter], time, time, letter, message)


def measured(metric: Metric, letters: str) -> AnalysisRun:
    """The run of one metric after measurements, one a minute."""
    made = run(metric)
    for number, letter in enumerate(letters):
        made = record(made, [(metric, taken(letter, 60.0 * number))])
    return made


@pytest.mark.parametrize(
    ("changes", "letters", "phase"),
    [
        pytest.param({}, "", Phase.RUNNING, id="nothing is measured yet"),
        pytest.param({}, "ssss", Phase.RUNNING, id="four of five"),
        pytest.param({}, "sssss", Phase.SUCCESSFUL, id="all five"),
        pytest.param({}, "sf", Phase.FAILED, id="without a limit one failure is too many"),
        pytest.param({"failure_limit": 1}, "sf", Phase.RUNNING, id="as many failures as the limit allows"),
        pytest.param({"failure_limit": 1}, "sfsf", Phase.FAILED, id="one failure more than the limit"),
        pytest.param(
            {"failure_limit": 1}, "sfsss", Phase.SUCCESSFUL, id="an allowed failure counts as measured"
        ),
        pytest.param({}, "i", Phase.INCONCLUSIVE, id="without a limit one unclear answer is too many"),
        pytest.param(
            {"inconclusive_limit": 2}, "iisss", Phase.SUCCESSFUL, id="unclear answers within the limit"
        ),
        pytest.param({}, "eeee", Phase.RUNNING, id="four errors in a row"),
        pytest.param({}, "eeeee", Phase.ERROR, id="five errors in a row"),
        pytest.param({}, "eeeeseeee", Phase.RUNNING, id="an answer ends a row of errors"),
        pytest.param({}, "seses", Phase.RUNNING, id="errors do not count as measured"),
        pytest.param({"consecutive_error_limit": 0}, "se", Phase.ERROR, id="no error is allowed"),
        pytest.param({"count": None}, "s" * 50, Phase.RUNNING, id="without count it goes on"),
        pytest.param({"count": None, "interval": None}, "s", Phase.SUCCESSFUL, id="a single measurement"),
        pytest.param(
            {"count": None, "interval": None}, "es", Phase.SUCCESSFUL, id="a single one, at the second try"
        ),
        pytest.param(
            {"count": None, "consecutive_success_limit": 3, "failure_limit": -1},
            "sfssfsss",
            Phase.SUCCESSFUL,
            id="three successes in a row, failures do not matter",
        ),
        pytest.param(
            {"count": None, "consecutive_success_limit": 2, "failure_limit": -1},
            "sfsfses",
            Phase.RUNNING,
            id="an error breaks a row of successes",
        ),
        pytest.param(
            {"consecutive_success_limit": 3, "failure_limit": -1},
            "sfsfs",
            Phase.INCONCLUSIVE,
            id="count is reached before enough successes in a row",
        ),
        pytest.param(
            {"consecutive_success_limit": 3, "failure_limit": 1},
            "sff",
            Phase.FAILED,
            id="both limits, too many failures",
        ),
    ],
)
def test_the_phase_of_a_metric(changes: dict[str, object], letters: str, phase: Phase) -> None:
    metric = replace(FIVE, **changes)  # type: ignore[arg-type]
    made = measured(metric, letters)
    assert made.phase is phase
    assert (made.finished_at is not None) is phase.ended


def test_a_run_ends_when_one_metric_fails_and_the_others_count_as_successful() -> None:
    other = replace(FIVE, name="other")
    late = replace(FIVE, name="late", initial_delay=600.0)
    made = run(FIVE, other, late)
    made = record(made, [(FIVE, taken("f", message="the answer was 3")), (other, taken("s"))])
    assert made.phase is Phase.FAILED
    assert (
        made.message == 'metric "ok" assessed Failed due to failed (1) > failureLimit (0): the answer was 3'
    )
    assert [made.result(m).phase for m in (FIVE, other, late)] == [
        Phase.FAILED,
        Phase.SUCCESSFUL,
        Phase.SUCCESSFUL,
    ]
    assert made.result(other).count == 1


def test_the_worst_metric_decides() -> None:
    names = ("unclear", "broken", "failing")
    metrics = [replace(FIVE, name=name, consecutive_error_limit=0) for name in names]
    made = record(run(*metrics), list(zip(metrics, map(taken, "ief"), strict=True)))
    assert made.phase is Phase.FAILED
    made = record(run(*metrics[:2]), list(zip(metrics[:2], map(taken, "ie"), strict=True)))
    assert made.phase is Phase.ERROR


def test_a_dry_run_is_measured_and_decides_nothing() -> None:
    once = replace(FIVE, count=None, interval=None)
    dry = replace(once, name="new")
    made = record(run(once, dry, dry=("new",)), [(dry, taken("f"))])
    assert made.phase is Phase.RUNNING
    assert made.result(dry).phase is Phase.FAILED
    assert record(made, [(once, taken("s"))]).phase is Phase.SUCCESSFUL
    assert record(run(dry, dry=("new",)), [(dry, taken("f"))]).phase is Phase.SUCCESSFUL


@pytest.mark.parametrize(
    ("changes", "letters", "seconds"),
    [
        pytest.param({}, "", 0, id="at once"),
        pytest.param({"initial_delay": 90.0}, "", 90, id="after the initial delay"),
        pytest.param({}, "s", 60, id="an interval after the last"),
        pytest.param({}, "ss", 120, id="and again"),
        pytest.param({}, "e", 10, id="ten seconds after an error"),
        pytest.param({}, "sssss", None, id="never after the last of them"),
        pytest.param({}, "f", None, id="never after it failed"),
    ],
)
def test_when_it_is_measured_next(changes: dict[str, object], letters: str, seconds: float | None) -> None:
    made = measured(replace(FIVE, **changes), letters)  # type: ignore[arg-type]
    wanted = None if seconds is None else NOW + timedelta(seconds=seconds)
    assert next_time(made) == wanted
    if wanted is not None:
        assert [m.name for m in find_due(made, wanted)] == ["ok"]
        assert find_due(made, wanted - timedelta(seconds=1)) == ()


def test_what_comes_after_the_end_is_not_counted() -> None:
    over = end(run(FIVE), Phase.ABORTED, "by olivia", NOW)
    assert record(over, [(FIVE, taken("s"))]) == over
    assert end(over, Phase.ERROR, "", NOW) == over
    assert describe_run(over) == "verification was aborted: by olivia"


@pytest.mark.parametrize(
    ("phase", "says"),
    [
        (Phase.SUCCESSFUL, Verdict.VERIFIED),
        (Phase.FAILED, Verdict.REVOKED),
        (Phase.ERROR, Verdict.NOTHING),
        (Phase.INCONCLUSIVE, Verdict.NOTHING),
        (Phase.ABORTED, Verdict.NOTHING),
    ],
)
def test_what_the_end_says_of_the_freight(phase: Phase, says: Verdict) -> None:
    assert verdict(end(run(FIVE), phase, "", NOW)) is says


def test_the_newest_measurements_are_kept_and_all_are_counted() -> None:
    endless = replace(FIVE, count=None)
    made = measured(endless, "s" * 25)
    assert len(made.result(endless).measurements) == 10
    assert made.result(endless).successful == 25
    kept = replace(run(endless), kept={"ok": 2})
    for letter in "sss":
        kept = record(kept, [(endless, taken(letter))])
    assert len(kept.result(endless).measurements) == 2


def test_a_long_answer_is_cut() -> None:
    once = replace(FIVE, count=None, interval=None)
    made = record(run(once), [(once, replace(taken("s"), value="x" * 5000))])
    assert len(made.result(once).measurements[0].value) == 501


def test_how_far_it_is_in_words() -> None:
    made = measured(FIVE, "ss")
    assert (
        describe_run(made) == "waits for verification: 2 of 5 measurements, next at 2026-06-01 12:02:00 UTC"
    )
    assert describe_run(made, elsewhere=True).startswith("waits for verification in dev: 2 of 5")
    endless = measured(replace(FIVE, count=None), "s")
    assert describe_run(endless).startswith("waits for verification: 1 measurement so far, next at")


def test_people_of_another_stage_are_not_told_what_was_answered() -> None:
    made = record(run(FIVE), [(FIVE, taken("f", message="private"))])
    assert describe_run(made, elsewhere=True) == "verification failed in dev"


def test_a_run_is_read_as_it_was_stored() -> None:
    made = record(run(FIVE, replace(FIVE, name="b")), [(FIVE, taken("s"))])
    assert decode(AnalysisRun, encode(made)) == made
