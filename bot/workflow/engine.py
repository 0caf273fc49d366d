"""Durable execution: named work that is done once, one at a time per key, and taken up again after a crash.

This is the only module that knows dbos. It is used as a queue with recovery: one unit of work is one workflow with
one step, and what the work has done so far is told by our own tables, which every unit reads before it acts. So a
unit may run twice, and a half-done one goes on where its records end.
"""

from __future__ import annotations

import asyncio
import contextvars
import fcntl
import json
import logging
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from dbos import DBOS, DBOSConfig, Serializer, SetEnqueueOptions, SetWorkflowID, _serialization

from bot.ports import TerminalError, TransientError
from bot.workflow.liveness import Liveness

WORKFLOW_VERSION = "1"
"""Pinned, so that new code takes up the work of old code; raised only when old work cannot be taken up."""

LOOKS = "looks"
SEGMENTS = "segments"

_CONNECTION = {
    "application_name": "lockstep engine",
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""On PostgreSQL; a server that is gone without a word is noticed within half a minute."""

log = logging.getLogger(__name__)

Handler = Callable[[str], Awaitable[None]]
"""What does one kind of work; its argument is a text of the caller's."""


class JsonSerializer(Serializer):
    """JSON in dbos's journal; nothing is ever unpickled."""

    def name(self) -> str:
        """What rows are tagged with."""
        return "lockstep_json_1"

    def serialize(self, data: Any) -> str:
        """JSON text; an error is kept as its type and message."""
        return json.dumps(data, default=_encode_error, separators=(",", ":"))

    def deserialize(self, serialized_data: str) -> Any:
        """What `serialize` was given; errors come back as RuntimeError."""
        return json.loads(serialized_data, object_hook=_decode_error)


def _encode_error(value: object) -> object:
    if isinstance(value, BaseException):
        return {"$error": f"{type(value).__name__}: {value}"}
    raise TypeError(f"{type(value).__name__} cannot be journaled")


def _decode_error(value: dict[str, Any]) -> object:
    return RuntimeError(value["$error"]) if set(value) == {"$error"} else value


def _refuse_pickle(_self: object, _data: str) -> Any:
    raise ValueError("pickled rows are refused: whoever can write the database could run code")


_handlers: dict[str, Handler] = {}
_draining = asyncio.Event()
_running: set[asyncio.Task[Any]] = set()

_DRAIN = 10.0
"""Seconds that running work gets to end by itself when the engine stops."""

_ENDED = ("SUCCESS", "ERROR", "CANCELLED")
_FORGOTTEN_AT_ONCE = 200

_RETRIES = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Pauses between the tries of work that the database cut short, in seconds."""


@DBOS.workflow(name="lockstep_work")
async def _work(kind: str, argument: str) -> None:
    await DBOS.run_step_async({"name": kind}, _step, kind, argument)


async def _step(kind: str, argument: str) -> None:
    """The worker: whatever a handler lets rise is our bug; it is logged, and the next look tries again."""
    for pause in (0.0, *_RETRIES):
        await asyncio.sleep(pause)
        if _draining.is_set():
            # Parked: the row stays pending and is taken up by the next process.
            await asyncio.Event().wait()
        try:
            return await _handle(kind, argument)
        except TransientError as error:
            # Handlers deal with the world themselves; this was the database, which may be back in a moment.
            log.warning("work was cut short", extra={"kind": kind, "argument": argument, "error": str(error)})
        except Exception:
            log.exception("work failed", extra={"kind": kind, "argument": argument})
            return None
    log.error("work was given up", extra={"kind": kind, "argument": argument})
    return None


async def _handle(kind: str, argument: str) -> None:
    task = asyncio.current_task()
    assert task is not None
    _running.add(task)
    try:
        await _handlers[kind](argument)
    finally:
        _running.discard(task)


@dataclass(slots=True)
class Engine:
    """The running engine; make one with `start`."""

    guard: IO[str] | Liveness
    watch: asyncio.Task[None] | None = None

    @property
    def leads(self) -> bool:
        """Whether this replica does what only one of all may do at a time; alone on SQLite it always does."""
        return not isinstance(self.guard, Liveness) or self.guard.leads

    async def submit(self, queue: str, kind: str, argument: str, *, work_id: str, key: str) -> None:
        """Have work done once under this id, alone among the work of its key. Durable when it returns."""

        async def enqueue() -> None:
            with SetWorkflowID(work_id), SetEnqueueOptions(queue_partition_key=key):
                await DBOS.enqueue_workflow_async(queue, _work, kind, argument)

        # Work may ask for other work; in the context of a running step dbos would take it for a child.
        await asyncio.get_running_loop().create_task(enqueue(), context=contextvars.Context())

    async def is_finished(self, work_id: str) -> bool:
        """Whether work of that id has ended, however it ended."""

        async def ask() -> Any:
            return await DBOS.get_workflow_status_async(work_id)

        status = await asyncio.get_running_loop().create_task(ask(), context=contextvars.Context())
        return status is not None and status.status in _ENDED

    async def forget(self, before: datetime) -> int:
        """Forget a batch of work that ended before that time; the answer is how much."""

        async def forget() -> int:
            found = await DBOS.list_workflows_async(
                status=list(_ENDED),
                completed_before=before.isoformat(),
                limit=_FORGOTTEN_AT_ONCE,
                load_input=False,
                load_output=False,
            )
            await DBOS.delete_workflows_async([item.workflow_id for item in found])
            return len(found)

        return await asyncio.get_running_loop().create_task(forget(), context=contextvars.Context())

    async def stop(self) -> None:
        """Let running work end its step, start no more, and leave. What is unfinished is taken up by others."""
        _draining.set()
        if _running:
            await asyncio.wait(_running, timeout=_DRAIN)
        await asyncio.to_thread(DBOS.destroy, workflow_completion_timeout_sec=5)
        # Nobody may take over what still runs here, so the guard goes last.
        left = [*_running, *([self.watch] if self.watch is not None else [])]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self.guard.close()


async def start(
    url: str,
    handlers: Mapping[str, Handler],
    *,
    executor: str,
    on_lost: Callable[[str], None],
    poll: float = 0.1,
) -> Engine:
    """Start the engine on a database and take up what a dead process left.

    On PostgreSQL several replicas may run, each as an executor of its own name. `on_lost` gets the reason when this
    one can no longer know that its work is its own: it must end what it does to the world, and its process.

    Raises TerminalError if another process works on the same SQLite file, or as the same executor.
    """
    _serialization.DefaultSerializer.deserialize = _refuse_pickle  # type: ignore[method-assign, assignment]
    _handlers.clear()
    _handlers.update(handlers)
    _draining.clear()
    if url.startswith("sqlite:///"):
        alone = lock_sqlite(Path(url.removeprefix("sqlite:///")))
        await _launch(url, executor, poll)
        return Engine(alone)
    guard = Liveness(url, executor, _recover)
    try:
        await guard.acquire()
        await _launch(url, executor, poll)
        await guard.launched()
    except BaseException:
        guard.close()
        raise
    return Engine(guard, asyncio.create_task(_watch(guard, on_lost)))


async def _launch(url: str, executor: str, poll: float) -> None:
    sqlite = url.startswith("sqlite:///")
    DBOS(
        config=DBOSConfig(
            name="lockstep",
            system_database_url=url,
            application_version=WORKFLOW_VERSION,
            executor_id=executor,
            serializer=JsonSerializer(),
            log_level="WARNING",
            enable_otlp=False,
            max_executor_threads=16,
            sys_db_pool_size=8,
            db_engine_kwargs={} if sqlite else {"connect_args": _CONNECTION},
        )
    )
    DBOS.launch()
    for queue in (LOOKS, SEGMENTS):
        await DBOS.register_queue_async(
            queue, partition_concurrency=1, polling_interval_sec=poll, on_conflict="always_update"
        )


async def _watch(guard: Liveness, on_lost: Callable[[str], None]) -> None:
    reason = "the watch over this replica's lock ended; see the log"
    try:
        reason = await guard.watch()
    except asyncio.CancelledError:
        reason = ""
        raise
    finally:
        if reason:
            log.critical("this replica is lost: %s", reason, exc_info=sys.exc_info()[0] is not None)
            # What is running may be another's by now; nothing new is begun.
            _draining.set()
            on_lost(reason)


def _recover(executor: str) -> int:
    """Queue again what a dead executor was at; the answer is how much. Doing it twice changes nothing."""
    return len(DBOS._recover_pending_workflows([executor]))


def lock_sqlite(path: Path) -> IO[str]:
    """Make sure that we are alone on the file, and that readers do not block writers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    guard = path.with_name(path.name + ".lock").open("a+")
    try:
        fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        guard.close()
        raise TerminalError(
            f"another process works on {path}; stop it, or use PostgreSQL for several"
        ) from error
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    return guard
