"""Terraform's http state backend: one state per path, with locks, old versions and a log of what was asked.

Wire format: HashiCorp's "http" backend. `GET /state/NAME` reads (404: no state yet), `POST` writes, `DELETE` removes,
`LOCK` and `UNLOCK` take and give the lock; 423 with the holder's lock info answers who comes second.
The log lets a test assert that no Terraform ran: it cannot plan, apply or print outputs without a request here.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bot.sandbox.faults import FaultGate, Faults
from bot.sandbox.files import write_whole

_LONGEST_NAME = 80
"""Escaped three-fold it is still a file name that every file system takes."""

_METHODS = ["GET", "POST", "DELETE", "LOCK", "UNLOCK"]


@dataclass(frozen=True, slots=True)
class CloudFaults(Faults):
    """Switches of the state backend beside the common ones.

    `refuse` names states that answer 403, `hold` names states whose lock somebody else appears to hold (`holder`).
    """

    refuse: tuple[str, ...] = ()
    hold: tuple[str, ...] = ()
    holder: str = "somebody@elsewhere"


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request to a state: when (UTC, ISO 8601), what and what came of it."""

    at: str
    method: str
    state: str
    status: int


class Cloud:
    """The backend, with everything it knows under one directory, so that it goes on where it stopped."""

    def __init__(self, directory: Path) -> None:
        self._states = directory / "states"
        self._states.mkdir(parents=True, exist_ok=True)
        self._log_file = directory / "log.jsonl"
        self._log = [LoggedRequest(**json.loads(line)) for line in _complete_lines(self._log_file)]
        app = Starlette(
            routes=[
                Route("/_sandbox/faults", self._fault_endpoint, methods=["GET", "POST", "DELETE"]),
                Route("/_sandbox/log", self._log_endpoint, methods=["GET", "DELETE"]),
                Route("/state/{name:path}", self._state_endpoint, methods=_METHODS),
            ]
        )
        self.asgi = FaultGate(app, CloudFaults(), _unavailable)

    @property
    def faults(self) -> CloudFaults:
        """The fault switches; assign to change them."""
        return self.asgi.faults

    @faults.setter
    def faults(self, faults: CloudFaults) -> None:
        self.asgi.faults = faults

    def requests(self, state: str | None = None) -> tuple[LoggedRequest, ...]:
        """What was asked since the log was last cleared, of one state or of all."""
        return tuple(entry for entry in self._log if state is None or entry.state == state)

    def counts(self, state: str | None = None) -> dict[str, int]:
        """Requests by method since the log was last cleared; empty means that no Terraform ran."""
        return dict(Counter(entry.method for entry in self.requests(state)))

    def clear_log(self) -> None:
        """Forget the requests so far."""
        self._log = []
        self._log_file.unlink(missing_ok=True)

    def names(self) -> tuple[str, ...]:
        """The states that exist or existed, sorted."""
        return tuple(sorted(unquote(folder.name) for folder in self._states.iterdir()))

    def read_state(self, name: str) -> dict[str, Any] | None:
        """The current state as Terraform wrote it, or None."""
        body = self._current(name)
        return None if body is None else json.loads(body)

    def write_state(self, name: str, state: Mapping[str, Any]) -> None:
        """Put a state in place as another team's Terraform would have done, without an entry in the log."""
        self._store(name, json.dumps(state).encode())

    def outputs(self, name: str) -> dict[str, Any]:
        """The output values of the current state by name."""
        state = self.read_state(name) or {}
        return {key: output["value"] for key, output in state.get("outputs", {}).items()}

    def versions(self, name: str) -> tuple[dict[str, Any], ...]:
        """Every state that was ever written, oldest first."""
        return tuple(json.loads(file.read_bytes()) for file in self._version_files(name))

    def lock(self, name: str) -> dict[str, Any] | None:
        """The lock info of whoever holds the state's lock, or None."""
        if name in self.faults.hold:
            return _foreign_lock(name, self.faults.holder)
        file = self._folder(name) / "lock.json"
        return json.loads(file.read_bytes()) if file.exists() else None

    def break_lock(self, name: str) -> None:
        """Remove a lock as an operator would who knows that its holder is gone."""
        (self._folder(name) / "lock.json").unlink(missing_ok=True)

    async def _fault_endpoint(self, request: Request) -> Response:
        return await self.asgi.endpoint(request)

    async def _log_endpoint(self, request: Request) -> Response:
        if request.method == "DELETE":
            self.clear_log()
        entries = self.requests(request.query_params.get("state"))
        counts = Counter(entry.method for entry in entries)
        shown = [{"at": e.at, "method": e.method, "state": e.state, "status": e.status} for e in entries]
        return JSONResponse({"counts": counts, "requests": shown})

    async def _state_endpoint(self, request: Request) -> Response:
        name = request.path_params["name"].strip("/")
        body = await request.body()
        if not 0 < len(name) <= _LONGEST_NAME:
            return PlainTextResponse(f"name the state in 1 to {_LONGEST_NAME} characters: /state/NAME", 404)
        if name in self.faults.refuse:
            response: Response = PlainTextResponse(f"access to state {name} is denied", status_code=403)
        else:
            response = self._answer(request, name, body)
        self._record(request.method, name, response.status_code)
        return response

    def _answer(self, request: Request, name: str, body: bytes) -> Response:
        match request.method:
            case "GET" | "HEAD":
                current = self._current(name)
                if current is None:
                    return PlainTextResponse(f"there is no state {name}", status_code=404)
                return Response(current, media_type="application/json")
            case "LOCK":
                return self._take_lock(name, body)
            case "UNLOCK":
                return self._give_lock(name, body)
            case method:
                holder = self.lock(name)
                if holder is not None and holder.get("ID") != request.query_params.get("ID"):
                    return JSONResponse(holder, status_code=423)
                return self._remove(name) if method == "DELETE" else self._write(request, name, body)

    def _write(self, request: Request, name: str, body: bytes) -> Response:
        digest = request.headers.get("content-md5")
        if digest and digest != base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode():
            return PlainTextResponse("Content-MD5 does not match the body", status_code=400)
        if not isinstance(_json_or_none(body), dict):
            return PlainTextResponse("the state must be a JSON object", status_code=400)
        self._store(name, body)
        return Response(status_code=200)

    def _remove(self, name: str) -> Response:
        (self._folder(name) / "current.json").unlink(missing_ok=True)
        return Response(status_code=200)

    def _take_lock(self, name: str, body: bytes) -> Response:
        wanted = _json_or_none(body)
        if not isinstance(wanted, dict) or not wanted.get("ID"):
            return PlainTextResponse("a lock needs lock info with an ID", status_code=400)
        holder = self.lock(name)
        if holder is not None:
            return JSONResponse(holder, status_code=423)
        write_whole(self._folder(name) / "lock.json", body)
        return Response(status_code=200)

    def _give_lock(self, name: str, body: bytes) -> Response:
        # `terraform force-unlock` sends an empty body over http, so an empty one cannot be told from a forced one.
        holder, given = self.lock(name), _json_or_none(body)
        if holder is not None and isinstance(given, dict) and given.get("ID") != holder.get("ID"):
            return JSONResponse(holder, status_code=423)
        self.break_lock(name)
        return Response(status_code=200)

    def _folder(self, name: str) -> Path:
        # Every dot is escaped too, so that no name is `..` or hidden.
        return self._states / quote(name, safe="").replace(".", "%2E")

    def _current(self, name: str) -> bytes | None:
        file = self._folder(name) / "current.json"
        return file.read_bytes() if file.exists() else None

    def _version_files(self, name: str) -> list[Path]:
        return sorted(self._folder(name).glob("version-*.json"))

    def _store(self, name: str, body: bytes) -> None:
        number = len(self._version_files(name)) + 1
        write_whole(self._folder(name) / f"version-{number:06}.json", body)
        write_whole(self._folder(name) / "current.json", body)

    def _record(self, method: str, state: str, status: int) -> None:
        entry = LoggedRequest(datetime.now(UTC).isoformat(), method, state, status)
        self._log.append(entry)
        line = {"at": entry.at, "method": method, "state": state, "status": status}
        with self._log_file.open("a") as file:
            file.write(json.dumps(line) + "\n")


def _complete_lines(file: Path) -> list[str]:
    """The lines of a log; the last one is left out when a crash cut it short."""
    if not file.exists():
        return []
    *lines, rest = file.read_text().split("\n")
    if rest:
        file.write_text("".join(f"{line}\n" for line in lines))
    return lines


def _json_or_none(body: bytes) -> object:
    try:
        value: object = json.loads(body)
    except ValueError:
        return None
    return value


def _foreign_lock(name: str, holder: str) -> dict[str, Any]:
    return {
        "ID": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{holder}/{name}")),
        "Operation": "OperationTypeApply",
        "Info": "",
        "Who": holder,
        "Version": "1.11.4",
        "Created": "2026-01-05T09:00:00.000000Z",
        "Path": "",
    }


def _unavailable(status: int) -> Response:
    return PlainTextResponse("the state backend does not answer", status_code=status)
