"""Sending stored deliveries to the Apps' webhook URLs: in order per App, signed, never repeated unasked."""

import asyncio
import contextlib
import functools
import hashlib
import hmac
import time
from dataclasses import replace

import httpx

from bot.sandbox.github.accounts import App
from bot.sandbox.github.faults import Faults, WebhookFault
from bot.sandbox.github.records import Delivery, Json
from bot.sandbox.github.threads import in_thread
from bot.sandbox.github.world import BASE_MARK, World

TIMEOUT = 10.0
# GitHub delivers nothing that is bigger.
LARGEST_PAYLOAD = 25 * 1024 * 1024
# The fault "reordered" lets later deliveries pass for this long, in seconds.
REORDER_DELAY = 0.5
IDLE = 3600.0


def with_base(text: str, base_url: str) -> str:
    """A stored payload with the server's present URL in its links."""
    return text.replace(BASE_MARK, base_url)


def sign(secret: str, body: bytes) -> str:
    """The value of `X-Hub-Signature-256`."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def redeliver(world: World, row: Delivery) -> Delivery:
    """Queue the delivery again under its GUID."""
    again = replace(
        row,
        id=0,
        redelivery=True,
        state="pending",
        not_before=0.0,
        status="",
        status_code=0,
        delivered_at=world.now(),
        response_headers={},
        response_body="",
    )
    made = world.store.add(again)
    world.wake()
    return made


class Deliverer:
    """The background task that sends what is pending. `run` works until it is cancelled."""

    def __init__(self, world: World, base_url: str, faults: Faults) -> None:
        self._world = world
        self._base_url = base_url
        self._faults = faults
        self._awake = asyncio.Event()
        self._busy = 0

    def wake(self) -> None:
        """Look again; to be called in the task's own event loop."""
        self._awake.set()

    @property
    def idle(self) -> bool:
        """Whether nothing is waiting to be sent and nothing is being sent."""
        return not self._busy and not self._world.store.count(Delivery, state="pending")

    async def run(self) -> None:
        """Send pending deliveries, one at a time per App, until cancelled."""
        async with (
            httpx.AsyncClient(timeout=TIMEOUT, trust_env=False) as client,
            asyncio.TaskGroup() as group,
        ):
            lines: dict[int, asyncio.Task[None]] = {}
            while True:
                self._awake.clear()
                due, pause = await in_thread(self._due)
                for app_id, rows in due.items():
                    if app_id not in lines or lines[app_id].done():
                        lines[app_id] = group.create_task(self._drain(client, rows))
                # Not `asyncio.wait_for`: before Python 3.12 it can lose a cancellation that comes as the event is set.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._awake.wait()

    def _due(self) -> tuple[dict[int, list[Delivery]], float]:
        """What is to be sent now by App, and how long until there is more if nobody wakes us."""
        now = time.time()
        due: dict[int, list[Delivery]] = {}
        pause = IDLE
        for row in self._world.store.find(Delivery, state="pending"):
            if row.not_before > now:
                pause = min(pause, row.not_before - now)
            else:
                due.setdefault(row.app_id, []).append(row)
        return due, pause

    async def _drain(self, client: httpx.AsyncClient, rows: list[Delivery]) -> None:
        self._busy += 1
        try:
            for row in rows:
                fault = None if row.not_before else self._faults.for_webhook(row.event, row.action)
                if fault is None or not await in_thread(functools.partial(self._divert, row, fault)):
                    await self._send(client, row)
        finally:
            self._busy -= 1
            self._awake.set()

    def _divert(self, row: Delivery, fault: WebhookFault) -> bool:
        """Carry out a fault; True if the delivery is not to be sent now."""
        store = self._world.store
        if fault.kind in ("late", "reordered"):
            delay = fault.delay if fault.kind == "late" else REORDER_DELAY
            store.change(row, not_before=time.time() + delay)
            return True
        if fault.kind == "lost":
            store.change(row, state="done", status="failed to connect to host", status_code=502)
            return True
        if fault.kind == "vanished":
            store.remove(row)
            return True
        store.add(replace(row, id=0, not_before=time.time()))
        return False

    async def _send(self, client: httpx.AsyncClient, row: Delivery) -> None:
        app = self._world.store.get(App, row.app_id)
        if app is None:
            self._world.store.remove(row)
            return
        body = with_base(row.payload, self._base_url).encode()
        if len(body) > LARGEST_PAYLOAD:
            self._world.store.change(row, state="lost", status="payload too large")
            return
        headers = _headers(app, row, body)
        started = time.monotonic()
        outcome: Json
        try:
            answer = await client.post(app.webhook_url, content=body, headers=headers)
            ok = answer.status_code < 400
            outcome = {
                "status": "OK" if ok else f"Invalid HTTP Response: {answer.status_code}",
                "status_code": answer.status_code,
                "response_headers": dict(answer.headers),
                "response_body": answer.text[:65536],
            }
        except httpx.TimeoutException:
            outcome = {"status": "timed out", "status_code": 0}
        except (httpx.HTTPError, httpx.InvalidURL):
            outcome = {"status": "failed to connect to host", "status_code": 502}
        outcome |= {
            "state": "done",
            "duration": time.monotonic() - started,
            "delivered_at": self._world.now(),
            "request_headers": headers,
        }
        await in_thread(lambda: self._world.store.change(row, **outcome))


def _headers(app: App, row: Delivery, body: bytes) -> dict[str, str]:
    headers = {
        "Accept": "*/*",
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/sandbox",
        "X-GitHub-Delivery": row.guid,
        "X-GitHub-Event": row.event,
        "X-GitHub-Hook-ID": str(app.id),
        "X-GitHub-Hook-Installation-Target-ID": str(app.id),
        "X-GitHub-Hook-Installation-Target-Type": "integration",
    }
    if app.webhook_secret:
        headers["X-Hub-Signature-256"] = sign(app.webhook_secret, body)
    return headers
