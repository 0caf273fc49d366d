"""`gha-dispatch-workflow`: asks GitHub Actions for a run, once.

GitHub tells which run it made. Where it does not, or where the answer was lost, our App's own runs of that workflow
and ref since this step began are looked at: exactly one is ours, otherwise a person decides. `credentials`, which Kargo
1.8 had, is not needed: the App signs, and needs the permission `actions: write`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from bot.domain.github import RunId
from bot.domain.promotion import StepStatus
from bot.domain.review import EffectRecord
from bot.domain.step_kinds import StepClass, StepKind
from bot.domain.values import Unknown, Value
from bot.ports import GitHub, TransientError, Workflows
from bot.ports.issues import Dispatch, DispatchLost
from bot.steps.contract import Config as Given
from bot.steps.contract import StepContext, StepResult, failed
from bot.steps.options import Options
from bot.steps.pull_requests import find_repository
from bot.steps.requests import body_text

KIND = StepKind("gha-dispatch-workflow", StepClass.ACT)

_ASKED = "askedAt"
_LOST = "lost"
_LATER = 30.0
_SOON = 3.0
"""Seconds between two looks for a run that was asked for."""


@dataclass(frozen=True, slots=True)
class Config:
    """Where, which workflow on which ref, inputs that may hold marks, and seconds for the run to appear."""

    url: str
    workflow: str
    ref: str
    inputs: dict[str, Value]
    timeout: float

    def to_dispatch(self) -> Dispatch:
        """What is sent, secrets opened; raises TerminalError for an input that is not known."""
        # Inputs are texts; GitHub converts those that the workflow declares otherwise.
        inputs = {name: body_text(value) for name, value in self.inputs.items()}
        return Dispatch(self.workflow, self.ref, inputs)


def parse(given: Given) -> Config:
    """The config of the step; raises TerminalError for an unknown address."""
    options = Options(KIND.name, given)
    return Config(
        options.address("repoURL"),
        options.address("workflowFile"),
        options.address("ref"),
        dict(options.part("inputs").values),
        options.number("timeout", 60),
    )


@dataclass(frozen=True, slots=True)
class GhaDispatchWorkflow:
    """Acts."""

    github: GitHub
    workflows: Workflows

    @property
    def kind(self) -> StepKind:
        """An act."""
        return KIND

    async def preview(self, config: Given, context: StepContext) -> StepResult:
        """Show the workflow and its inputs."""
        wanted = parse(config)
        find_repository(self.github, KIND.name, wanted.url)
        details: list[tuple[str, Value]] = [("ref", wanted.ref)]
        details += [(f"input {name}", value) for name, value in sorted(wanted.inputs.items())]
        record = EffectRecord(f"run {wanted.workflow}", wanted.url, tuple(details))
        return StepResult(None, {"runID": Unknown(f"known after step: {context.alias}.runID")}, record=record)

    async def fulfil(self, config: Given, context: StepContext) -> StepResult:
        """Ask for the run, or find the one that was asked for."""
        wanted = parse(config)
        repository = find_repository(self.github, KIND.name, wanted.url)
        asked, lost = context.detail.get(_ASKED), str(context.detail.get(_LOST) or "")
        if isinstance(asked, str):
            return await self._find(wanted, context, datetime.fromisoformat(asked), lost)
        if context.outcome_unknown:
            begun = context.run.begun_at if context.run is not None else None
            return _waiting(wanted, begun or context.now, "it was begun and its answer was not seen")
        try:
            outcome = await self.workflows.dispatch(repository, wanted.to_dispatch())
        except TransientError as error:
            # Nothing was done, and the journal must say so, or the next pass would take it for lost.
            return StepResult(StepStatus.RUNNING, message=str(error), retry_after=error.retry_after or _LATER)
        if isinstance(outcome, DispatchLost):
            return _waiting(wanted, context.now, outcome.message)
        return _waiting(wanted, context.now) if outcome.run is None else _found(outcome.run)

    async def _find(self, wanted: Config, context: StepContext, asked: datetime, lost: str) -> StepResult:
        """The run that GitHub did not name, once it is there; `lost` says why there may be none."""
        repository = find_repository(self.github, KIND.name, wanted.url)
        runs = await self.workflows.find_dispatched(repository, wanted.to_dispatch(), asked)
        if len(runs) == 1:
            return _found(runs[0].id)
        if runs:
            return _unknown(
                wanted, f"there are {len(runs)} runs since then, and nobody can tell which is ours"
            )
        if (context.now - asked).total_seconds() > wanted.timeout:
            if lost:
                return _unknown(wanted, lost)
            return failed(
                context.alias,
                f"gha-dispatch-workflow: no run of {wanted.workflow} appeared within {wanted.timeout:g} s",
            )
        return _waiting(wanted, asked, lost)


def _found(run: RunId) -> StepResult:
    return StepResult(output={"runID": run})


def _waiting(wanted: Config, asked: datetime, lost: str = "") -> StepResult:
    # From here on the journal knows that it was asked for, so that no later pass asks again.
    return StepResult(
        StepStatus.RUNNING,
        message=f"waiting for the run of {wanted.workflow} to appear",
        retry_after=_SOON,
        detail={_ASKED: asked.isoformat(), _LOST: lost},
    )


def _unknown(wanted: Config, why: str) -> StepResult:
    return StepResult(
        StepStatus.ERRORED,
        message=f"outcome unknown: {wanted.workflow} may run already ({why}). Look at its runs, then say /retry to "
        "ask for another one",
    )
