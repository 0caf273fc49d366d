"""What the audit log is told of people: which commands they gave, and whose approvals a release rests on."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable

from bot.domain.actions import Snapshot
from bot.domain.audit import AuditEntry
from bot.domain.commands import Command, Explain, Help, Status
from bot.ports import Clock
from bot.ports.timeline import AuditStore
from bot.workflow.buttons import Asked, Refusal

_ONLY_ASK = (Explain, Help, Status)
_LONGEST = 1000


async def audited(
    asked: Asked, carry_out: Callable[[Asked], Awaitable[str]], store: AuditStore, clock: Clock
) -> str:
    """Carry a command out, and note who gave it and what came of it; raises Refusal as that does.

    A command that a crash cut short is carried out again, and is then noted twice.
    """
    try:
        reply = await carry_out(asked)
    except Refusal as refusal:
        await store.add_audit(_entry(asked, f"refused: {refusal}", clock))
        raise
    if not isinstance(asked.command, _ONLY_ASK):
        await store.add_audit(_entry(asked, "done", clock))
    return reply


def _entry(asked: Asked, outcome: str, clock: Clock) -> AuditEntry:
    promotion = asked.promotion
    where = f" on #{promotion.pull}" if promotion is not None and promotion.pull is not None else ""
    said = f"{describe_command(asked.command)} in {asked.repository}{where} by account {asked.author.id}: {outcome}"
    return AuditEntry(
        at=clock.now(),
        kind="command",
        message=said[:_LONGEST],
        actor=asked.author.login,
        project=promotion.project if promotion is not None else "",
        stage=promotion.stage if promotion is not None else "",
        promotion=promotion.id if promotion is not None else "",
    )


def describe_command(command: Command) -> str:
    """The command with what it was given: `/promote stage=dev`."""
    # What is in no `repr` is in no log either.
    fields = ((f.name, getattr(command, f.name)) for f in dataclasses.fields(command) if f.repr)
    given = "".join(f" {name}={value}" for name, value in fields if value not in ("", None, False, ()))
    return f"/{type(command).__name__.lower()}{given}"


def describe_release(seen: Snapshot) -> str:
    """Whose approvals counted for which digest, and who merged what; empty where nobody was asked."""
    promotion, pull, tally = seen.promotion, seen.pull, seen.tally
    if promotion is None or pull is None:
        return ""
    said = f"#{pull.number} at head {pull.head}, digest {promotion.digest or 'none'}"
    if pull.merged:
        said += f", merged by {pull.merged_by or 'somebody'} as {pull.merge_commit}"
    if tally is not None:
        said += f", approvals that count: {', '.join(tally.approvers) or 'none'} ({tally.needed} needed)"
    if promotion.accepted:
        said += f", accepted: {', '.join(promotion.accepted)}"
    return said
