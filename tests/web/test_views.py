"""What the pages say of a project and of a promotion: decisions on plain facts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.analysis import AnalysisRun, Measurement, Metric, Phase, WebQuery, begin, record
from bot.domain.availability import KnownFreight, index_freight, verify_in_stage
from bot.domain.discovery import Discovery, Find, SubscriptionFinds
from bot.domain.drift import DriftRecord, Finding, StageLook, StateLook
from bot.domain.freight import FreightStatus
from bot.domain.history import FreightCollection
from bot.domain.model import (
    FreightRequest,
    FreightSources,
    Metadata,
    ProjectConfig,
    PromotionPolicy,
    PromotionTemplate,
    Selector,
    Stage,
    Step,
)
from bot.domain.promotion import PromotionId, State, StepStatus, Stop
from bot.domain.review import Presence
from bot.ports import Event, PromotionLine, StageRecord
from bot.ports.store import FreightLine
from bot.web.overview import ProjectFacts, StageCard, show_project
from bot.web.promotion_page import Links, PromotionFacts, PromotionPage, show_promotion
from bot.workflow.proofs import present_runs
from tests.reports import views

ALL = frozenset({"dev", "staging", "prod"})
AUTOMATIC = ProjectConfig(Metadata("acme"), (PromotionPolicy(Selector(), auto_promotion_enabled=True),))


def stage(name: str, *upstream: str, soak: float | None = None) -> Stage:
    sources = FreightSources(direct=not upstream, stages=upstream, required_soak_time=soak)
    template = PromotionTemplate((Step(uses="fail", alias="step-1"),))
    return Stage(Metadata(name, "acme"), (FreightRequest(views.ORIGIN, sources),), template=template)


def facts(*known: KnownFreight, **changes: object) -> ProjectFacts:
    made = ProjectFacts(
        name="acme",
        now=views.NOW,
        stages=(stage("dev"), stage("staging", "dev"), stage("prod", "staging")),
        config=AUTOMATIC,
        freight=known,
        index=index_freight(known),
        records={},
        promotions={},
        events=(),
        problem_of=lambda stage: "",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def line(stage: str, state: State, reason: str = "", **changes: object) -> PromotionLine:
    freight = FreightLine(views.NEW.name, "solar-marmot")
    made = PromotionLine(PromotionId(f"{stage}.1"), "acme", stage, freight, views.NOW, state, reason)
    return replace(made, **changes)  # type: ignore[arg-type]


def card(of: ProjectFacts, name: str) -> StageCard:
    page = show_project(of, ALL)
    return next(card for column in page.columns for card in column if card.name == name)


PROVEN = KnownFreight(views.NEW, verify_in_stage(FreightStatus(), "dev", views.NOW))


def test_stages_stand_behind_those_that_they_take_from() -> None:
    many = (stage("dev"), stage("qa", "dev"), stage("load", "dev"), stage("prod", "qa", "load"))
    page = show_project(facts(stages=many), frozenset({"dev", "qa", "load", "prod"}))
    assert [[card.name for card in column] for column in page.columns] == [["dev"], ["qa", "load"], ["prod"]]
    assert page.columns[2][0].sources == ("qa", "load")


def test_stages_that_take_from_each_other_are_all_shown() -> None:
    page = show_project(facts(stages=(stage("dev", "prod"), stage("prod", "dev"))), ALL)
    assert sorted(card.name for column in page.columns for card in column) == ["dev", "prod"]


def test_what_belongs_to_hidden_stages_is_left_out() -> None:
    events = (
        Event(views.NOW, "acme", "prod", "prod.1", "failed", "quota of the bank"),
        Event(views.NOW, "acme", "", "", "freight", "found"),
    )
    known = KnownFreight(views.NEW, verify_in_stage(PROVEN.status, "prod", views.NOW))
    page = show_project(facts(known, events=events), frozenset({"dev", "staging"}))
    assert page.hidden == 1
    assert [event.message for event in page.events] == ["found"]
    assert page.freight[0].verified_in == ("dev",)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"promotions": {"staging": (line("staging", State.REVIEW, "0 of 1 approvals"),)}},
            "0 of 1 approvals",
        ),
        ({}, "solar-marmot is next"),
        ({"config": None}, "auto-promotion is off: somebody types `/promote staging`"),
        (
            {"records": {"staging": StageRecord("acme", "staging", frozen="olivia: incident")}},
            "frozen: olivia",
        ),
        (
            {"promotions": {"staging": (line("staging", State.FAILED, "quota", blocked=True),)}},
            "quota. `/retry` or `/rollback staging`",
        ),
        ({"problem_of": lambda stage: "stages.yaml:7: no such task"}, "stages.yaml:7: no such task"),
        (
            {
                "records": {
                    "staging": StageRecord(
                        "acme", "staging", (FreightCollection({views.ORIGIN: views.NEW.name}),)
                    )
                }
            },
            "solar-marmot",
        ),
    ],
    ids=[
        "a promotion says it itself",
        "what is available comes next",
        "somebody must ask",
        "frozen by a name",
        "a failure blocks",
        "a broken configuration",
        "it has the newest already",
    ],
)
def test_why_a_stage_waits(changes: dict[str, object], said: str) -> None:
    assert said in card(facts(PROVEN, **changes), "staging").waits


def test_soak_time_tells_when_it_is_over() -> None:
    stages = (stage("dev"), stage("staging", "dev", soak=3600.0))
    proven = verify_in_stage(FreightStatus(), "dev", views.NOW - timedelta(minutes=20))
    status = replace(proven, currently_in={"dev": views.NOW - timedelta(minutes=30)})
    found = card(facts(KnownFreight(views.NEW, status), stages=stages), "staging")
    assert found.until == views.NOW + timedelta(minutes=30)


# -- one promotion -------------------------------------------------------------------------------------------------


def page(**changes: object) -> PromotionPage:
    made = PromotionFacts(
        promotion=views.promotion(),
        preview=views.preview(),
        now=views.NOW,
        runs={},
        current=views.OLD,
        view=views.view(),
        gates_problem="",
        events=(),
        links=Links(),
    )
    return show_promotion(replace(made, **changes))  # type: ignore[arg-type]


def test_gates_tell_what_they_wait_for() -> None:
    assert [(gate.name, gate.open, gate.words) for gate in page().gates] == [
        ("Freeze", True, "no freeze"),
        ("Approvals", False, "0 of 1"),
    ]


def test_reviews_tell_whether_they_count() -> None:
    found = page(view=views.view(tally=views.EXCLUDED)).reviews
    assert [(review.login, review.counted) for review in found[:2]] == [("dana", True), ("olivia", False)]
    assert found[1].reason == "asked for this promotion"


def test_steps_before_the_merge_are_prepared_and_the_others_come_later() -> None:
    states = [step.state for step in page().steps]
    assert states == ["prepared"] * 2 + ["after the merge"] * 6
    ended = page(promotion=views.promotion(state=State.ABORTED))
    assert ended.steps[-1].state == "not run"
    assert page(preview=None).steps[0].state == "not looked at yet"


def test_steps_that_will_not_run_say_so() -> None:
    found = views.preview()
    for presence, words in ((Presence.SKIPPED, "skipped"), (Presence.ON_FAILURE, "only after a failure")):
        steps = (*found.steps[:-1], replace(found.steps[-1], presence=presence))
        assert page(preview=replace(found, steps=steps)).steps[-1].state == words


def test_only_a_step_that_went_wrong_shows_its_log() -> None:
    done = views.run("promote::step-2", StepStatus.SUCCEEDED, detail={"log": "quiet"})
    failed = views.run("promote::apply-network", StepStatus.FAILED, "quota", detail={"log": "loud"})
    steps = page(runs={run.alias: run for run in (done, failed)}).steps
    assert [(step.took, step.log) for step in steps[1:3]] == [("42 s", ""), ("42 s", "loud")]


def test_outputs_of_steps_are_not_shown() -> None:
    run = views.run(
        "promote::step-4", StepStatus.SUCCEEDED, output={"password": "hunter2", "result": "2 outputs"}
    )
    found = page(runs={run.alias: run})
    assert found.steps[3].message == "2 outputs"
    assert "hunter2" not in str(found.steps)


def test_the_patch_shows_what_is_not_known_yet_by_its_name() -> None:
    found = page()
    assert "+  LAMBDA_URL: <known after apply: lambda_url>" in found.deferred
    assert views.SENTINEL not in found.deferred
    assert found.deferred_count == "+2 −2"


def test_a_stop_lists_what_differs() -> None:
    stop = Stop("the plan changed", "d2", ("aws_db.main: update becomes replace",))
    assert page(promotion=views.promotion(state=State.STOPPED, stop=stop)).difference == stop.details


def test_a_project_shows_what_its_warehouses_found_and_what_came_of_it() -> None:
    tags = tuple(Find(f"1.{number}.0") for number in range(8, -1, -1))
    seen = Discovery((SubscriptionFinds("image", "reg.example/app", "app", tags, "note"),), "the reason")
    of = facts(discoveries={views.ORIGIN.name: (seen, views.NOW), "of-nobody": (seen, views.NOW)})
    (row,) = show_project(of, frozenset({"dev"})).warehouses
    assert (row.name, row.outcome, row.looked_at) == (views.ORIGIN.name, "the reason", views.NOW)
    (finds,) = row.subscriptions
    assert [find.version for find in finds.finds] == ["1.8.0", "1.7.0", "1.6.0", "1.5.0", "1.4.0"]
    assert (finds.more, finds.note) == (4, "note")
    assert show_project(of, frozenset()).warehouses == ()


# -- verification ----------------------------------------------------------------------------------------------


def verification(letter: Phase, *, settled: bool = False) -> AnalysisRun:
    metric = Metric("ok", WebQuery("https://user:pass@probe.example/ok"), 60.0, count=5, success="result.ok")
    run = AnalysisRun(
        "dev.1", "acme", "dev", "", (views.NEW.name,), "dev.1", views.NOW, actor="olivia", metrics=(metric,)
    )
    run = begin(replace(run, labels={"team": "web"}), views.NOW)
    taken = Measurement(letter, views.NOW, views.NOW, '{"ok": 1}', "the answer was no")
    return replace(record(run, [(metric, taken)]), settled=settled)


def with_freight(run: AnalysisRun) -> ProjectFacts:
    """dev has the Freight that the run measures; nothing is verified there yet."""
    collection = FreightCollection({views.ORIGIN: views.NEW.name})
    record_ = StageRecord("acme", "dev", history=(collection,), since=views.NOW)
    has = replace(run, collection=collection.id)
    return facts(KnownFreight(views.NEW), records={"dev": record_}, runs=present_runs([has], [record_]))


def test_a_stage_shows_how_far_its_verification_is_and_the_next_one_waits_for_it() -> None:
    made = with_freight(verification(Phase.SUCCESSFUL))
    dev, staging = card(made, "dev"), card(made, "staging")
    assert (dev.tone, dev.state) == ("busy", "being verified")
    said = f"1 of 5 measurements, next at {views.NOW + timedelta(seconds=60):%Y-%m-%d %H:%M:%S} UTC"
    assert dev.verification == dev.waits == f"waits for verification: {said}"
    assert staging.waits == f"waits for verification in dev: {said}"
    assert card(made, "prod").waits.startswith("no Freight")
    assert show_project(made, ALL).busy


def test_a_failed_verification_is_told_in_its_stage_and_only_its_end_elsewhere() -> None:
    made = with_freight(verification(Phase.FAILED, settled=True))
    dev, staging = card(made, "dev"), card(made, "staging")
    assert (dev.tone, dev.state) == ("bad", "verification failed")
    assert dev.verification.endswith("failed (1) > failureLimit (0): the answer was no")
    assert staging.waits == "verification failed in dev"


def test_a_verification_of_what_the_stage_no_longer_has_is_not_told() -> None:
    made = with_freight(verification(Phase.FAILED, settled=True))
    later = StageRecord("acme", "dev", history=(FreightCollection({views.ORIGIN: views.OLD.name}),))
    made = replace(made, runs=present_runs(made.runs.values(), [later]))
    assert card(made, "dev").verification == ""


def test_a_promotion_shows_what_was_measured_after_it() -> None:
    (part,) = page(verifications=(verification(Phase.FAILED),)).verifications
    assert (part.tone, part.state, part.actor, part.labels) == (
        "bad",
        "verification failed",
        "olivia",
        ("team: web",),
    )
    (metric,) = part.metrics
    assert (metric.counts, metric.state) == ("1 failed", "failed")
    assert metric.asks == "GET https://<masked>@probe.example/ok"
    (taken,) = metric.measurements
    assert (taken.state, taken.value, taken.message) == ("failed", '{"ok": 1}', "the answer was no")


# -- drift -------------------------------------------------------------------------------------------------------


def test_a_stage_tells_its_last_look_for_drift() -> None:
    seen = StageLook(
        views.NOW, "solar-marmot", PromotionId("dev.1"), (StateLook("s", "d", Finding.DRIFT, count=2),)
    )
    record = DriftRecord("acme", "dev", views.NOW, last=seen, issue=7, open=True)
    made = facts(PROVEN, drifts={"dev": record, "staging": DriftRecord("acme", "staging", views.NOW)})
    dev, staging = card(made, "dev"), card(made, "staging")
    assert dev.drifted
    assert dev.drift == "drift of 2 resources or outputs, seen 2026-05-07 15:00 UTC, see issue #7"
    assert (staging.drift, staging.drifted) == ("", False)
