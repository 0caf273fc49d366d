"""What a look for drift means: its finding, the issue, and what the bot may correct by itself."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.codec import decode, encode
from bot.domain.drift import (
    MOST_CHANGES,
    DriftRecord,
    Finding,
    IssueAction,
    IssuePlan,
    Question,
    StageLook,
    StateLook,
    describe,
    due_at,
    look_at_plan,
    plan_issue,
    why_not_corrected,
)
from bot.domain.promotion import PromotionId
from bot.domain.terraform import Action, AttributeChange, OutputChange, Plan, ResourceChange

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
BLANK = DriftRecord("acme", "dev", NOW)


def change(address: str = "aws_sg.a", action: Action = Action.UPDATE, **changes: object) -> ResourceChange:
    made = ResourceChange(address, "aws_sg", action, (AttributeChange("ports", [22], [443]),))
    return replace(made, **changes)  # type: ignore[arg-type]


def plan(*resources: ResourceChange, **changes: object) -> Plan:
    made = Plan(resources, (), (), {}, "whole digest", "terraform 1.11.4", "Plan: 1 to change.")
    return replace(made, **changes)  # type: ignore[arg-type]


def state(finding: Finding = Finding.DRIFT, digest: str = "d1", **changes: object) -> StateLook:
    found = finding is Finding.DRIFT
    made = StateLook(
        "git#env/dev@default",
        "env/dev",
        finding,
        changes=(change(),) if found else (),
        count=int(found),
        digest=digest if found else "",
        reason="" if finding in (Finding.DRIFT, Finding.NONE) else f"{finding.value} because",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def look(*states: StateLook, problem: str = "", at: datetime = NOW) -> StageLook:
    return StageLook(at, "calm-otter", PromotionId("dev.1.a"), states, problem)


DRIFTED, OTHER, CLEAN = look(state()), look(state(digest="d2")), look(state(Finding.NONE))


# -- a plan ----------------------------------------------------------------------------------------------------


def test_a_plan_without_changes_is_no_drift_whatever_changed_outside() -> None:
    found = look_at_plan("s", "d", plan(change(action=Action.NO_OP), drift=(change("aws_sg.tags"),)))
    assert (found.finding, found.outside, found.digest) == (Finding.NONE, ("aws_sg.tags",), "")


def test_changed_outputs_alone_are_drift() -> None:
    output = OutputChange("url", Action.UPDATE, "a", "b")
    found = look_at_plan("s", "d", plan(outputs=(output,)))
    assert (found.finding, found.outputs, found.count) == (Finding.DRIFT, (output,), 1)


def test_how_the_plan_was_made_makes_no_other_drift() -> None:
    parts = {
        "aws_sg.a": "1",
        "aws_sg.a: ports": "2",
        "variable password": "old",
        "version": "1.11",
        "lock file": "x",
    }
    before = look_at_plan("s", "d", plan(change(), parts=parts))
    rotated = parts | {"variable password": "new", "version": "1.12", "lock file": "y"}
    assert look_at_plan("s", "d", plan(change(), parts=rotated)).digest == before.digest
    assert (
        look_at_plan("s", "d", plan(change(), parts=parts | {"aws_sg.a: ports": "3"})).digest != before.digest
    )


def test_of_very_many_changes_the_first_are_kept_and_all_are_counted() -> None:
    found = look_at_plan("s", "d", plan(*(change(f"aws_sg.n{number}") for number in range(MOST_CHANGES + 5))))
    assert (len(found.changes), found.count) == (MOST_CHANGES, MOST_CHANGES + 5)
    assert "too many" in why_not_corrected(look(found), ["glob:*"])


@pytest.mark.parametrize(
    ("seen", "finding"),
    [
        pytest.param(look(), Finding.NONE, id="a Stage without Terraform"),
        pytest.param(look(state(Finding.NONE), state()), Finding.DRIFT, id="one of two states drifted"),
        pytest.param(
            look(state(Finding.UNSEEN), state()), Finding.DRIFT, id="drift beside a state that failed"
        ),
        pytest.param(
            look(state(Finding.UNSEEN), state(Finding.NONE)), Finding.UNSEEN, id="one could not be planned"
        ),
        pytest.param(
            look(state(Finding.NONE), problem="clone failed"), Finding.UNSEEN, id="the walk did not come far"
        ),
        pytest.param(
            look(state(Finding.PENDING), state(Finding.NONE)), Finding.PENDING, id="own changes wait"
        ),
    ],
)
def test_the_gravest_finding_counts_and_doubt_is_never_no_drift(seen: StageLook, finding: Finding) -> None:
    assert seen.finding is finding
    assert bool(seen.digest) == (finding is Finding.DRIFT)


# -- the issue -------------------------------------------------------------------------------------------------

OPEN = replace(BLANK, shown=DRIFTED, issue=7, open=True)
CLOSED = replace(OPEN, open=False, shown=None)
DISMISSED = replace(OPEN, open=False, dismissed=DRIFTED.digest)
UNSEEN, PENDING = look(state(Finding.UNSEEN)), look(state(Finding.PENDING))
LEAVE, DISMISS = IssuePlan(IssueAction.LEAVE), IssuePlan(IssueAction.LEAVE, dismissed=DRIFTED.digest)
CREATE, EDIT = IssuePlan(IssueAction.OPEN), IssuePlan(IssueAction.EDIT)
TELL = IssuePlan(IssueAction.EDIT, comment=True)
REOPEN, CLOSE = IssuePlan(IssueAction.REOPEN, comment=True), IssuePlan(IssueAction.CLOSE, comment=True)


@pytest.mark.parametrize(
    ("record", "seen", "open_now", "wanted"),
    [
        pytest.param(BLANK, DRIFTED, None, CREATE, id="the first drift opens it"),
        pytest.param(BLANK, CLEAN, None, LEAVE, id="nothing to show"),
        pytest.param(OPEN, DRIFTED, True, EDIT, id="the same drift: edited in silence"),
        pytest.param(OPEN, OTHER, True, TELL, id="another drift: a comment"),
        pytest.param(OPEN, CLEAN, True, CLOSE, id="gone: closed with a comment"),
        pytest.param(OPEN, CLEAN, False, LEAVE, id="gone, and a person closed it before"),
        pytest.param(OPEN, DRIFTED, False, DISMISS, id="a person closed it: the same drift leaves it closed"),
        pytest.param(DISMISSED, DRIFTED, False, DISMISS, id="and again at every look"),
        pytest.param(DISMISSED, OTHER, False, REOPEN, id="another drift opens it again"),
        pytest.param(OPEN, OTHER, False, REOPEN, id="closed, and another drift by then"),
        pytest.param(CLOSED, DRIFTED, False, REOPEN, id="we closed it: new drift opens it"),
        pytest.param(OPEN, DRIFTED, None, CREATE, id="it was deleted"),
        pytest.param(OPEN, UNSEEN, True, EDIT, id="could not look: it stays open"),
        pytest.param(OPEN, PENDING, True, EDIT, id="own changes: it stays open"),
        pytest.param(OPEN, UNSEEN, False, DISMISS, id="could not look, and a person closed it: remembered"),
    ],
)
def test_what_is_done_to_the_issue(
    record: DriftRecord, seen: StageLook, open_now: bool | None, wanted: IssuePlan
) -> None:
    assert plan_issue(record, seen, open_now=open_now) == wanted


# -- correcting ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "patterns", "reason"),
    [
        pytest.param((change(),), ["aws_sg.a"], "", id="an update of what is listed"),
        pytest.param(
            (change(action=Action.CREATE),), ["glob:aws_sg.*"], "", id="what was deleted is made again"
        ),
        pytest.param((change(),), [], "corrects nothing", id="by default nothing is corrected"),
        pytest.param((change(), change("aws_db.x")), ["aws_sg.a"], "aws_db.x", id="one that is not listed"),
        pytest.param((change(action=Action.DELETE),), ["glob:*"], "delete", id="never a deletion"),
        pytest.param((change(action=Action.REPLACE),), ["glob:*"], "replace", id="never a replacement"),
        pytest.param((change(action=Action.FORGET),), ["glob:*"], "forget", id="nothing is forgotten"),
        pytest.param((change(importing=True),), ["glob:*"], "aws_sg.a", id="nothing is imported"),
        pytest.param((change(moved_from="aws_sg.z"),), ["glob:*"], "aws_sg.a", id="nothing is moved"),
        pytest.param((), ["glob:*"], "only outputs", id="outputs alone"),
        pytest.param(
            (change("module.a.aws_sg.b[0]"),), [r"regex:^module\.a\."], "", id="a regular expression"
        ),
    ],
)
def test_what_the_bot_may_correct_by_itself(
    changes: tuple[ResourceChange, ...], patterns: list[str], reason: str
) -> None:
    why = why_not_corrected(look(state(changes=changes, count=len(changes))), patterns)
    assert (reason in why) if reason else why == ""


def test_nothing_is_corrected_while_another_state_is_in_doubt() -> None:
    assert "not every state" in why_not_corrected(look(state(), state(Finding.UNSEEN)), ["glob:*"])
    assert "not every state" in why_not_corrected(look(state(), problem="x"), ["glob:*"])
    assert why_not_corrected(CLEAN, ["glob:*"]) == "there is no drift"


# -- when ------------------------------------------------------------------------------------------------------


def test_a_look_is_due_once_however_many_runs_were_missed() -> None:
    first = due_at("0 * * * *", BLANK)
    assert first is not None
    # A tenth of the interval at most, and always the same for a Stage.
    assert NOW + timedelta(hours=1) <= first <= NOW + timedelta(hours=1, minutes=6)
    assert due_at("0 * * * *", BLANK) == first
    assert due_at("0 * * * *", replace(BLANK, stage="prod")) != first
    late = replace(BLANK, scheduled_at=NOW + timedelta(days=3))
    following = due_at("0 * * * *", late)
    assert following is not None
    assert following > NOW + timedelta(days=3)


def test_without_a_schedule_no_look_is_due() -> None:
    assert due_at("", BLANK) is None
    assert due_at("nonsense", BLANK) is None


# -- what is told and kept -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        pytest.param(
            DRIFTED, "drift of 1 resources or outputs, seen 2026-06-01 12:00 UTC, see issue #7", id="drift"
        ),
        pytest.param(CLEAN, "no drift, looked at 2026-06-01 12:00 UTC", id="none"),
        pytest.param(look(state(Finding.UNSEEN)), "could not look for drift at", id="a failed plan"),
        pytest.param(look(problem="clone: gone"), "clone: gone", id="a failed walk"),
        pytest.param(look(state(Finding.PENDING)), "pending changes because", id="own changes"),
    ],
)
def test_one_sentence_tells_the_last_look(seen: StageLook, said: str) -> None:
    assert said in describe(replace(OPEN, last=seen))


def test_a_stage_that_was_never_looked_at_has_nothing_to_tell() -> None:
    assert describe(None) == describe(BLANK) == ""


def test_a_record_is_read_as_it_was_written() -> None:
    record = replace(OPEN, last=DRIFTED, asked=(Question("acme/ops", 3, "k"),))
    assert decode(DriftRecord, json.loads(json.dumps(encode(record)))) == record
