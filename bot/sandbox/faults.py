"""Fault switches: what a sandbox server does wrong on request, set from Python or over HTTP."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.sandbox.serving import is_same_origin

CONTROL = "/_sandbox/"
"""Paths that no fault touches, so that a fault can be switched off again."""


@dataclass(frozen=True, slots=True)
class Faults:
    """What every server can do wrong; the default is nothing.

    `down` answers 503 to all. `status` answers that status instead of the real answer, with `retry_after` seconds in
    `Retry-After` when it is not negative. `slow` waits that many seconds first. `times` limits `down` and `status` to
    so many requests (0: until changed). `path` limits everything to paths that contain it.
    """

    down: bool = False
    status: int = 0
    retry_after: int = -1
    slow: float = 0.0
    times: int = 0
    path: str = ""


F = TypeVar("F", bound=Faults)


def read_faults(kind: type[F], body: object) -> F:
    """The switches that a JSON object sets, all others off.

    Raises ValueError with one sentence when a name is unknown or a value has the wrong type.
    """
    if not isinstance(body, dict):
        raise ValueError("the faults must be a JSON object")
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    if unknown := sorted(set(map(str, body)) - set(defaults)):
        raise ValueError(f"unknown fault {', '.join(unknown)}; known are {', '.join(defaults)}")
    values: dict[str, Any] = {}
    for name, value in body.items():
        wanted = type(defaults[name])
        if wanted is tuple and isinstance(value, list) and all(isinstance(item, str) for item in value):
            value = tuple(value)
        if wanted is float and type(value) is int:
            value = float(value)
        if type(value) is not wanted:
            shown = "list of strings" if wanted is tuple else wanted.__name__
            raise ValueError(f"fault {name} must be a {shown}, not {json.dumps(value)}")
        values[name] = value
    return dataclasses.replace(kind(), **values)


class FaultGate(Generic[F]):
    """ASGI middleware that holds a server's switches and carries out the common ones."""

    def __init__(self, app: ASGIApp, faults: F, unavailable: Callable[[int], Response]) -> None:
        self._app = app
        self._faults = faults
        self._left = faults.times
        self._unavailable = unavailable

    @property
    def faults(self) -> F:
        """The switches in force."""
        return self._faults

    @faults.setter
    def faults(self, faults: F) -> None:
        self._faults = faults
        self._left = faults.times

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer in place of the server when a switch says so."""
        path = scope.get("path", "")
        faults = self._faults
        if scope["type"] != "http" or path.startswith(CONTROL) or faults.path not in path:
            await self._app(scope, receive, send)
            return
        if faults.slow:
            await asyncio.sleep(faults.slow)
        status = 503 if faults.down else faults.status
        if not status or (faults.times and self._left <= 0):
            await self._app(scope, receive, send)
            return
        self._left -= 1
        response = self._unavailable(status)
        if faults.retry_after >= 0:
            response.headers["Retry-After"] = str(faults.retry_after)
        await response(scope, receive, send)

    async def endpoint(self, request: Request) -> Response:
        """`GET` shows the switches, `POST` sets them (those not named are off), `DELETE` clears them."""
        if not is_same_origin(request):
            return JSONResponse({"message": "faults are not for other sites' pages"}, status_code=403)
        if request.method == "POST":
            try:
                self.faults = read_faults(type(self._faults), await request.json())
            except ValueError as error:
                return JSONResponse({"message": str(error)}, status_code=400)
        elif request.method == "DELETE":
            self.faults = type(self._faults)()
        return JSONResponse(dataclasses.asdict(self._faults))
