"""The REST server: routing, authentication, permission, validation, faults, limits and headers around each handler."""

import asyncio
import hashlib
import json
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from bot.sandbox.github.auth import ANONYMOUS, Actor, authenticate, require_permission
from bot.sandbox.github.errors import DOCS, Refused, not_found
from bot.sandbox.github.faults import Faults, RequestFault
from bot.sandbox.github.records import LoggedRequest
from bot.sandbox.github.rest import (
    apps,
    body,
    checks,
    deployments,
    gitdata,
    issues,
    people,
    pulls,
    repositories,
    search,
    workflows,
)
from bot.sandbox.github.rest.call import Answer, Call, Route
from bot.sandbox.github.views.lens import Lens
from bot.sandbox.github.world import World

# Narrow paths stand before wide ones: the first route that fits is taken.
ROUTES: list[Route] = [
    *apps.ROUTES,
    *checks.ROUTES,
    *repositories.ROUTES,
    *gitdata.ROUTES,
    *pulls.ROUTES,
    *issues.ROUTES,
    *deployments.ROUTES,
    *people.ROUTES,
    *search.ROUTES,
    *workflows.ROUTES,
]
API_VERSIONS = ("2022-11-28", "2026-03-10")
HOUR = 3600
_BEFORE = ("5xx-before", "secondary-limit", "primary-limit")


@dataclass(frozen=True, slots=True)
class Received:
    """An HTTP request in plain values; `path` is decoded and begins below the API's root."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    raw: bytes


class RestServer:
    """Answers REST requests on a world."""

    def __init__(self, world: World, base_url: str, faults: Faults) -> None:
        self._lens = Lens(world, base_url)
        self._faults = faults
        self._routes = [(route.pattern(), route) for route in ROUTES]
        self._used: dict[str, tuple[int, int]] = {}
        self._made: dict[str, float] = {}

    async def handle(self, request: Request) -> Response:
        """The Starlette endpoint for everything below the API's root."""
        try:
            body = await request.body()
        except ClientDisconnect:
            # Whoever asked has died in the middle of it, and nobody reads the answer.
            return Response(status_code=400)
        received = Received(
            request.method,
            "/" + request.path_params["path"],
            dict(request.query_params),
            request.headers,
            body,
        )
        slow = self._faults.for_request(received.method, received.path, ("slow",))
        if slow:
            await asyncio.sleep(slow.delay)
        fault = self._faults.for_request(received.method, received.path, _BEFORE)
        if fault:
            return self._reply(received, ANONYMOUS, _broken(fault))
        answer, actor = await asyncio.to_thread(self._answer, received)
        lost = self._faults.for_request(received.method, received.path, ("5xx-after",))
        return self._reply(received, actor, _broken(lost) if lost else answer)

    # ---- in a worker thread

    def _answer(self, received: Received) -> tuple[Answer, Actor]:
        world = self._lens.world
        actor = ANONYMOUS
        with world.store.lock:
            try:
                actor = authenticate(world, received.headers.get("authorization"))
                answer = self._dispatch(received, actor)
            except Refused as refused:
                answer = Answer(refused.status, refused.body(), refused.headers)
            self._note(received, actor, answer)
        return answer, actor

    def _dispatch(self, received: Received, actor: Actor) -> Answer:
        if not received.headers.get("user-agent"):
            raise Refused(403, "Request forbidden by administrative rules. Please send a User-Agent header.")
        version = received.headers.get("x-github-api-version", API_VERSIONS[0])
        if version not in API_VERSIONS:
            raise Refused(400, f"Version {version} is not supported.")
        route, params = self._route(received)
        young = self._faults.for_request(received.method, received.path, ("404-young",))
        if young and self._age_ms(received.path) < young.young_ms:
            raise not_found()
        world = self._lens.world
        repo = None
        if "repo" in params and route.needs:
            repo = world.repository(params["owner"], params["repo"])
            require_permission(world, actor, repo, route.needs, route.role)
        elif route.method != "GET" and actor is ANONYMOUS and not received.path.startswith("/app-manifests/"):
            raise Refused(401, "Requires authentication")
        fields = body.parse(received.raw) if route.method != "GET" else {}
        body.check(route.body or {}, fields)
        query = self._query(received, actor)
        call = Call(self._lens, actor, received.path, params, query, fields, repo)
        return self._stale(received, route.handler(call))

    def _route(self, received: Received) -> tuple[Route, dict[str, str]]:
        for pattern, route in self._routes:
            if route.method == received.method:
                match = pattern.fullmatch(received.path)
                if match:
                    return route, match.groupdict()
        raise not_found()

    def _query(self, received: Received, actor: Actor) -> Mapping[str, str]:
        if received.path != "/rate_limit":
            return received.query
        remaining, reset = self._left(actor)
        return {**received.query, "_remaining": str(remaining), "_reset": str(reset)}

    def _stale(self, received: Received, answer: Answer) -> Answer:
        """Carry out `stale-mergeable`: the pull request looks as if nothing had been computed yet."""
        if not isinstance(answer.body, dict) or "mergeable" not in answer.body:
            return answer
        if not self._faults.for_request(received.method, received.path, ("stale-mergeable",)):
            return answer
        return replace(answer, body={**answer.body, "mergeable": None, "mergeable_state": "unknown"})

    def _note(self, received: Received, actor: Actor, answer: Answer) -> None:
        """Log what changes things, and remember when things were made."""
        if received.method == "GET":
            return
        world = self._lens.world
        world.store.add(LoggedRequest(world.now(), actor.name, received.method, received.path, answer.status))
        url = answer.body.get("url") if isinstance(answer.body, dict) else None
        if answer.status == 201 and isinstance(url, str):
            path = url.removeprefix(self._lens.api)
            # A ref is read under another path than it is made under, a pull request also as an issue.
            for twin in (path, path.replace("/git/refs/", "/git/ref/"), path.replace("/pulls/", "/issues/")):
                self._made[twin] = time.monotonic()

    def _age_ms(self, path: str) -> float:
        made = self._made.get(path)
        if made is None:
            parent = re.match(r"/repos/[^/]+/[^/]+/(pulls|issues|deployments|check-runs)/\d+", path)
            made = self._made.get(parent.group()) if parent else None
        return float("inf") if made is None else (time.monotonic() - made) * 1000

    # ---- headers

    def _left(self, actor: Actor) -> tuple[int, int]:
        """How many requests the caller has left, and when that is counted anew (Unix seconds)."""
        now = int(self._lens.world.clock().timestamp())
        used, reset = self._used.get(actor.name, (0, now + HOUR))
        if reset <= now:
            used, reset = 0, now + HOUR
        self._used[actor.name] = (used, reset)
        return max(people.RATE_LIMIT - used, 0), reset

    def _reply(self, received: Received, actor: Actor, answer: Answer) -> Response:
        headers = {name.lower(): value for name, value in answer.headers.items()}
        content = b"" if answer.body is None else json.dumps(answer.body, ensure_ascii=False).encode()
        status = answer.status
        if received.method == "GET" and status == 200:
            headers["etag"] = f'W/"{hashlib.sha256(content).hexdigest()}"'
            known = [mark.strip() for mark in received.headers.get("if-none-match", "").split(",")]
            if headers["etag"] in known:
                status, content = 304, b""
        left, reset = self._left(actor)
        # A 304 and the question for the limit itself are free.
        if status != 304 and received.path != "/rate_limit":
            used, _ = self._used[actor.name]
            self._used[actor.name] = (used + 1, reset)
            left = max(left - 1, 0)
        standard = {
            "x-ratelimit-limit": str(people.RATE_LIMIT),
            "x-ratelimit-remaining": str(left),
            "x-ratelimit-used": str(people.RATE_LIMIT - left),
            "x-ratelimit-reset": str(reset),
            "x-ratelimit-resource": "core",
            "x-github-media-type": "github.v3; format=json",
            "x-github-request-id": uuid.uuid4().hex[:20].upper(),
        }
        kind = {"content-type": "application/json; charset=utf-8"} if content else {}
        return Response(content, status, {**standard, **kind, **headers})


def _broken(fault: RequestFault) -> Answer:
    """The answer of a request that a fault hits."""
    shown: dict[str, Any] = {"message": "Server Error", "documentation_url": DOCS}
    if fault.kind == "secondary-limit":
        shown["message"] = (
            "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
        )
        status = fault.status if fault.status in (403, 429) else 403
        return Answer(status, shown, {"retry-after": str(fault.retry_after)})
    if fault.kind == "primary-limit":
        shown["message"] = "API rate limit exceeded."
        reset = str(int(time.time()) + fault.retry_after)
        return Answer(403, shown, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset})
    return Answer(fault.status, shown)
