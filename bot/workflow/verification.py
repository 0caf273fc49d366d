"""Verifying what a Stage has: a run is made when Freight arrives, measured when it is due, and noted on the Freight.

A run's row says how far it is. Each look reads it, does what is due, writes it back, and asks for the next look; so a
look that comes twice, too early or after a crash changes nothing that is counted.
"""

from __future__ import annotations

import asyncio
import logging
import secrets as randomness
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from bot.domain.analysis import (
    AnalysisRun,
    Phase,
    Verdict,
    begin,
    describe_run,
    end,
    find_due,
    next_time,
    record,
    verdict,
)
from bot.domain.availability import revoke_in_stage, verify_in_stage
from bot.domain.freight import FreightStatus
from bot.domain.history import FreightCollection
from bot.domain.identity import promotion_name, ulid
from bot.domain.model import Stage
from bot.domain.promotion import Promotion
from bot.expressions.errors import ExpressionError
from bot.pipeline.access import mapping_at
from bot.pipeline.analysis import Analysis, AnalysisError, merge_templates
from bot.ports import Clock, Event, Look, Secrets, Store
from bot.workflow.configuration import Configuration
from bot.workflow.measuring import Meter
from bot.workflow.scopes import Evaluators

log = logging.getLogger(__name__)

_WHILE_BUSY = timedelta(seconds=15)
"""How soon a run that waits for a promotion looks again, if nobody tells it before."""


class _MissingSecretError(Exception):
    """A secret argument that is not there; the text is for a person."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """Makes runs and carries them out."""

    store: Store
    meter: Meter
    secrets: Secrets
    clock: Clock
    configuration: Configuration
    evaluators: Evaluators

    # -- making ----------------------------------------------------------------------------------------------------

    async def begin_after(self, promotion: Promotion, collection: FreightCollection) -> None:
        """Make the run of what a Promotion brought; its id follows from the Promotion, so that there is one."""
        mark = promotion.id.split(".")[-2]
        await self._make(promotion, collection, mark)

    async def begin_again(self, last: Promotion, collection: FreightCollection, actor: str) -> None:
        """Make another run of what a Stage has since its last Promotion, because somebody asked for it."""
        mark = ulid(self.clock.now(), randomness.token_bytes(10))
        run = await self._make(last, collection, mark, actor)
        await self._event(run, f"asked for by {actor}")
        await self.store.request_looks([_look(run)])

    async def _make(
        self, promotion: Promotion, collection: FreightCollection, mark: str, actor: str = ""
    ) -> AnalysisRun:
        run = AnalysisRun(
            id=promotion_name(promotion.stage, mark, collection.id),
            project=promotion.project,
            stage=promotion.stage,
            collection=collection.id,
            freight=tuple(collection.items.values()),
            promotion=promotion.id,
            created_at=self.clock.now(),
            actor=actor,
        )
        await self.store.add_run(run)
        return run

    async def abort(self, run: AnalysisRun, actor: str) -> bool:
        """End a run that somebody no longer wants; False if it was over."""
        changed = await self._change(run, lambda r: end(r, Phase.ABORTED, f"by {actor}", self.clock.now()))
        await self.store.request_looks([_look(run)])
        return changed.phase is Phase.ABORTED

    # -- carrying out ----------------------------------------------------------------------------------------------

    async def look(self, project: str, name: str) -> None:
        """Do what is due of a Stage's newest run, and end those before it."""
        runs = [run for run in await self.store.list_runs(project, name) if not run.settled]
        for old in reversed(runs[1:]):
            over = await self._change(
                old, lambda r: end(r, Phase.ABORTED, "another verification began", self.clock.now())
            )
            await self._settle(over)
        if runs:
            await self._go_on(runs[0])

    async def _go_on(self, run: AnalysisRun) -> None:
        if not run.phase.ended:
            busy = await self._busy(run)
            if busy:
                await self._change(run, lambda r: r if r.phase.ended else replace(r, message=busy))
                await self.store.request_looks([_look(run)], at=self.clock.now() + _WHILE_BUSY)
                return
            run = await self._start(run) if run.phase is Phase.PENDING else run
        if not run.phase.ended:
            run = await self._measure(run)
        if run.phase.ended:
            await self._settle(run)
            return
        await self.store.request_looks([_look(run)], at=next_time(run))

    async def _busy(self, run: AnalysisRun) -> str:
        """Why nothing is measured now: while other Freight is on its way, answers may be of either."""
        current = await self.store.find_current_promotion(run.project, run.stage)
        if current is None or not current.effects_begun:
            return ""
        if current.id == run.promotion:
            return "the promotion ends first"
        return f"a promotion of {current.freight.alias} is under way"

    async def _start(self, run: AnalysisRun) -> AnalysisRun:
        """The run with its metrics, which are frozen from here on; a run that cannot be made of them is an Error."""
        now = self.clock.now()
        stage = self.configuration.stage(run.project, run.stage)
        if stage is None or stage.verification is None:
            gone = partial(
                end, phase=Phase.ABORTED, message="the Stage has no verification any more", now=now
            )
            return await self._change(run, gone)
        try:
            analysis = await self._analysis(stage, run)
        except (AnalysisError, ExpressionError) as error:
            return await self._change(run, partial(end, phase=Phase.ERROR, message=str(error), now=now))
        frozen = replace(
            run,
            metrics=analysis.metrics,
            dry_run=analysis.dry_run,
            kept=analysis.kept,
            secrets=analysis.secrets,
            labels=stage.verification.labels,
            annotations=stage.verification.annotations,
            message="",
        )
        started = await self._change(run, lambda r: r if r.phase.ended else begin(frozen, now))
        if not started.phase.ended:
            names = ", ".join(metric.name for metric in started.metrics[:10])
            await self._event(started, f"measures {names}")
        return started

    async def _analysis(self, stage: Stage, run: AnalysisRun) -> Analysis:
        """Raises AnalysisError and ExpressionError."""
        verification, project = stage.verification, run.project
        specs = []
        for kind, name in verification.templates if verification is not None else ():
            where = project if kind == "AnalysisTemplate" else ""
            template = self.configuration.pipeline.analysis_templates.get((where, name))
            if template is None:
                raise AnalysisError(f"there is no {kind} {name}")
            specs.append(mapping_at(dict(template.body), "spec"))
        return merge_templates(specs, await self.evaluators.arguments(stage, run.freight, run.created_at))

    async def _measure(self, run: AnalysisRun) -> AnalysisRun:
        """Measure what is due, all at once, and write it down before anything else happens."""
        if run.message:
            run = await self._change(run, lambda r: r if r.phase.ended else replace(r, message=""))
        due = find_due(run, self.clock.now())
        try:
            secrets = self._secrets(run) if due else {}
        except _MissingSecretError as error:
            failed = partial(end, phase=Phase.ERROR, message=str(error), now=self.clock.now())
            return await self._change(run, failed)
        taken = await asyncio.gather(*(self.meter.measure(metric, secrets) for metric in due))
        before = run
        run = await self._change(run, lambda r: record(r, list(zip(due, taken, strict=True))))
        for metric in due:
            now, was = run.result(metric), before.result(metric)
            if now.phase.ended and now.phase is not was.phase and now.phase is not Phase.SUCCESSFUL:
                note = " (a dry run)" if metric.name in run.dry_run else ""
                await self._event(run, f'metric "{metric.name}" {now.phase.lower()}{note}: {now.message}')
        return run

    def _secrets(self, run: AnalysisRun) -> Mapping[str, str]:
        found = {}
        for argument in run.secrets:
            value = (self.secrets.secret(run.project, argument.secret) or {}).get(argument.key)
            if value is None:
                raise _MissingSecretError(
                    f"the argument {argument.name} is to be read from the key {argument.key} of the Secret "
                    f"{argument.secret}, which is not there"
                )
            found[argument.name] = value
        return found

    # -- the end ---------------------------------------------------------------------------------------------------

    async def _settle(self, run: AnalysisRun) -> None:
        """Note on the Freight what a finished run found, and only then that it is done with; safe to do again."""
        if run.settled:
            return
        at = run.finished_at or self.clock.now()
        for name in run.freight:
            await self.store.change_freight_status(run.project, name, partial(_noted, run=run, at=at))
        settled = replace(run, settled=True)
        if await self.store.save_run(settled, expected=run):
            await self._event(settled, describe_run(settled))
        stages = self.configuration.stages_in_order(run.project)
        names = dict.fromkeys([run.stage, *(stage.metadata.name for stage in stages)])
        looks = [Look("stage", f"{run.project}/{name}", "a verification ended") for name in names]
        await self.store.request_looks(looks)

    async def _change(self, run: AnalysisRun, change: Callable[[AnalysisRun], AnalysisRun]) -> AnalysisRun:
        """Change the row, over whatever somebody else changed meanwhile; the answer is the row as it is then."""
        while True:
            changed = change(run)
            if changed == run or await self.store.save_run(changed, expected=run):
                return changed
            newest = await self.store.get_run(run.id)
            # A row that is gone was one of many old ones, and nobody waits for it.
            run = newest if newest is not None else replace(run, settled=True, phase=Phase.ABORTED)

    async def _event(self, run: AnalysisRun, message: str) -> None:
        now = self.clock.now()
        await self.store.add_event(Event(now, run.project, run.stage, run.promotion, "verification", message))


def _noted(status: FreightStatus, run: AnalysisRun, at: datetime) -> FreightStatus:
    """What a finished run changes of Freight."""
    match verdict(run):
        case Verdict.VERIFIED:
            return verify_in_stage(status, run.stage, at)
        case Verdict.REVOKED:
            return revoke_in_stage(status, run.stage)
        case Verdict.NOTHING:
            return status


def _look(run: AnalysisRun) -> Look:
    return Look("verification", f"{run.project}/{run.stage}", "its verification")
