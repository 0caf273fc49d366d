"""`get-user-input`: asks a person on the pull request, who answers by `/answer`.

Before the cut the question gates the merge: its outputs are unknown until somebody answers, then the answer is frozen
and the preview made again with it. Behind the cut it is asked on the merged pull request. The first answer that fits
the schema stays; one that no longer fits, since the schema changed, is asked for anew. `display` has no effect here.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from bot.domain.digest import canonical
from bot.domain.promotion import PromotionId, StepStatus
from bot.domain.questions import (
    GivenAnswer,
    Question,
    QuestionError,
    describe_fields,
    describe_values,
    find_wrong_values,
    parse_question,
    write_example,
)
from bot.domain.review import GateRecord
from bot.domain.step_kinds import StepClass, StepKind, short_alias
from bot.domain.values import Unknown, Value, as_value, is_tainted, show
from bot.ports import TerminalError
from bot.ports.answers import AnswerStore
from bot.steps.anticipation import is_behind_cut
from bot.steps.approvers import Approver, name_approvers, parse_approvers
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.gates import ask_later
from bot.steps.options import Options, open_value

KIND = StepKind("get-user-input", StepClass.WAIT)

_OUTPUTS = ("values", "respondedBy", "respondedAt")
_LEAST_PAUSE = 60.0
"""Seconds between two looks at least: an answer wakes the walk, so that nothing is won by looking more often."""


@dataclass(frozen=True, slots=True)
class Config:
    """The question, whom it is asked, and how often an answer is looked for."""

    question: Question
    responders: tuple[Approver, ...]
    poll_interval: float


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for a schema that cannot be asked, or that is not known."""
    options = Options(KIND.name, given)
    schema = open_value(dict(options.part("schema").values))
    try:
        question = parse_question(schema if isinstance(schema, dict) else {})
    except QuestionError as error:
        raise TerminalError(f"{KIND.name}: schema: {error}") from error
    return Config(question, parse_approvers(KIND.name, given), options.duration("pollInterval", _LEAST_PAUSE))


@dataclass(frozen=True, slots=True)
class GetUserInput:
    """Looks for the answer among those that are kept."""

    answers: AnswerStore

    @property
    def kind(self) -> StepKind:
        """A wait."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """A gate until somebody answers; then the answer is frozen."""
        later: dict[str, Value] = {
            name: Unknown(f"known after step: {context.alias}.{name}") for name in _OUTPUTS
        }
        if is_tainted(dict(config)):
            return ask_later("an answer", later)
        wanted = parse(config)
        subject = f"an answer to {', '.join(wanted.question.titles)}"
        if is_behind_cut(context):
            return ask_later(subject, later)
        answer, refused = await self._answer(wanted, context)
        if answer is None:
            reason = f"{refused}{_ask(wanted, context.alias)}"
            return StepResult(None, later, record=GateRecord(subject, open=False, reason=reason, asks=True))
        output = _output(answer)
        said = f"{answer.by} answered {short_alias(context.alias)}: {describe_values(answer.values)}"
        fingerprint = hashlib.sha256(canonical(show(dict(output)))).hexdigest()
        record = GateRecord(subject, open=True, reason=said, asks=True, fingerprint=fingerprint)
        return StepResult(output=output, record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Running until somebody answers; what is asked is in the journal, for whoever takes the answer."""
        wanted = parse(config)
        if context.promotion.pull is None:
            return failed(
                context.alias, f"{KIND.name}: there is no pull request on which it could be answered"
            )
        answer, refused = await self._answer(wanted, context)
        if answer is not None:
            return StepResult(output=_output(answer))
        return StepResult(
            StepStatus.RUNNING,
            message=f"{refused}{_ask(wanted, context.alias)}",
            retry_after=max(wanted.poll_interval, _LEAST_PAUSE),
            detail={"asks": dict(config)},
        )

    async def _answer(self, wanted: Config, context: StepContext) -> tuple[GivenAnswer | None, str]:
        """The answer, or None; the text says why one that was given no longer is one."""
        answer = await find_answer(self.answers, context.promotion.id, context.alias)
        if answer is None:
            return None, ""
        wrong = find_wrong_values(wanted.question, answer.values)
        if wrong:
            return None, f"the answer of {answer.by} does not fit any more ({'; '.join(wrong)}); "
        return answer, ""


async def find_answer(store: AnswerStore, promotion: PromotionId, alias: str) -> GivenAnswer | None:
    """The answer to a step that the first one to answer gave, None if nobody has."""
    return next((a for a in await store.list_answers(promotion) if (a.alias, a.person) == (alias, "")), None)


def _ask(wanted: Config, alias: str) -> str:
    """What is asked, of whom, and how it is answered."""
    whom = name_approvers(wanted.responders, "whoever may `/apply`")
    short = short_alias(alias)
    example = write_example(wanted.question, short)
    return f"{short} asks {whom}: comment `{example}`; it asks for {describe_fields(wanted.question)}"


def _output(answer: GivenAnswer) -> dict[str, Value]:
    values: dict[str, Value] = {name: as_value(value) for name, value in answer.values.items()}
    return {
        "values": values,
        "respondedBy": answer.by,
        "respondedAt": answer.at.isoformat(timespec="seconds"),
    }
