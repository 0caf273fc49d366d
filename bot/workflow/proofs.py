"""What verifications mean for decisions: what waits for them, and what they have shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from bot.domain.actions import Gate, Snapshot
from bot.domain.analysis import AnalysisRun, Phase, describe_run
from bot.domain.availability import KnownFreight, is_freight_available
from bot.domain.freight import Freight, FreightStatus
from bot.domain.model import Stage
from bot.domain.promotion import Promotion
from bot.ports import StageRecord


def present_runs(runs: Iterable[AnalysisRun], records: Iterable[StageRecord]) -> dict[str, AnalysisRun]:
    """By Stage the run that speaks of what the Stage has now, of the newest runs of each Stage."""
    now = {record.stage: record.history[0].id for record in records if record.history}
    return {run.stage: run for run in runs if not run.settled or run.collection == now.get(run.stage)}


def verifying(run: AnalysisRun | None) -> str:
    """How far a Stage's newest verification is, empty if none is under way."""
    return describe_run(run) if run is not None and not run.settled else ""


def explain_verifications(
    stage: Stage, runs: Mapping[str, AnalysisRun], found: tuple[Freight | None, str, datetime | None]
) -> tuple[Freight | None, str, datetime | None]:
    """The candidate as it was found; where there is none, with what the verifications upstream say.

    `runs` are those of what each Stage has now.
    """
    candidate, why, at = found
    unproven = [run for run in _upstream(stage, runs) if run.phase is not Phase.SUCCESSFUL]
    if candidate is not None or not unproven:
        return found
    said = "; ".join(describe_run(run, elsewhere=True) for run in unproven)
    return None, said if why.startswith("no Freight") else f"{why}; {said}", at


def verification_gates(
    seen: Snapshot, promotion: Promotion, runs: Mapping[str, AnalysisRun], status: FreightStatus
) -> tuple[Gate, ...]:
    """Closed while what the Stage has is being verified, and when the Freight has failed upstream since it was chosen.

    `runs` are those of what each Stage has now, `status` is the Freight's. A rollback passes.
    """
    if promotion.rollback:
        return ()
    gates = [Gate("verification", False, seen.verifying)] if seen.verifying else []
    failed = [run for run in _upstream(seen.stage, runs) if run.phase is Phase.FAILED]
    failed = [run for run in failed if promotion.freight.name in run.freight]
    known = KnownFreight(promotion.freight, status)
    if failed and not is_freight_available(seen.stage, known, seen.now):
        said = "; ".join(describe_run(run, elsewhere=True) for run in failed)
        gates.append(Gate("verified", False, said))
    return tuple(gates)


def upstream_of(stage: Stage) -> tuple[str, ...]:
    """The Stages that a Stage takes Freight from, each once."""
    names = (name for request in stage.requested_freight for name in request.sources.stages)
    return tuple(dict.fromkeys(names))


def _upstream(stage: Stage, runs: Mapping[str, AnalysisRun]) -> list[AnalysisRun]:
    return [runs[name] for name in upstream_of(stage) if name in runs]
