"""The steps that people answer: their gates before the cut, and what they wait for behind it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest

from bot.domain.github import PullNumber
from bot.domain.promotion import StepStatus
from bot.domain.questions import GivenAnswer
from bot.domain.review import GateRecord, Presence, StepReport
from bot.domain.step_kinds import StepClass
from bot.domain.values import Json, Unknown, Value
from bot.ports import GitHub, TerminalError
from bot.steps.contract import Config, StepResult
from bot.steps.get_user_input import GetUserInput
from bot.steps.wait_for_approval import WaitForApproval
from tests.steps.asking import FakeAnswers
from tests.steps.bench import NOW, Bench

ASK: Config = {
    "schema": {
        "type": "object",
        "required": ["replicas"],
        "properties": {"replicas": {"title": "Replicas", "type": "integer", "maximum": 5}},
    },
    "responders": [{"role": "sre"}],
}
SRE: Config = {
    "approvers": [{"claim": "groups", "value": "sre", "required": True}, {"claim": "email", "value": "bob"}]
}
ACT = StepReport(0, "act", "http", StepClass.ACT, Presence.CERTAIN, None)


def given(
    alias: str, by: str = "ada", *, person: str = "", roles: tuple[str, ...] = (), **values: Json
) -> GivenAnswer:
    return GivenAnswer(alias, by, NOW, "7", person, values, roles)


@pytest.fixture
def answers() -> FakeAnswers:
    return FakeAnswers()


@pytest.fixture
def asked(bench: Bench) -> Bench:
    bench.promotion = replace(bench.promotion, pull=PullNumber(1))
    return bench


def gate(result: StepResult) -> GateRecord:
    assert isinstance(result.record, GateRecord)
    return result.record


async def test_a_question_says_what_is_asked_of_whom_and_how_to_answer(
    asked: Bench, answers: FakeAnswers
) -> None:
    result = await asked.preview(GetUserInput(answers), ASK)
    assert gate(result) == GateRecord(
        "an answer to Replicas",
        open=False,
        reason="get-user-input asks team sre: comment `/answer get-user-input replicas=1`; "
        "it asks for replicas (a whole number)",
        asks=True,
    )
    assert result.status is None
    assert result.output["values"] == Unknown("known after step: get-user-input.values")


async def test_an_answer_opens_the_gate_and_is_put_out(asked: Bench, answers: FakeAnswers) -> None:
    step = GetUserInput(answers)
    running = await asked.fulfil(step, ASK)
    assert (running.status, running.detail) == (StepStatus.RUNNING, {"asks": dict(ASK)})
    assert await answers.add_answer(asked.promotion.id, given("get-user-input", replicas=3))
    frozen, done = await asked.preview(step, ASK), await asked.fulfil(step, ASK)
    output: dict[str, Value] = {
        "values": {"replicas": 3},
        "respondedBy": "ada",
        "respondedAt": "2026-03-04T05:06:07+00:00",
    }
    assert (frozen.output, done.output, done.status) == (output, output, StepStatus.SUCCEEDED)
    assert (gate(frozen).open, gate(frozen).reason) == (True, "ada answered get-user-input: replicas=3")


async def test_another_answer_has_another_fingerprint(asked: Bench, answers: FakeAnswers) -> None:
    step, first = GetUserInput(answers), given("get-user-input", replicas=3)
    await answers.add_answer(asked.promotion.id, first)
    one = gate(await asked.preview(step, ASK)).fingerprint
    await answers.add_answer(asked.promotion.id, given("get-user-input", replicas=4), replacing=first)
    assert one != gate(await asked.preview(step, ASK)).fingerprint != ""


async def test_an_answer_that_no_longer_fits_is_asked_for_anew(asked: Bench, answers: FakeAnswers) -> None:
    await answers.add_answer(asked.promotion.id, given("get-user-input", replicas=9))
    reason = gate(await asked.preview(GetUserInput(answers), ASK)).reason
    assert reason.startswith("the answer of ada does not fit any more (replicas must be at most 5); ")
    assert (await asked.fulfil(GetUserInput(answers), ASK)).status is StepStatus.RUNNING


async def test_behind_an_act_a_question_is_asked_after_the_merge(asked: Bench, answers: FakeAnswers) -> None:
    await answers.add_answer(asked.promotion.id, given("get-user-input", replicas=3))
    asked.reports.append(ACT)
    result = await asked.preview(GetUserInput(answers), ASK)
    assert (result.status, gate(result).reason) == (None, "asked after the merge")


async def test_without_a_pull_request_nobody_can_answer(bench: Bench, answers: FakeAnswers) -> None:
    result = await bench.fulfil(GetUserInput(answers), ASK)
    assert (result.status, "no pull request" in result.message) == (StepStatus.FAILED, True)


async def test_a_schema_that_cannot_be_asked_is_an_error(asked: Bench, answers: FakeAnswers) -> None:
    with pytest.raises(TerminalError, match="get-user-input: schema: it has no properties"):
        await asked.preview(GetUserInput(answers), {"schema": {"type": "object"}})


async def test_behind_an_act_people_approve_one_by_one(asked: Bench, answers: FakeAnswers) -> None:
    asked.reports.append(ACT)
    step = WaitForApproval(cast(GitHub, None), answers)
    later = await asked.preview(step, {**SRE, "minApprovals": 2})
    assert (later.status, gate(later).reason) == (None, "asked after the merge")
    approved = StepReport(1, "wait-for-approval", "wait-for-approval", StepClass.WAIT, Presence.CERTAIN, None)
    approved = replace(approved, record=gate(later))

    async def look() -> StepResult:
        context = replace(asked.context("wait-for-approval"), approved=approved)
        return await step.fulfil({**SRE, "minApprovals": 2}, context)

    alias, promotion = "wait-for-approval", asked.promotion.id
    await answers.add_answer(promotion, given(alias, "bob", person="2", roles=("bob",)))
    await answers.add_answer(promotion, given(alias, "eve", person="3"))
    waiting = await look()
    assert (waiting.status, waiting.message) == (
        StepStatus.RUNNING,
        "wait-for-approval waits for approval by team sre: they comment `/apply`",
    )
    last = replace(given(alias, "ada", person="1", roles=("team sre",)), at=NOW + timedelta(minutes=1))
    await answers.add_answer(promotion, last)
    responses = (await look()).output["responses"]
    assert isinstance(responses, list)
    assert [item["user"] for item in responses if isinstance(item, dict)] == ["bob", "ada"]
