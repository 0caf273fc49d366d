"""`TerraformRunner`: the port `Terraform` on the real binary.

Every run gets fresh directories, an environment of its own and, unless isolation is switched off, Landlock. Outcomes
are told by exit codes and by the JSON that Terraform writes, never by its prose.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from bot.adapters.terraform.bundle import Bundle, open_bundle, seal_bundle
from bot.adapters.terraform.masking import Concealment, mark_outputs, mask_names, masks_of, withhold
from bot.adapters.terraform.process import Stop
from bot.adapters.terraform.rescue import Rescue
from bot.adapters.terraform.session import Opening, Session, open_session, run_directory, sweep_runs
from bot.adapters.terraform.sources import find_ephemeral_variables, find_resource_lines, line_of
from bot.adapters.terraform.stream import JsonLog, Reason, bounded
from bot.adapters.terraform.tool import Tool, Version, read_version
from bot.adapters.terraform.tree import LOCK_FILE, is_made_by_planning, write_files
from bot.domain.files import File
from bot.domain.plan_data import UnreadablePlan, read_plan
from bot.domain.plan_digest import PlanFacts, combine_parts, plan_parts, without_secrets
from bot.domain.terraform import (
    Applied,
    ApplyOutcome,
    Diagnostic,
    Failed,
    Interrupted,
    OutputOutcome,
    Plan,
    Planned,
    PlanOutcome,
    StalePlan,
    StateLocked,
)
from bot.domain.values import Json
from bot.ports import TerraformRun, Vault

_PLAN_TEXT_LIMIT = 4 * 1024 * 1024


class TerraformRunner:
    """The port `Terraform`; `data` is the directory of runs, the same path on every replica.

    `on_line` gets the key of a run and each masked line of its log as it is written.
    """

    def __init__(
        self,
        data: Path,
        vault: Vault,
        tool: Tool,
        *,
        on_line: Callable[[str, str], None] | None = None,
    ) -> None:
        self._data = data.absolute()
        self._vault = vault
        # Terraform reads its configuration in another directory than this process is in.
        self._tool = replace(
            tool,
            mirror=tool.mirror.absolute() if tool.mirror is not None else None,
            cache=tool.cache.absolute() if tool.cache is not None else None,
        )
        self._on_line = on_line
        self._versions: dict[tuple[str, int], Version] = {}
        self._stops: dict[Stop, str] = {}
        self._begun = dict.fromkeys(("plan", "apply", "output"), 0)

    # -- the port --------------------------------------------------------------------------------------------

    async def version(self) -> str:
        """See `Terraform.version`."""
        return str(await self._version())

    async def plan(self, run: TerraformRun) -> PlanOutcome:
        """See `Terraform.plan`."""
        stop = self._new_stop(run.key, "plan")
        try:
            async with open_session(run, await self._opening(run, stop)) as session:
                return await self._plan(session)
        finally:
            del self._stops[stop]

    async def apply(self, run: TerraformRun, bundle: bytes) -> ApplyOutcome:
        """See `Terraform.apply`; the state is always locked, whatever the run says."""
        saved = open_bundle(bundle, run.key, self._vault)
        version = str(await self._version())
        if saved.version != version:
            return StalePlan(f"the plan was made by {saved.version}, but this is {version}")
        if saved.directory != run.directory:
            return StalePlan(f"the plan was made in {saved.directory!r}, not in {run.directory!r}")
        stop = self._new_stop(run.key, "apply")
        try:
            async with open_session(run, await self._opening(run, stop)) as session:
                return await self._apply(session, saved)
        finally:
            del self._stops[stop]

    async def output(self, run: TerraformRun) -> OutputOutcome:
        """See `Terraform.output`; an output that holds one of the run's secrets is marked sensitive."""
        stop = self._new_stop(run.key, "output")
        try:
            async with open_session(run, await self._opening(run, stop)) as session:
                return await self._output(session)
        finally:
            del self._stops[stop]

    # -- from outside ----------------------------------------------------------------------------------------

    def interrupt(self, key: str, reason: str) -> bool:
        """Ask the runs of a key to end in good order; False if there are none. They answer `Interrupted`."""
        stops = [stop for stop, its_key in self._stops.items() if its_key == key]
        for stop in stops:
            stop.ask(reason)
        return bool(stops)

    def interrupt_all(self, reason: str) -> int:
        """Ask all runs to end in good order, as before a shutdown; gives their number."""
        for stop in self._stops:
            stop.ask(reason)
        return len(self._stops)

    @property
    def running(self) -> int:
        """How many runs are under way."""
        return len(self._stops)

    @property
    def begun(self) -> Mapping[str, int]:
        """How many plans, applies and readings of outputs were begun since the start."""
        return dict(self._begun)

    async def sweep(self) -> None:
        """Clear what runs of a bot that was killed left on disk; for the start, before anything else runs."""
        await sweep_runs(self._data, self._vault)

    def read_rescued(self, key: str, file: Path) -> bytes:
        """A state that an apply of `key` left behind and that is kept, encrypted, in `file`."""
        return Rescue(self._data, run_directory(self._data, key), key, self._vault).open(file)

    # -- plan ------------------------------------------------------------------------------------------------

    async def _plan(self, session: Session) -> PlanOutcome:
        init = await session.init()
        if init.stopped:
            return Interrupted(init.stopped)
        if init.code != 0:
            return _failed(session)
        planned = await session.command(
            "plan",
            f"-out={session.place.plan}",
            "-detailed-exitcode",
            "-json",
            "-input=false",
            *_lock_arguments(session.run),
            *session.variable_arguments(),
            streaming=True,
        )
        if planned.stopped:
            return Interrupted(planned.stopped)
        if planned.code not in (0, 2):
            return _failed_to_lock(session) or _failed(session)
        return await self._read(session)

    async def _read(self, session: Session) -> PlanOutcome:
        shown = await session.command("show", "-json", "-no-color", str(session.place.plan))
        human = await session.command("show", "-no-color", str(session.place.plan))
        for ended in (shown, human):
            if ended.stopped:
                return Interrupted(ended.stopped)
            if ended.code != 0:
                return _failed(session)
        document = cast(Json, await asyncio.to_thread(json.loads, shown.output))
        text = human.output.decode("utf-8", "replace").strip("\n")
        try:
            plan = await asyncio.to_thread(self._read_plan, session, document, text)
        except UnreadablePlan as error:
            return Failed((Diagnostic("error", f"The plan cannot be used: {error}"),), session.log.text)
        state = session.state_path()
        made = await session.changed(lambda path: path != state and is_made_by_planning(path))
        bundle = Bundle(str(session.version), session.run.directory, session.place.plan.read_bytes(), made)
        sealed = await asyncio.to_thread(seal_bundle, bundle, session.run.key, self._vault)
        return await asyncio.to_thread(self._mask_plan, session.run, plan, text, sealed)

    def _mask_plan(self, run: TerraformRun, plan: Plan, text: str, sealed: bytes) -> Planned:
        masks = masks_of(run, plan)
        kept = without_secrets(plan, self._vault.digest)
        if masks is None:
            text = "The text of the plan is withheld, since it cannot be masked: a mask is not valid."
            return Planned(withhold(kept), text, sealed)
        return Planned(kept, bounded(masks(text), _PLAN_TEXT_LIMIT), sealed)

    def _read_plan(self, session: Session, document: Json, text: str) -> Plan:
        run = session.run
        plan = read_plan(
            document, conceal=Concealment(session.masks, run.masks), result=_result(session.log, text)
        )
        backend, config = session.read_backend()
        lock_file = session.directory / LOCK_FILE
        facts = PlanFacts(
            backend=[backend, config],
            workspace=session.environment.get("TF_WORKSPACE") or "default",
            lock_file=hashlib.sha256(lock_file.read_bytes()).hexdigest() if lock_file.is_file() else "",
            version=str(session.version),
            ephemeral=find_ephemeral_variables(run.files, run.directory),
        )
        parts = plan_parts(plan, document, facts, self._vault.digest)
        lines = find_resource_lines(run.files, run.directory)
        places = {change.address: line_of(change.address, lines) for change in (*plan.resources, *plan.drift)}
        plan = replace(
            plan,
            parts=parts,
            version=str(session.version),
            backend=backend,
            state_in_tree=bool(session.state_path()),
            resource_lines={address: place for address, place in places.items() if place is not None},
        )
        plan = mask_names(plan, session.masks)
        return replace(plan, digest=combine_parts(plan.parts, self._vault.digest))

    # -- apply and output ------------------------------------------------------------------------------------

    async def _apply(self, session: Session, saved: Bundle) -> ApplyOutcome:
        await asyncio.to_thread(_restore, session, saved)
        init = await session.init()
        if init.stopped:
            return Interrupted(init.stopped)
        if init.code != 0:
            return _failed(session)
        state = session.state_path()
        errored = posixpath.join(session.run.directory.strip("/"), "errored.tfstate")
        await asyncio.to_thread(session.rescue.begin, session.place.work, state, errored)
        again = session.variable_arguments() if session.version.takes_variables_at_apply else []
        applied = await session.command(
            "apply",
            "-json",
            "-input=false",
            f"-lock-timeout={session.run.lock_timeout:g}s",
            *again,
            str(session.place.plan),
            streaming=True,
        )
        states = await session.changed(lambda path: path == state) if state else {}
        kept = await asyncio.to_thread(session.rescue.end, session.place.work)
        if applied.stopped:
            return Interrupted(applied.stopped, partial=True, state_files=states)
        if applied.code == 0:
            return Applied(session.log.summary, session.log.text, states)
        return self._apply_failed(session, states, kept)

    def _apply_failed(
        self, session: Session, states: Mapping[str, File], kept: Sequence[Path]
    ) -> ApplyOutcome:
        locked = _failed_to_lock(session)
        if locked is not None:
            return locked
        log = session.log
        if log.reason is Reason.STALE and not log.changing:
            return StalePlan(
                next((d.summary for d in log.diagnostics if d.severity == "error"), "the plan is stale")
            )
        diagnostics = (*_failed(session).diagnostics, *map(_unsaved, kept))
        # A command that ended without a word of its own may have done anything.
        silent = not any(d.severity == "error" for d in log.diagnostics)
        partial = log.changing or log.reason is Reason.UNSAVED or silent or bool(kept)
        return Failed(diagnostics, log.text, partial=partial, state_files=states)

    async def _output(self, session: Session) -> OutputOutcome:
        init = await session.init()
        if init.stopped:
            return Interrupted(init.stopped)
        if init.code != 0:
            return _failed(session)
        read = await session.command("output", "-json", "-no-color")
        if read.stopped:
            return Interrupted(read.stopped)
        if read.code != 0:
            return _failed_to_lock(session) or _failed(session)
        return mark_outputs(json.loads(read.output), session.masks)

    # -- how a run is opened ---------------------------------------------------------------------------------

    async def _opening(self, run: TerraformRun, stop: Stop) -> Opening:
        show: Callable[[str], None] | None = None
        if self._on_line is not None:
            on_line, key = self._on_line, run.key

            def show(text: str) -> None:
                on_line(key, text)

        return Opening(self._data, self._tool, await self._version(), masks_of(run), stop, show, self._vault)

    def _new_stop(self, key: str, operation: str) -> Stop:
        self._begun[operation] += 1
        stop = Stop()
        self._stops[stop] = key
        return stop

    async def _version(self) -> Version:
        binary = self._tool.find()
        seen = (str(binary), binary.stat().st_mtime_ns)
        if seen not in self._versions:
            scratch = self._data / "version"
            scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._versions[seen] = await read_version(self._tool, scratch)
        return self._versions[seen]


def _lock_arguments(run: TerraformRun) -> list[str]:
    return [f"-lock-timeout={run.lock_timeout:g}s"] if run.lock else ["-lock=false"]


def _failed(session: Session) -> Failed:
    return Failed(tuple(session.log.errors(str(session.version))), session.log.text)


def _failed_to_lock(session: Session) -> StateLocked | None:
    return StateLocked(session.log.lock(session.begun)) if session.log.reason is Reason.LOCKED else None


def _result(log: JsonLog, text: str) -> str:
    """Terraform's closing sentence; the JSON has none for a plan without changes or with outputs alone."""
    if log.summary and log.summary != "Plan: 0 to add, 0 to change, 0 to destroy.":
        return log.summary
    found = re.search(
        r"^(No changes\. .*|You can apply this plan to save these new output values.*(?:\n.+)*)", text, re.M
    )
    return " ".join(found[0].split()) if found else log.summary


def _unsaved(file: Path) -> Diagnostic:
    return Diagnostic(
        "error",
        "The new state could not be saved to the backend",
        f"It is kept, encrypted, in {file}. Put it where the state belongs before anything else is run there.",
    )


def _restore(session: Session, saved: Bundle) -> None:
    fresh = {path: file for path, file in saved.files.items() if session.run.files.get(path) != file}
    write_files(session.place.work, fresh)
    session.place.plan.write_bytes(saved.plan)
