"""Looking for drift: on each Stage's schedule, when somebody asks, and after what was to undo it.

A look is durable work of its own, alone among those of its Stage. What it saw is remembered before anything follows
from it, so that a crash, or a GitHub that is down, costs no second plan. Promotions never wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta

from bot.domain.drift import DriftRecord, Finding, Question, StageLook, due_at
from bot.domain.github import PullNumber, Repository
from bot.domain.keeping import kept_paths
from bot.domain.model import Stage
from bot.domain.promotion import Promotion, PromotionId, State
from bot.domain.review_policy import ReviewPolicy
from bot.ports import Clock, Event, Look, Store, TerminalError, Terraform, TransientError, Vault
from bot.reports.drift import render_answer
from bot.reports.markdown import plain
from bot.steps.contract import Step
from bot.steps.drift_probe import DriftProbe, ReadOnly
from bot.workflow.configuration import Configuration
from bot.workflow.drift_issues import DriftIssues, find_present
from bot.workflow.evaluation import Evaluator
from bot.workflow.preview import Previewer
from bot.workflow.reporting import Reporter

_WHILE_BUSY = timedelta(minutes=5)
_APPLIES = "tf-apply"
_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Surveyor:
    """Plans what a Promotion applied, as it was applied, and changes nothing."""

    previewer: Previewer
    evaluator: Callable[[Promotion], Awaitable[Evaluator]]
    terraform: Terraform
    vault: Vault
    store: Store
    clock: Clock

    async def survey(self, promotion: Promotion, policy: ReviewPolicy) -> StageLook:
        """What every Terraform state of the Promotion's task looks like now."""
        look = StageLook(self.clock.now(), promotion.freight.alias, promotion.id)
        steps = promotion.steps[: _last_apply(promotion) + 1]
        if not steps:
            return look
        bench = self.previewer.benches(promotion.project)
        probe = DriftProbe(bench.git, self.terraform, self.vault, self.store)
        replaced: dict[str, Step] = {_APPLIES: probe}
        replaced |= {kind: ReadOnly(bench.steps[kind]) for kind in ("tf-output", "tf-plan")}
        watching = replace(bench, steps={**bench.steps, **replaced})
        walker = replace(self.previewer, benches=lambda _project: watching)
        try:
            # A plan that a condition of the task asks for is made here as well.
            walked = replace(promotion, steps=steps, corrects=True)
            preview = await self.store.get_preview(promotion.id, promotion.preview)
            kept = kept_paths(preview.steps) if preview is not None else frozenset()
            problems = await walker.survey(walked, policy, await self.evaluator(promotion), kept)
        except (TransientError, TerminalError) as error:
            return replace(look, states=tuple(probe.found), problem=str(error))
        problem = f"{problems[0].alias}: {problems[0].message}" if problems else ""
        return replace(look, states=tuple(probe.found), problem=problem)


def _last_apply(promotion: Promotion) -> int:
    return max((number for number, step in enumerate(promotion.steps) if step.uses == _APPLIES), default=-1)


@dataclass(frozen=True, slots=True)
class DriftWatch:
    """Does the looks, keeps their times, and has everything follow from them."""

    surveyor: Surveyor
    issues: DriftIssues
    reporter: Reporter
    store: Store
    clock: Clock
    configuration: Configuration
    turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    """Stages of one schedule wait for each other, and leave room for what promotions plan."""

    async def remind(self, *, schedules_changed: bool = False) -> None:
        """Ask for every look that is due or half done, as one whose timer was lost, and begin with new Stages.

        Timers are in the database and set by each look; only where schedules may have changed all are set again.
        """
        known = {(record.project, record.stage): record for record in await self.store.list_drifts()}
        due: list[Look] = []
        for (project, name), stage in self.configuration.pipeline.stages.items():
            policy, record = self.configuration.policy(stage), known.get((project, name))
            is_new = record is None and bool(policy.drift_schedule) and not stage.is_control_flow
            if is_new:
                record = await self._begin(project, name)
            if record is None:
                continue
            at = due_at(policy.drift_schedule, record)
            if not record.settled or record.asked or (at is not None and at <= self.clock.now()):
                due.append(Look("drift", f"{project}/{name}", "a sweep"))
            elif is_new or schedules_changed:
                await self._set_timer(record, policy)
        await self.store.request_looks(due)

    async def _begin(self, project: str, name: str) -> DriftRecord:
        """A Stage's record, as of now: its schedule counts from here."""
        since = self.clock.now()
        return await self.store.change_drift(project, name, lambda r: replace(r, since=since))

    async def ask(self, stage: Stage, question: Question) -> None:
        """Have a Stage looked at now and the question answered; the same question is answered once."""
        project, name = stage.metadata.namespace, stage.metadata.name

        def asked(record: DriftRecord) -> DriftRecord:
            others = tuple(known for known in record.asked if known.key != question.key)
            return replace(record, asked=(*others, question))

        await self.store.change_drift(project, name, asked)
        await self.store.request_looks([Look("drift", f"{project}/{name}", "somebody asked")])

    async def look(self, project: str, name: str) -> None:
        """Look if somebody asks or it is time, and do what follows. Raises TransientError and TerminalError."""
        stage = self.configuration.stage(project, name)
        if stage is None:
            return
        policy = self.configuration.policy(stage)
        record = await self.store.get_drift(project, name) or await self._begin(project, name)
        if record.settled:
            record = await self._look_if_wanted(record, policy)
        if not record.settled:
            record = await self._settle(record, stage, policy)
        await self._set_timer(record, policy)

    async def _set_timer(self, record: DriftRecord, policy: ReviewPolicy) -> None:
        """Ask for the next look; one that is due already could not be made just now."""
        look = Look("drift", f"{record.project}/{record.stage}", "its schedule")
        if not record.settled or record.asked:
            await self.store.request_looks([look])
            return
        due = due_at(policy.drift_schedule, record)
        if due is not None:
            now = self.clock.now()
            await self.store.request_looks([look], at=due if due > now else now + _WHILE_BUSY)

    # -- looking -----------------------------------------------------------------------------------------------

    async def _look_if_wanted(self, record: DriftRecord, policy: ReviewPolicy) -> DriftRecord:
        due = due_at(policy.drift_schedule, record)
        is_due = due is not None and due <= self.clock.now()
        applied = await self._find_applied(record)
        corrected = applied is not None and _is_corrected(record, applied)
        if not (is_due or record.asked or corrected):
            return record
        async with self.turn:
            return await self._look_now(record, policy, is_due=is_due)

    async def _look_now(self, record: DriftRecord, policy: ReviewPolicy, *, is_due: bool) -> DriftRecord:
        applied = await self._find_applied(record)
        if applied is None:
            return await self._nothing_applied(record, is_due=is_due)
        busy = await self._why_busy(record)
        if busy and not record.asked:
            look = Look("drift", f"{record.project}/{record.stage}", "a promotion was under way")
            await self.store.request_looks([look], at=self.clock.now() + _WHILE_BUSY)
            return record
        seen = StageLook(self.clock.now(), applied.freight.alias, applied.id, problem=busy)
        if not busy:
            seen = await self._survey(record, applied, policy)
        return await self._remember(record, seen, is_due=is_due)

    async def _survey(self, record: DriftRecord, applied: Promotion, policy: ReviewPolicy) -> StageLook:
        before = await self._effects(record)
        seen = await self.surveyor.survey(applied, policy)
        if await self._effects(record) != before:
            # What was planned may be what the promotion was just doing.
            why = "a promotion was carried out meanwhile; `/drift` looks again"
            return replace(seen, states=(), problem=why)
        return seen

    async def _find_applied(self, record: DriftRecord) -> Promotion | None:
        """The Promotion whose steps brought about what the Stage has now."""
        held = await self.store.get_stage(record.project, record.stage)
        return find_present(held, await self.store.list_promotions(record.project, record.stage))

    async def _effects(self, record: DriftRecord) -> list[tuple[PromotionId, State, int]]:
        """Which promotions have touched anything, and how far they are."""
        recent = await self.store.list_promotions(record.project, record.stage)
        return [(p.id, p.state, p.attempt) for p in recent if p.effects_begun]

    async def _why_busy(self, record: DriftRecord) -> str:
        current = await self.store.find_current_promotion(record.project, record.stage)
        if current is None or not current.effects_begun:
            return ""
        return f"a promotion of {current.freight.alias} is being carried out; `/drift` looks again"

    async def _nothing_applied(self, record: DriftRecord, *, is_due: bool) -> DriftRecord:
        for question in record.asked:
            await self._reply(question, f"{record.stage} has no Freight yet, so nothing can have drifted")
        return await self._change(
            record,
            lambda r: replace(
                r,
                asked=_rest(r, record.asked),
                scheduled_at=self.clock.now() if is_due else r.scheduled_at,
            ),
        )

    async def _remember(self, record: DriftRecord, seen: StageLook, *, is_due: bool) -> DriftRecord:
        def noted(r: DriftRecord) -> DriftRecord:
            drifted = r.drifted_since
            if seen.finding is Finding.DRIFT:
                drifted = drifted or seen.at
            return replace(
                r,
                last=seen,
                settled=False,
                drifted_since=drifted,
                scheduled_at=seen.at if is_due else r.scheduled_at,
            )

        return await self._change(record, noted)

    # -- what follows ------------------------------------------------------------------------------------------

    async def _settle(self, record: DriftRecord, stage: Stage, policy: ReviewPolicy) -> DriftRecord:
        look = record.last
        if look is None:
            return await self._change(record, lambda r: replace(r, settled=True))
        record = await self.issues.show(record, look)
        record = await self.issues.correct(record, look, stage, policy)
        for question in record.asked:
            await self._reply(question, render_answer(record, look), rendered=True)
        answered = record.asked
        told = f"{look.finding.value} {look.digest}"
        if told != record.told:
            said = Event(look.at, record.project, record.stage, "", "drift", _words(look))
            await self.store.add_event(said)

        def settled(r: DriftRecord) -> DriftRecord:
            since = None if look.finding is Finding.NONE else r.drifted_since
            return replace(r, settled=True, asked=_rest(r, answered), drifted_since=since, told=told)

        return await self._change(record, settled)

    async def _reply(self, question: Question, text: str, *, rendered: bool = False) -> None:
        body = text if rendered else plain(text)
        repository = Repository.parse(question.repository)
        await self.reporter.reply(repository, PullNumber(question.number), question.key, body)

    async def _change(self, record: DriftRecord, change: Callable[[DriftRecord], DriftRecord]) -> DriftRecord:
        return await self.store.change_drift(record.project, record.stage, change)


def _rest(record: DriftRecord, answered: tuple[Question, ...]) -> tuple[Question, ...]:
    keys = {question.key for question in answered}
    return tuple(question for question in record.asked if question.key not in keys)


def _is_corrected(record: DriftRecord, applied: Promotion) -> bool:
    """Whether something that was to undo the drift has ended since the last look."""
    last, ended = record.last, applied.finished_at
    return last is not None and applied.corrects and ended is not None and ended > last.at


def _words(look: StageLook) -> str:
    match look.finding:
        case Finding.DRIFT:
            return f"drift: {look.count} resources or outputs are not as they were applied"
        case Finding.NONE:
            return "no drift"
        case _:
            reasons = [state.reason for state in look.states if state.reason]
            return f"{look.finding.value}: {look.problem or '; '.join(reasons)}"
