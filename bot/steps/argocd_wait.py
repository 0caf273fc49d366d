"""`argocd-wait`: waits until Applications are as `waitFor` says; nothing is changed, so no annotation is asked for.

As in Kargo health, suspended and degraded are alternatives, sync and operation must hold besides.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.argocd import Application
from bot.domain.argocd_health import FAILING_CONDITIONS
from bot.domain.promotion import StepStatus
from bot.domain.review import GateRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Unknown, Value
from bot.ports import ArgoCD
from bot.steps.anticipation import is_behind_cut
from bot.steps.argocd_apps import AppConfig, find_apps, parse_apps
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.gates import ask_later
from bot.steps.options import Options

KIND = StepKind("argocd-wait", StepClass.WAIT, timeout=300.0)
"""Five minutes is Kargo's default."""

_PAUSE = 10.0
_DEFAULT = ("health", "sync", "operation")
_HEALTH = {"health": "Healthy", "suspended": "Suspended", "degraded": "Degraded"}


@dataclass(frozen=True, slots=True)
class Target:
    """An entry of `apps` and what is waited for."""

    app: AppConfig
    wait_for: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found: reasons to wait, a reason to give up, and the outputs."""

    waits: tuple[str, ...]
    broken: str
    apps: list[Value]
    health: str


def parse(given: Given) -> tuple[Target, ...]:
    """The config of the step; raises TerminalError for an unknown address."""
    return tuple(
        Target(app, app.options.addresses("waitFor") or _DEFAULT)
        for app in parse_apps(KIND.name, Options(KIND.name, given))
    )


@dataclass(frozen=True, slots=True)
class ArgoCDWait:
    """Reads Argo CD."""

    argocd: ArgoCD

    @property
    def kind(self) -> StepKind:
        """A wait."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Say whether it holds already; what stands behind an apply or a push is asked after the merge."""
        targets = parse(config)
        subject = f"Argo CD: {', '.join(target.app.address for target in targets)}"
        later: dict[str, Value] = {
            name: Unknown(f"known after step: {context.alias}.{name}") for name in ("apps", "healthStatus")
        }
        if is_behind_cut(context):
            return ask_later(subject, later)
        look = await self._look(targets, context)
        reason = look.broken or "; ".join(look.waits)
        if reason:
            return StepResult(
                None, later, message=reason, record=GateRecord(subject, open=False, reason=reason)
            )
        return StepResult(output=_output(look), record=GateRecord(subject, open=True))

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Running until it holds."""
        look = await self._look(parse(config), context)
        if look.broken:
            return failed(context.alias, f"argocd-wait: {look.broken}")
        if look.waits:
            return StepResult(StepStatus.RUNNING, message="; ".join(look.waits), retry_after=_PAUSE)
        return StepResult(output=_output(look))

    async def _look(self, targets: tuple[Target, ...], context: StepContext) -> Look:
        server = context.policy.argocd_server
        waits: list[str] = []
        apps: list[Value] = []
        broken, health = "", ""
        for target in targets:
            found = await find_apps(self.argocd, server, target.app)
            if not found:
                waits.append(f"{target.app.address} does not exist in Argo CD {server!r} (yet)")
            for application in found:
                apps.append({"name": application.name, "namespace": application.namespace})
                health = application.health
                broken = broken or _broken(application)
                reason = _why_not(application, target.wait_for)
                if reason:
                    waits.append(f"{application.name} {reason}")
        return Look(tuple(waits), broken, apps, health)


def _output(look: Look) -> dict[str, Value]:
    return {"apps": look.apps, "healthStatus": look.health}


def _broken(application: Application) -> str:
    for kind, message in application.conditions:
        if kind in FAILING_CONDITIONS and kind != "SyncError":
            return f"{application.name}: {kind}: {message}"
    return ""


def _why_not(application: Application, wait_for: tuple[str, ...]) -> str:
    """Why an Application is not as wanted, empty if it is."""
    wanted = [_HEALTH[each] for each in wait_for if each in _HEALTH]
    if wanted and application.health not in wanted:
        return f"is {application.health}, not {' or '.join(wanted)}"
    if "sync" in wait_for and application.sync_status != "Synced":
        return f"is {application.sync_status}"
    operation = application.operation
    running = operation is not None and operation.phase in ("Running", "Terminating")
    if "operation" in wait_for and (running or application.operation_pending):
        return "has a running operation"
    return ""
