"""What people say to steps that ask: `/answer` to `get-user-input`, `/apply` to `wait-for-approval` behind an effect.

Who may is read live. The first answer that fits stays; of approvals each person's counts once. Both are kept before the
promotion is woken, and a second run for the same comment only wakes it: a crash in between loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bot.domain.answer_command import Answer
from bot.domain.github import Repository
from bot.domain.model import Stage
from bot.domain.promotion import Promotion, State, StepStatus
from bot.domain.questions import (
    GivenAnswer,
    describe_fields,
    describe_values,
    find_wrong_values,
    read_answer,
    write_example,
)
from bot.domain.review import GateRecord, Presence
from bot.domain.step_kinds import short_alias
from bot.domain.values import Json, Value
from bot.ports import Event, Look, TransientError
from bot.steps.approvers import Approver, find_roles, name_approvers, parse_approvers
from bot.steps.get_user_input import find_answer, parse
from bot.workflow.buttons import Asked, Refusal
from bot.workflow.rights import Rights
from bot.workflow.snapshots import Gatherer

_INPUT, _APPROVAL = "get-user-input", "wait-for-approval"
_TRIES = 10


@dataclass(frozen=True, slots=True)
class _Asking:
    """A step that asks, with its config as the walk that reached it evaluated it."""

    alias: str
    config: Mapping[str, Value]

    @property
    def name(self) -> str:
        return short_alias(self.alias)


@dataclass(frozen=True, slots=True)
class Answering:
    """Keeps what was said and wakes the promotion; raises Refusal where nothing is asked, or of somebody else."""

    gatherer: Gatherer

    async def answer(self, asked: Asked, promotion: Promotion, stage: Stage, command: Answer) -> str:
        """`/answer`: the values, held to the step's schema; the reply says what counts from now on."""
        if await self._wake_again(asked, promotion):
            return ""
        step = _choose(await self._find(promotion, _INPUT), command.alias, promotion)
        await self._allow(asked, promotion, stage, step)
        question = parse(step.config).question
        known = await find_answer(self.gatherer.store, promotion.id, step.alias)
        if known is not None and not find_wrong_values(question, known.values):
            raise Refusal(f"{known.by} answered {step.name} already, and the first answer stays")
        values, wrong = read_answer(question, command.values)
        if wrong:
            example = write_example(question, step.name)
            raise Refusal(
                f"this does not answer {step.name}: {'; '.join(wrong)}. It asks for {describe_fields(question)}; "
                f"for example `{example}`"
            )
        given = self._given(asked, step.alias, values=values)
        if not await self.gatherer.store.add_answer(promotion.id, given, replacing=known):
            raise Refusal(f"somebody else answered {step.name} just now, and the first answer stays")
        await self._wake(promotion, step.alias, f"{given.by} answered {step.name}")
        return f"{step.name} is answered: {describe_values(values)}"

    async def approve(self, asked: Asked, promotion: Promotion, stage: Stage, digest: str) -> bool:
        """`/apply` to a step that waits for approval in a walk that runs; False if none does."""
        if await self._wake_again(asked, promotion):
            return True
        steps = await self._find(promotion, _APPROVAL) if promotion.state is State.FULFILLING else ()
        if not steps:
            return False
        if digest and not promotion.digest.startswith(digest):
            raise Refusal(
                f"{steps[0].name} waits for `/apply` alone; `{promotion.digest}` is what was approved"
            )
        for step in steps:
            roles = await self._allow(asked, promotion, stage, step)
            given = self._given(asked, step.alias, person=str(asked.author.id))
            given = replace(given, roles=tuple(map(str, roles)))
            if not await self.gatherer.store.add_answer(promotion.id, given):
                raise Refusal(
                    f"@{given.by} has approved {step.name} already; who else has to is in the check"
                )
            await self._wake(promotion, step.alias, f"{given.by} approved {step.name}")
        return True

    # -- which step, and who ---------------------------------------------------------------------------------------

    async def _find(self, promotion: Promotion, kind: str) -> Sequence[_Asking]:
        """The steps of a kind that ask now: gates of an open pull request, or what the walk waits for."""
        store = self.gatherer.store
        if _is_at_gates(promotion):
            preview = await store.get_preview(promotion.id, promotion.preview)
            early = preview.steps[: preview.split.cut] if preview is not None else ()
            return [
                _Asking(step.alias, step.config)
                for step in early
                if step.kind == kind and step.presence is Presence.CERTAIN
                if isinstance(step.record, GateRecord) and step.record.asks and isinstance(step.config, dict)
            ]
        if promotion.state is not State.FULFILLING:
            return ()
        # The walk is under way: its journal says at which step it stands.
        runs = await store.list_steps(promotion.id)
        found = []
        for run in runs.values():
            config = run.detail.get("asks")
            running = run.status is StepStatus.RUNNING and run.attempt == promotion.attempt
            if run.kind == kind and running and isinstance(config, dict):
                found.append(_Asking(run.alias, config))
        return found

    async def _allow(
        self, asked: Asked, promotion: Promotion, stage: Stage, step: _Asking
    ) -> Sequence[Approver]:
        """As whom the person may answer the step: nobody in particular where it names nobody."""
        kind = _INPUT if "schema" in step.config else _APPROVAL
        named = parse_approvers(kind, step.config)
        if not named:
            try:
                await Rights(self.gatherer).check(asked, "apply", stage)
            except Refusal as refusal:
                raise Refusal(
                    f"{refusal}, and so does an answer to {step.name}, which names nobody"
                ) from refusal
            return ()
        roles = await find_roles(self.gatherer.github, asked.author, named, self._repository(promotion))
        if not roles:
            raise Refusal(
                f"@{asked.author.login} may not answer {step.name}: it asks {name_approvers(named, '')}"
            )
        return roles

    def _repository(self, promotion: Promotion) -> Repository:
        target = promotion.target
        found = self.gatherer.github.repository_of(target.url) if target is not None else None
        if found is None:
            raise Refusal(
                "nothing tells which repository this promotion belongs to, so nobody's right can be read"
            )
        return found

    # -- keeping and waking ----------------------------------------------------------------------------------------

    def _given(
        self, asked: Asked, alias: str, *, person: str = "", values: Mapping[str, Json] | None = None
    ) -> GivenAnswer:
        now = self.gatherer.clock.now()
        return GivenAnswer(alias, asked.author.login, now, str(asked.comment), person, values or {})

    async def _wake_again(self, asked: Asked, promotion: Promotion) -> bool:
        """Whether this very comment was kept before a crash: then only the promotion may not know of it."""
        kept = await self.gatherer.store.list_answers(promotion.id)
        ours = [
            answer for answer in kept if asked.comment is not None and answer.comment == str(asked.comment)
        ]
        for answer in ours:
            await self._wake(promotion, answer.alias, f"{answer.by} answered {short_alias(answer.alias)}")
        return bool(ours)

    async def _wake(self, promotion: Promotion, alias: str, said: str) -> None:
        """Have it previewed again before the merge, and go on at once after it."""
        store = self.gatherer.store
        look = Look("stage", f"{promotion.project}/{promotion.stage}", "a step was answered")
        event = Event(
            self.gatherer.clock.now(), promotion.project, promotion.stage, promotion.id, "answered", said
        )
        for _ in range(_TRIES):
            newest = await store.get_promotion(promotion.id)
            if newest is None or newest.state.ended:
                return
            woken = replace(newest, woken=newest.woken + 1, wake_at=None)
            if newest.state is State.REVIEW:
                woken = replace(woken, preview_wanted=said)
            if await store.save_promotion(woken, expected=newest, event=event, looks=[look]):
                return
        raise TransientError(
            f"the promotion changes too fast to go on with the answer to {alias}", retry_after=1.0
        )


def _is_at_gates(promotion: Promotion) -> bool:
    """Whether its gates decide about it: in review, or merged and nothing begun yet."""
    if promotion.state in (State.REVIEW, State.HELD):
        return True
    return promotion.state is State.FULFILLING and not promotion.effects_begun


def _choose(steps: Sequence[_Asking], alias: str, promotion: Promotion) -> _Asking:
    """The step that is meant; an alias may be given without the task that it comes from."""
    meant = [step for step in steps if alias in ("", step.alias, short_alias(step.alias))]
    if len(meant) == 1:
        return meant[0]
    if promotion.state.ended:
        raise Refusal(f"this promotion has ended: {promotion.reason}")
    names = ", ".join(step.alias for step in (meant or steps))
    if not names:
        raise Refusal(f"nothing is asked just now: {promotion.reason}")
    raise Refusal(f"say which step you answer, `/answer STEP NAME=VALUE`; these ask: {names}")
