"""What the steps that fetch a file have in common: where it goes, and that it is the one that was reviewed."""

from __future__ import annotations

from bot.domain.promotion import StepStatus
from bot.domain.review import FrozenRecord
from bot.domain.values import Unknown
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.frozen import stop_for_another


async def hold_place(path: str, context: StepContext) -> StepResult:
    """The whole file is unknown: it can be fetched only later."""
    mark = Unknown(f"known after step: {context.alias}")
    await context.tree.write(path, context.tree.sentinels.write(mark).encode())
    return StepResult()


async def refuse_existing(kind: str, path: str, context: StepContext) -> StepResult | None:
    """The failure of a step that may not overwrite a file that is there."""
    if await context.tree.find_file(path) is None:
        return None
    return failed(context.alias, f"{kind}: {path!r} exists already; set allowOverwrite: true to replace it")


async def keep(data: bytes, path: str, record: FrozenRecord, context: StepContext, said: str) -> StepResult:
    """Write what was fetched; other content than the approved one stops the walk, `said` being the reason's end."""
    stop = stop_for_another(record, context, said)
    if stop is not None:
        return StepResult(StepStatus.RUNNING, message=stop.reason, stop=stop)
    context.tree.touch(path)
    await context.tree.write(path, data)
    return StepResult(record=record)
