"""`dns-wait` (ours): waits until a name resolves, to an expected target if one is given.

For what reaches outside a reconciliation loop, such as a certificate that needs its name to resolve: the record that
Terraform made counts when resolvers see it.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from bot.domain.promotion import StepStatus
from bot.domain.review import GateRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Unknown, Value, is_tainted
from bot.ports import Dns
from bot.steps.anticipation import is_behind_cut
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult
from bot.steps.gates import ask_later
from bot.steps.marks import show_scalar
from bot.steps.options import Options, plain_text

KIND = StepKind("dns-wait", StepClass.WAIT)


@dataclass(frozen=True, slots=True)
class Config:
    """The name, and what it must resolve to: a canonical name or an address, empty for anything.

    Both may hold marks.
    """

    name: Value
    target: Value
    poll_interval: float

    @property
    def is_known(self) -> bool:
        """Whether it can be asked."""
        return not is_tainted(self.name) and not is_tainted(self.target)


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown interval."""
    options = Options(KIND.name, given)
    return Config(options.text("name"), options.text("target"), options.duration("pollInterval", 10.0))


@dataclass(frozen=True, slots=True)
class DnsWait:
    """Asks resolvers."""

    dns: Dns

    @property
    def kind(self) -> StepKind:
        """A wait."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Say whether it holds already; what stands behind an apply is asked after the merge."""
        wanted = parse(config)
        subject = _subject(wanted)
        unknown: Value = Unknown(f"known after step: {context.alias}.addresses")
        if is_behind_cut(context) or not wanted.is_known:
            return ask_later(subject, {"addresses": unknown})
        found, reason = await self._ask(wanted)
        if reason:
            gate = GateRecord(subject, open=False, reason=reason)
            return StepResult(None, {"addresses": unknown}, message=reason, record=gate)
        return StepResult(output={"addresses": found}, record=GateRecord(subject, open=True))

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Running until it holds."""
        del context
        wanted = parse(config)
        found, reason = await self._ask(wanted)
        if reason:
            return StepResult(StepStatus.RUNNING, message=reason, retry_after=wanted.poll_interval)
        return StepResult(output={"addresses": found})

    async def _ask(self, wanted: Config) -> tuple[list[Value], str]:
        """Canonical name and addresses, and why they are not enough (empty if they are)."""
        name, target = plain_text(wanted.name), plain_text(wanted.target)
        found = await self.dns.resolve(name)
        if not found:
            return [], f"{name} does not resolve yet"
        if target and _normal(target) not in {_normal(each) for each in found}:
            return [], f"{name} resolves to {', '.join(found)}, not to {target} yet"
        return [*found], ""


def _subject(wanted: Config) -> str:
    target = show_scalar(wanted.target)
    return f"{show_scalar(wanted.name)} resolves" + (f" to {target}" if target else "")


def _normal(name: str) -> str:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name.rstrip(".").lower()
