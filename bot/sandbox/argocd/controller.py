"""The application controller: comparing, syncing and health, each in its own time as in the real one.

The order that clients get wrong is kept: an operation ends (`Succeeded`) while sync status and health are still those
of before; a later comparison shows the new revision and `Progressing`; `Healthy` comes when the rollout is over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final

from bot.sandbox.argocd import objects
from bot.sandbox.argocd.comparison import Loaded, Loader
from bot.sandbox.argocd.errors import ApiError, Code
from bot.sandbox.argocd.images import ImagePuller
from bot.sandbox.argocd.sources import SourceError
from bot.sandbox.argocd.store import Store, Tracked, now
from bot.sandbox.faults import Faults

REFRESH: Final = "argocd.argoproj.io/refresh"


@dataclass(frozen=True, slots=True)
class Timing:
    """How many seconds things take; the defaults suit somebody who watches.

    `interval`: between two comparisons. `queue`: until an operation starts. `operation`: how long it runs. `stale`:
    from its end to the comparison after it. `momentary`: how long health stays good although that comparison was made.
    `rollout`: how long it is Progressing then. `deadline`: how long a refresh may block.
    """

    interval: float = 180.0
    queue: float = 0.3
    operation: float = 1.5
    stale: float = 1.5
    momentary: float = 0.0
    rollout: float = 4.0
    deadline: float = 60.0


QUICK: Final = Timing(interval=30.0, queue=0.05, operation=0.1, stale=0.2, rollout=0.3)
"""For tests that run the whole road: the order of events is kept, a rollout takes well under a second."""


@dataclass(frozen=True, slots=True)
class ArgoFaults(Faults):
    """Switches beside the common ones; each tuple names Applications, `*` names all.

    `sync_fails`: operations end Failed. `degraded`, `suspended`, `progressing`: health is that, whatever runs.
    `blocked`: a sync window denies. `slow_refresh`, `slow_sync`: so many seconds more.
    """

    sync_fails: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    suspended: tuple[str, ...] = ()
    progressing: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    slow_refresh: float = 0.0
    slow_sync: float = 0.0


def is_named(names: tuple[str, ...], tracked: Tracked) -> bool:
    """Whether a switch is on for an Application."""
    return "*" in names or tracked.name in names


def is_automated(tracked: Tracked) -> bool:
    """Whether Argo CD syncs the Application by itself."""
    automated = (tracked.app["spec"].get("syncPolicy") or {}).get("automated")
    return automated is not None and automated.get("enabled", True)


class Controller:
    """Drives every Application of a store."""

    def __init__(self, store: Store, loader: Loader, timing: Timing) -> None:
        self._store = store
        self._loader = loader
        self._timing = timing
        self._puller = ImagePuller()
        self._tasks: set[asyncio.Task[None]] = set()
        self._rollouts: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._terminated: dict[tuple[str, str], asyncio.Event] = {}
        self._running = False
        self.faults = ArgoFaults()

    def start(self) -> None:
        """Compare everything now and then in intervals; go on with operations that a stop interrupted."""
        self._running = True
        for tracked in self._store.all():
            if "operation" in tracked.app:
                self._spawn(self._operate(tracked))
        self._spawn(self._loop())

    async def stop(self) -> None:
        """End all work; a queued or running operation stays on disk and goes on after the next start."""
        self._running = False
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._running

    async def sync_latest(self, tracked: Tracked) -> None:
        """Sync to what the Application follows, as an administrator does; FAILED_PRECONDITION if it cannot be."""
        try:
            revisions = await self._loader.resolve(tracked)
        except SourceError as error:
            raise ApiError(Code.FAILED_PRECONDITION, str(error)) from error
        self.set_operation(
            tracked, objects.sync_operation(revisions, multi=tracked.is_multi_source, username="admin")
        )

    def compare_soon(self, tracked: Tracked, *, delay: float = 0.0) -> None:
        """Compare an Application after a delay."""
        self._spawn(self._compare_later(tracked, delay))

    def compare_all(self) -> None:
        """Compare every Application soon, as after a change in the cluster."""
        for tracked in self._store.all():
            self.compare_soon(tracked)

    async def refresh(self, tracked: Tracked, kind: str) -> None:
        """Annotate, compare, return when the annotation is gone again; UNKNOWN after the deadline."""
        annotations = tracked.app["metadata"].setdefault("annotations", {})
        annotations[REFRESH] = "hard" if kind == "hard" else "normal"
        self._store.save(tracked)
        try:
            async with asyncio.timeout(self._timing.deadline):
                await asyncio.sleep(self.faults.slow_refresh)
                await self.compare(tracked)
        except TimeoutError as error:
            raise ApiError(Code.UNKNOWN, "application refresh deadline exceeded") from error

    def set_operation(self, tracked: Tracked, operation: dict[str, Any]) -> None:
        """Queue an operation; FAILED_PRECONDITION while another one is queued or runs."""
        if "operation" in tracked.app:
            raise ApiError(Code.FAILED_PRECONDITION, "another operation is already in progress")
        tracked.app["operation"] = operation
        tracked.app["status"].pop("operationState", None)
        self._store.save(tracked)
        self._spawn(self._operate(tracked))

    def terminate(self, tracked: Tracked) -> None:
        """Ask the running operation to end; INVALID_ARGUMENT when none runs."""
        state = tracked.app["status"].get("operationState")
        if "operation" not in tracked.app or state is None:
            raise ApiError(
                Code.INVALID_ARGUMENT, "Unable to terminate operation. No operation is in progress"
            )
        state["phase"] = "Terminating"
        self._store.save(tracked)
        self._stop_event(tracked).set()

    async def install(self, tracked: Tracked) -> None:
        """Make what its sources say now live, Synced and Healthy, without waiting for anything.

        Raises SourceError when they cannot be read.
        """
        loaded = await self._loader.load(tracked, await self._loader.resolve(tracked))
        operation = objects.sync_operation(loaded.revisions, multi=tracked.is_multi_source, username="admin")
        tracked.app["status"]["operationState"] = objects.operation_state(operation, now())
        self._finish(tracked, loaded)
        tracked.starts = tracked.ends = 0.0
        await self.compare(tracked)

    async def compare(self, tracked: Tracked) -> None:
        """Compare desired with live state; write down sync status, health, conditions and when."""
        async with tracked.lock:
            started, live, loaded = now(), tracked.live, await self._loader.load_latest(tracked)
            health = await self._health(tracked)
            if live is not tracked.live:
                # An operation ended meanwhile: what was read before belongs to the state of before.
                self.compare_soon(tracked, delay=self._timing.stale)
            elif self._store.find(tracked.namespace, tracked.name) is tracked:
                self._write_comparison(tracked, loaded, health)
                tracked.app["status"]["reconciledAt"] = started
            tracked.app["metadata"].get("annotations", {}).pop(REFRESH, None)
            self._store.save(tracked)
        self._sync_if_automated(tracked, loaded)

    def _write_comparison(self, tracked: Tracked, loaded: Loaded, health: tuple[str, str]) -> None:
        status = tracked.app["status"]
        if loaded.desired is None:
            code = "Unknown"
            status["conditions"] = objects.conditions(status, "ComparisonError", loaded.problem)
        else:
            code = "Synced" if loaded.desired == tracked.live else "OutOfSync"
            status.pop("conditions", None)
        status["sync"] = objects.sync_status(tracked, code, loaded.revisions)
        objects.set_health(status, *health)
        objects.describe_resources(tracked, code)

    async def _health(self, tracked: Tracked) -> tuple[str, str]:
        live = tracked.live
        if live is None:
            return "Missing", ""
        name = tracked.name
        for names, code, message in (
            (self.faults.degraded, "Degraded", f'Deployment "{name}" exceeded its progress deadline'),
            (self.faults.suspended, "Suspended", "Rollout is paused"),
            (self.faults.progressing, "Progressing", "Waiting for rollout to finish"),
        ):
            if is_named(names, tracked):
                return code, message
        moment = time.time()
        if moment < tracked.starts:
            before = tracked.app["status"]["health"]
            return before["status"], before.get("message", "")
        if moment < tracked.ends:
            self._wake_after_rollout(tracked)
            return "Progressing", "Waiting for rollout to finish: 1 old replicas are pending termination..."
        if tracked.pulled != live.digest:
            for image in live.images:
                if problem := await self._puller.find_problem(image):
                    return "Degraded", problem
            # Nodes keep what they have pulled, so a registry that fails later harms nothing that runs.
            tracked.pulled = live.digest
        return "Healthy", ""

    def _wake_after_rollout(self, tracked: Tracked) -> None:
        key = (tracked.namespace, tracked.name)
        waiting = self._rollouts.get(key)
        if waiting is None or waiting.done():
            delay = max(tracked.ends - time.time(), 0.0) + 0.01
            self._rollouts[key] = self._spawn(self._compare_later(tracked, delay))

    def _sync_if_automated(self, tracked: Tracked, loaded: Loaded) -> None:
        status = tracked.app["status"]
        wanted = (
            is_automated(tracked)
            and status["sync"]["status"] == "OutOfSync"
            and "operation" not in tracked.app
        )
        if not wanted or is_named(self.faults.blocked, tracked):
            return
        last = status.get("operationState")
        if last is not None and objects.operation_revisions(last["operation"]) == loaded.revisions:
            # The same commit is not tried twice; a person or a newer commit must come.
            return
        operation = objects.sync_operation(loaded.revisions, multi=tracked.is_multi_source, automated=True)
        self.set_operation(tracked, operation)

    async def _operate(self, tracked: Tracked) -> None:
        operation, status = tracked.app["operation"], tracked.app["status"]
        await asyncio.sleep(self._timing.queue)
        if "operationState" not in status:
            status["operationState"] = objects.operation_state(operation, now())
            self._store.save(tracked)
        loaded = await self._loader.load(
            tracked, objects.operation_revisions(operation), objects.operation_sources(operation)
        )
        limit = int((operation.get("retry") or {}).get("limit", 0))
        while True:
            await self._run_or_terminate(tracked)
            state = status["operationState"]
            failing = is_named(self.faults.sync_fails, tracked) and state["phase"] == "Running"
            if not failing or state.get("retryCount", 0) >= limit:
                break
            state["retryCount"] = state.get("retryCount", 0) + 1
            state["message"] = f"one or more objects failed to apply. Retrying attempt #{state['retryCount']}"
            self._store.save(tracked)
        self._finish(tracked, loaded)
        del tracked.app["operation"]
        self._store.save(tracked)
        self.compare_soon(tracked, delay=self._timing.stale + self._timing.momentary)
        if self._timing.momentary:
            self.compare_soon(tracked, delay=self._timing.stale)

    async def _run_or_terminate(self, tracked: Tracked) -> None:
        event = self._stop_event(tracked)
        if tracked.app["status"]["operationState"]["phase"] == "Terminating":
            event.set()
        try:
            async with asyncio.timeout(self._timing.operation + self.faults.slow_sync):
                await event.wait()
        except TimeoutError:
            return
        event.clear()

    def _finish(self, tracked: Tracked, loaded: Loaded) -> None:
        """Write down how an operation ended and, if it succeeded, change the cluster."""
        state = tracked.app["status"]["operationState"]
        dry_run = state["operation"]["sync"].get("dryRun", False)
        outcome, message = "Synced", "configured"
        if state["phase"] == "Terminating":
            state["phase"], state["message"] = "Failed", "Operation terminated"
        elif loaded.desired is None:
            state["phase"], state["message"] = "Error", f"ComparisonError: {loaded.problem}"
        elif is_named(self.faults.sync_fails, tracked):
            outcome, message = (
                "SyncFailed",
                f'Deployment.apps "{tracked.name}" is invalid: spec.template: Required value',
            )
            state["phase"], state["message"] = (
                "Failed",
                f"one or more objects failed to apply, reason: {message}",
            )
        else:
            state["phase"], state["message"] = "Succeeded", "successfully synced (all tasks run)"
            if not dry_run:
                self._change_cluster(tracked, loaded)
        state["syncResult"] = objects.sync_result(tracked, loaded.revisions, outcome, message)
        state["finishedAt"] = now()
        if state["phase"] == "Succeeded" and not dry_run:
            objects.add_history(tracked, loaded.revisions, state["operation"], state["startedAt"])

    def _change_cluster(self, tracked: Tracked, loaded: Loaded) -> None:
        if loaded.desired == tracked.live:
            return
        tracked.live = loaded.desired
        timing = self._timing
        tracked.starts = time.time() + (timing.stale + timing.momentary if timing.momentary else 0.0)
        tracked.ends = max(tracked.starts, time.time() + timing.stale) + timing.rollout

    def _stop_event(self, tracked: Tracked) -> asyncio.Event:
        return self._terminated.setdefault((tracked.namespace, tracked.name), asyncio.Event())

    async def _loop(self) -> None:
        while True:
            for tracked in self._store.all():
                await self.compare(tracked)
            await asyncio.sleep(self._timing.interval)

    async def _compare_later(self, tracked: Tracked, delay: float) -> None:
        await asyncio.sleep(delay)
        await self.compare(tracked)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        # A task that failed stays, so that `stop` raises what went wrong.
        if task.cancelled() or task.exception() is None:
            self._tasks.discard(task)
