"""`argocd-update`: has Argo CD sync Applications, and waits until they run our revision and are well.

Where Kargo is done when the operation has ended, this step waits until our revision, or a descendant that leaves what
we changed as it is, has been healthy for the settle time of the ReviewPolicy. Each look is one pass: nothing waits
inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.domain.argocd import Application
from bot.domain.argocd_health import Done, GoneWrong, Memory, NotYet, Wanted, judge
from bot.domain.promotion import StepStatus
from bot.domain.review import EffectRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Value, is_tainted
from bot.ports import ArgoCD, Git, SyncRefused, TerminalError
from bot.steps.argocd_apps import AppConfig, application_key, find_apps, parse_apps, why_unauthorized
from bot.steps.argocd_release import Released, acceptable_revisions, find_released
from bot.steps.argocd_sources import SourceConfig, check_sources, describe, parse_sources, patch
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.options import Options

KIND = StepKind("argocd-update", StepClass.ACT)

_BUSY_PAUSE = 5.0
_FIRST_PAUSE = 0.5
_LOOK_PAUSE = 3.0
_SHORTEST_PAUSE = 0.3
_REFUSED_PAUSE = 30.0
_RUNNING = frozenset({"Running", "Terminating"})


@dataclass(frozen=True, slots=True)
class Target:
    """One entry of `apps`."""

    app: AppConfig
    sources: tuple[SourceConfig, ...]


@dataclass(frozen=True, slots=True)
class Waits:
    """An Application is not ready yet; `memory` is what its next look must know."""

    reason: str
    retry_after: float
    memory: Mapping[str, Value]


def parse(given: Given) -> tuple[Target, ...]:
    """The config of the step; raises TerminalError for an unknown address."""
    return tuple(
        Target(app, parse_sources(app.options)) for app in parse_apps(KIND.name, Options(KIND.name, given))
    )


@dataclass(frozen=True, slots=True)
class ArgoCDUpdate:
    """Syncs Applications."""

    argocd: ArgoCD
    git: Git

    @property
    def kind(self) -> StepKind:
        """An act; quiet where no source is changed. Its time limit is the policy's."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Say which Applications will be changed and synced; one that forbids it fails the preview."""
        targets = parse(config)
        details: list[tuple[str, Value]] = []
        output: list[Value] = []
        for target in targets:
            found = await find_apps(self.argocd, context.policy.argocd_server, target.app)
            for application in found:
                reason = why_unauthorized(application, context)
                if reason:
                    return failed(context.alias, f"argocd-update: {reason}")
                check_sources(application, target.sources)
                output.append(_named(application))
            details.append(("application", target.app.address))
            for source in target.sources:
                details += describe(source)
        record = EffectRecord(
            title=f"sync {', '.join(target.app.address for target in targets)}",
            address=f"Argo CD {context.policy.argocd_server}",
            details=tuple(details),
            quiet=not any(source.changes_source for target in targets for source in target.sources),
        )
        return StepResult(output={"apps": output}, record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """One look at every Application: ask for the sync where it was not asked for, else see how it goes."""
        targets = parse(config)
        if any(is_tainted(item.options.value("sources")) for item in (target.app for target in targets)):
            raise TerminalError("argocd-update: a value of its sources is not known")
        memory: dict[str, Value] = {}
        output: list[Value] = []
        waits: list[str] = []
        pause = _REFUSED_PAUSE
        for target in targets:
            found = await find_apps(self.argocd, context.policy.argocd_server, target.app)
            if not found:
                waits.append(
                    f"{target.app.address} does not exist in Argo CD {context.policy.argocd_server!r} (yet)"
                )
                pause = min(pause, _REFUSED_PAUSE)
            for application in found:
                output.append(_named(application))
                answer = await self._look(application, target.sources, context)
                if isinstance(answer, StepResult):
                    return answer
                if isinstance(answer, Waits):
                    waits.append(f"{application.name}: {answer.reason}")
                    pause = min(pause, answer.retry_after)
                    memory[application_key(application)] = dict(answer.memory)
                else:
                    memory[application_key(application)] = dict(answer)
        if not waits:
            return StepResult(output={"apps": output})
        return _wait(waits, pause, memory, context)

    # -- one Application ---------------------------------------------------------------------------------------

    async def _look(
        self, application: Application, sources: tuple[SourceConfig, ...], context: StepContext
    ) -> StepResult | Waits | Mapping[str, Value]:
        """What its next look must know if it is done or waits, or the step's failure."""
        reason = why_unauthorized(application, context)
        if reason:
            return failed(context.alias, f"argocd-update: {reason}")
        kept = context.detail.get(application_key(application))
        memory: Mapping[str, Value] = kept if isinstance(kept, dict) else {}
        if memory.get("done") is True:
            return memory
        if "asked_at" not in memory:
            started = await self._start(application, sources, context)
            if isinstance(started, Waits):
                return started
            application, memory = started
        return await self._judge(application, sources, memory, context)

    async def _start(
        self, application: Application, sources: tuple[SourceConfig, ...], context: StepContext
    ) -> Waits | tuple[Application, Mapping[str, Value]]:
        """Patch, refresh and ask for a sync, unless an operation of ours is there already."""
        server = context.policy.argocd_server
        infos = _infos(context)
        operation = application.operation
        if operation is not None and dict(operation.infos) == infos:
            since = operation.started_at or context.now
            return application, {"asked_at": since.isoformat()}
        if application.operation_pending or (operation is not None and operation.phase in _RUNNING):
            return Waits("another sync operation is running; it is waited for", _BUSY_PAUSE, {})
        wanted = patch(application, sources)
        if wanted != list(application.raw_sources):
            await self.argocd.patch_sources(server, application, wanted)
        refreshed = await self.argocd.get_application(
            server,
            application.name,
            namespace=application.namespace,
            project=application.project,
            refresh="hard",
        )
        if refreshed is None:
            return Waits("it was deleted meanwhile", _REFUSED_PAUSE, {})
        released = find_released(sources, refreshed, context)
        revision = released[0].revision if len(released) == 1 else ""
        outcome = await self.argocd.sync(server, refreshed, revision=revision, infos=infos)
        if isinstance(outcome, SyncRefused):
            if outcome.busy:
                return Waits("another sync operation is running; it is waited for", _BUSY_PAUSE, {})
            return Waits(f"Argo CD refuses to sync it: {outcome.message}", _REFUSED_PAUSE, {})
        asked_at = _asked_at(application, refreshed, context.now)
        return refreshed, {"asked_at": asked_at.isoformat(), "fresh": True}

    async def _judge(
        self,
        application: Application,
        sources: tuple[SourceConfig, ...],
        memory: Mapping[str, Value],
        context: StepContext,
    ) -> StepResult | Waits | Mapping[str, Value]:
        if memory.get("fresh") is True:
            # What was read before the sync was asked for says nothing about it.
            return Waits("its sync was asked for", _FIRST_PAUSE, {"asked_at": memory["asked_at"]})
        released = find_released(sources, application, context) or (None,)
        for each in released:
            wanted = await self._wanted(application, each, memory, context)
            verdict = judge(application, wanted, now=context.now, memory=_memory(memory))
            if isinstance(verdict, GoneWrong):
                where = f" ({application.url})" if application.url else ""
                return failed(context.alias, f"argocd-update: {application.name}: {verdict.reason}{where}")
            if isinstance(verdict, NotYet):
                await self._refresh_if_stale(application, context)
                pause = _next_look(verdict, wanted, context.now)
                return Waits(verdict.reason, pause, _remember(memory, verdict))
            assert isinstance(verdict, Done)
        return {**memory, "done": True}

    async def _wanted(
        self,
        application: Application,
        released: Released | None,
        memory: Mapping[str, Value],
        context: StepContext,
    ) -> Wanted:
        asked_at = _time(memory.get("asked_at")) or context.now
        settle = context.policy.argocd_settle
        if released is None:
            return Wanted(asked_at=asked_at, settle=settle)
        seen = [source.revision for source in application.sources]
        if application.operation is not None:
            seen += application.operation.revisions
        accepted = await acceptable_revisions(self.git, released, seen)
        return Wanted(asked_at, released.url, accepted, settle)

    async def _refresh_if_stale(self, application: Application, context: StepContext) -> None:
        """Ask for one more comparison where the last one is from before the operation ended."""
        finished = application.operation.finished_at if application.operation is not None else None
        compared = application.reconciled_at
        if finished is not None and (compared is None or compared < finished):
            await self.argocd.get_application(
                context.policy.argocd_server,
                application.name,
                namespace=application.namespace,
                project=application.project,
                refresh="normal",
            )


def _infos(context: StepContext) -> dict[str, str]:
    """What the operation carries, so that a second run knows it; a new attempt asks anew."""
    promotion = context.promotion
    return {
        "Reason": f"Promotion of Freight {promotion.freight.name[:7]} to {promotion.project}/{promotion.stage}",
        "lockstep.dev/promotion": f"{promotion.id}/{context.alias}/{context.attempt}",
    }


def _asked_at(before: Application, after: Application, now: datetime) -> datetime:
    """When we asked, by Argo CD's clock if the refresh gave it away."""
    if after.reconciled_at is not None and after.reconciled_at != before.reconciled_at:
        return after.reconciled_at
    return now


def _next_look(verdict: NotYet, wanted: Wanted, now: datetime) -> float:
    """Seconds to the next look: soon at first, then more and more seldom, and right when the settle time is over."""
    if verdict.good_since is not None:
        pause = wanted.settle - (now - verdict.good_since).total_seconds()
    else:
        pause = (now - wanted.asked_at).total_seconds() / 2
    return min(max(pause, _SHORTEST_PAUSE), _LOOK_PAUSE)


def _named(application: Application) -> Value:
    return {"name": application.name, "namespace": application.namespace}


def _time(value: Value) -> datetime | None:
    return datetime.fromisoformat(value) if isinstance(value, str) and value else None


def _memory(memory: Mapping[str, Value]) -> Memory:
    return Memory(_time(memory.get("good_since")), _time(memory.get("degraded_since")))


def _remember(memory: Mapping[str, Value], verdict: NotYet) -> dict[str, Value]:
    kept: dict[str, Value] = {"asked_at": memory.get("asked_at")}
    if verdict.good_since is not None:
        kept["good_since"] = verdict.good_since.isoformat()
    if verdict.degraded_since is not None:
        kept["degraded_since"] = verdict.degraded_since.isoformat()
    return kept


def _wait(waits: list[str], pause: float, memory: dict[str, Value], context: StepContext) -> StepResult:
    run = context.run
    started = run.begun_at if run is not None and run.attempt == context.attempt else None
    limit = context.policy.argocd_timeout
    reasons = "; ".join(waits)
    if context.now - (started or context.now) > timedelta(seconds=limit):
        return failed(
            context.alias,
            f"argocd-update: not done within {limit:.0f} s: {reasons}. Look at the Application, then say /retry",
        )
    return StepResult(StepStatus.RUNNING, message=reasons, retry_after=pause, detail=memory)
