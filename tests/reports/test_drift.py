"""The issue of a drift and what is said on it: whole texts, hostile ones, and very long ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given

from bot.domain.drift import DriftRecord, Finding, StageLook, StateLook
from bot.domain.promotion import PromotionId
from bot.domain.terraform import Action, AttributeChange, OutputChange, ResourceChange
from bot.domain.values import Sensitive, Unknown
from bot.reports.answers import render_explain
from bot.reports.body import render_body, render_title
from bot.reports.drift import render_answer, render_change, render_gone, render_issue
from bot.reports.fitting import COMMENT_LIMIT
from bot.reports.markdown import size
from tests.reports.test_safety import assert_harmless, texts
from tests.reports.views import NOW, create, promotion, view

Golden = Callable[[str, str], None]


def look(*states: StateLook, problem: str = "") -> StageLook:
    return StageLook(NOW, "solar-marmot", PromotionId("prod.1.a"), states, problem)


def drifted() -> StageLook:
    rule = ResourceChange(
        "aws_security_group_rule.ssh",
        "aws_security_group_rule",
        Action.UPDATE,
        (
            AttributeChange("cidr_blocks", ["0.0.0.0/0"], ["10.0.0.0/8"]),
            AttributeChange("description", "opened by hand", "office"),
            AttributeChange("token", Sensitive("token", None), Sensitive("token", None)),
        ),
    )
    database = ResourceChange(
        "aws_db_instance.orders",
        "aws_db_instance",
        Action.REPLACE,
        (AttributeChange("engine", "mysql", "postgres", forces_replacement=True),),
    )
    network = StateLook(
        "git.example/acme/operations#env/prod/network@default",
        "src/env/prod/network",
        Finding.DRIFT,
        changes=(rule, database, create("aws_s3_bucket.logs")),
        outputs=(OutputChange("url", Action.UPDATE, "https://a", Unknown("known after apply: url")),),
        outside=("aws_iam_role.app",),
        count=4,
        digest="d",
    )
    why = "the inputs of src/env/prod/app are no longer those that were applied at 0123456789ab"
    app = StateLook(
        "git.example/acme/operations#env/prod/app@default", "src/env/prod/app", Finding.PENDING, why
    )
    return look(network, app)


RECORD = DriftRecord(
    "acme",
    "prod",
    NOW,
    last=drifted(),
    shown=drifted(),
    drifted_since=NOW - timedelta(days=1),
    issue=7,
    open=True,
)


def test_the_issue(golden: Golden) -> None:
    text = render_issue(RECORD, drifted())
    golden("drift.md", f"# {text.title}\n\n{text.body}\n")


def test_an_issue_whose_last_look_failed(golden: Golden) -> None:
    failed = replace(
        look(StateLook("s", "src/env/prod/network", Finding.UNSEEN, "the plan failed: 403 Forbidden")),
        at=NOW + timedelta(hours=1),
    )
    text = render_issue(replace(RECORD, last=failed), drifted())
    golden("drift_unseen.md", f"# {text.title}\n\n{text.body}\n")


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        pytest.param(drifted(), "drifted: 4 resources or outputs. #7 keeps track of it.", id="drift"),
        pytest.param(look(StateLook("s", "d", Finding.NONE)), "has not drifted", id="none"),
        pytest.param(look(), "has no Terraform to look at", id="no Terraform"),
        pytest.param(
            look(StateLook("s", "d", Finding.UNSEEN, "403")),
            "which does not mean that it has not drifted",
            id="unseen",
        ),
        pytest.param(look(problem="clone: gone"), "clone: gone", id="the walk failed"),
        pytest.param(
            look(StateLook("s", "d", Finding.PENDING, "own")), "Nothing can be said of drift", id="pending"
        ),
    ],
)
def test_the_answer(seen: StageLook, said: str) -> None:
    assert said in render_answer(RECORD, seen)


def test_an_answer_tells_that_the_issue_could_not_be_written() -> None:
    refused = replace(RECORD, problem="403 Resource not accessible by integration", open=False, issue=0)
    assert "could not be written: 403 Resource" in render_answer(refused, drifted())


def test_a_comment_tells_what_is_new_and_what_is_gone() -> None:
    state = drifted().states[0]
    fewer = look(replace(state, changes=(state.changes[0], create("aws_s3_bucket.new")), outputs=(), count=2))
    said = render_change(drifted(), fewer)
    assert "now 2 resources or outputs" in said
    assert "New: `aws_s3_bucket.new`" in said
    assert "Gone: `aws_db_instance.orders`, `aws_s3_bucket.logs`, `output url`" in said
    assert "in another way" in render_change(drifted(), drifted())
    assert "The drift is gone" in render_gone(RECORD, drifted())


@given(texts, texts)
def test_texts_of_others_do_nothing(one: str, two: str) -> None:
    change = ResourceChange(one, two, Action.UPDATE, (AttributeChange(two, one, two),), reason=two)
    output = OutputChange(one, Action.UPDATE, two, one)
    state = StateLook("s", two, Finding.DRIFT, one, (change,), (output,), (two,), 2, "d")
    seen = replace(look(state, problem=two), freight=one)
    record = replace(
        RECORD, problem=two, last=replace(look(problem=one), at=NOW + timedelta(hours=1)), issue=0
    )
    assert_harmless(render_issue(record, seen).body)
    assert_harmless(render_answer(record, seen))
    assert_harmless(render_change(drifted(), seen))


def test_very_much_drift_keeps_the_limit_and_says_what_is_left_out() -> None:
    attributes = tuple(AttributeChange(f"a{n}", "x" * 500, "y" * 500) for n in range(20))
    changes = tuple(
        ResourceChange(f"module.{'m' * 200}.aws_sg.n{n}", "aws_sg", Action.UPDATE, attributes)
        for n in range(300)
    )
    states = tuple(
        StateLook(f"s{n}", f"env/{n}", Finding.DRIFT, changes=changes, count=5000, digest="d")
        for n in range(20)
    )
    body = render_issue(RECORD, look(*states)).body
    assert size(body) <= COMMENT_LIMIT
    assert "**100,000 resources or outputs**" in body
    assert "and 4,700 more" in body
    assert "/drift fix" in body
    assert size(render_answer(RECORD, look(*states))) <= COMMENT_LIMIT
    assert size(render_change(None, look(*states))) <= COMMENT_LIMIT


def test_explain_names_the_last_look() -> None:
    said = "drift of 2 resources or outputs, seen 2026-05-07 15:00 UTC"
    assert f"**Drift**: {said}" in render_explain(view(drift=said))
    assert "Drift" not in render_explain(view())


def test_a_correction_says_what_it_is_and_why() -> None:
    seen = view(
        promotion=promotion(corrects=True, actor="lockstep", why="the ReviewPolicy prod corrects this drift")
    )
    body = render_body(seen)
    assert body.startswith("Undoes drift in **staging**, which keeps Freight **")
    assert ": the ReviewPolicy prod corrects this drift." in body
    assert "undo drift of" in render_title(seen)
    asked = render_body(view(promotion=promotion(corrects=True, actor="olivia")))
    assert "asked for by `olivia`" in asked
