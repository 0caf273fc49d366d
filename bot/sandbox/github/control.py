"""The sandbox's own routes under `/_sandbox`: faults, the request log, and acting as a person."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from bot.sandbox.github.actions import Actions
from bot.sandbox.github.errors import Refused
from bot.sandbox.github.faults import Faults
from bot.sandbox.github.packages import Package
from bot.sandbox.github.pulls import NewPull
from bot.sandbox.github.records import LoggedRequest, PullRequest
from bot.sandbox.github.rest import body
from bot.sandbox.github.world import World
from bot.sandbox.serving import is_same_origin


@dataclass(frozen=True, slots=True)
class _Asked:
    """One action that a person is to do: the repository, the number or id in the path, and the JSON body."""

    user: str
    repository: str
    id: int
    fields: Mapping[str, Any]


Act = Callable[[Actions, _Asked], Any]


def _number(pull: PullRequest) -> dict[str, int]:
    return {"number": pull.number}


def _push(actions: Actions, asked: _Asked) -> dict[str, str]:
    files = {path: None if text is None else text.encode() for path, text in asked.fields["files"].items()}
    sha = actions.push(asked.user, asked.repository, asked.fields["branch"], files, asked.fields["message"])
    return {"sha": sha}


def _merge(actions: Actions, asked: _Asked) -> dict[str, str]:
    method, bypass = asked.fields.get("method", "merge"), asked.fields.get("bypass", False)
    return {"sha": actions.merge(asked.user, asked.repository, asked.id, method, bypass=bypass)}


def _open(actions: Actions, asked: _Asked) -> dict[str, int]:
    fields = asked.fields
    new = NewPull(fields["title"], fields["head"], fields["base"], fields.get("body"))
    return _number(actions.open_pull(asked.user, asked.repository, new))


def _publish(actions: Actions, asked: _Asked) -> None:
    fields = asked.fields
    package = Package(fields["name"], fields["tag"], fields["digest"])
    actions.publish_package(asked.user, asked.repository, package)


_TEXT = {"body!": "string"}
# Name in the URL -> what the JSON body holds, and the call. The number in the URL is a pull request's or issue's
# number, or the id of a comment, review, check run or check suite.
ACTS: dict[str, tuple[Mapping[str, Any], Act]] = {
    "approve": (
        {"body": "string"},
        lambda do, it: {"id": do.approve(it.user, it.repository, it.id, it.fields.get("body", "")).id},
    ),
    "request-changes": (
        _TEXT,
        lambda do, it: {"id": do.request_changes(it.user, it.repository, it.id, it.fields["body"]).id},
    ),
    "review-comment": (
        _TEXT,
        lambda do, it: {"id": do.review_comment(it.user, it.repository, it.id, it.fields["body"]).id},
    ),
    "dismiss-review": (
        {"message!": "string"},
        lambda do, it: {"id": do.dismiss_review(it.user, it.repository, it.id, it.fields["message"]).id},
    ),
    "comment": (
        _TEXT,
        lambda do, it: {"id": do.comment(it.user, it.repository, it.id, it.fields["body"]).id},
    ),
    "edit-comment": (
        _TEXT,
        lambda do, it: {"id": do.edit_comment(it.user, it.repository, it.id, it.fields["body"]).id},
    ),
    "delete-comment": ({}, lambda do, it: do.delete_comment(it.user, it.repository, it.id)),
    "open-issue": (
        {"title!": "string", "body": "string"},
        lambda do, it: {
            "number": do.open_issue(
                it.user, it.repository, it.fields["title"], it.fields.get("body", "")
            ).number
        },
    ),
    "open-pull": ({"title!": "string", "head!": "string", "base!": "string", "body": "string"}, _open),
    "edit": (
        {"title": "string", "body": "string", "base": "string"},
        lambda do, it: _number(do.edit(it.user, it.repository, it.id, it.fields)),
    ),
    "merge": ({"method": "string", "bypass": "boolean"}, _merge),
    "enqueue": ({}, lambda do, it: do.enqueue(it.user, it.repository, it.id)),
    "close": ({}, lambda do, it: _number(do.close(it.user, it.repository, it.id))),
    "reopen": ({}, lambda do, it: _number(do.reopen(it.user, it.repository, it.id))),
    "update-branch": ({}, lambda do, it: {"sha": do.update_branch(it.user, it.repository, it.id)}),
    "revert": ({}, lambda do, it: _number(do.revert(it.user, it.repository, it.id))),
    "push": ({"branch!": "string", "message!": "string", "files!": {"*": "any"}}, _push),
    "delete-branch": (
        {"branch!": "string"},
        lambda do, it: do.delete_branch(it.user, it.repository, it.fields["branch"]),
    ),
    "rerun-check": ({}, lambda do, it: do.rerun_check(it.user, it.repository, it.id)),
    "rerun-all-checks": ({}, lambda do, it: do.rerun_all_checks(it.user, it.repository, it.id)),
    "press": (
        {"identifier!": "string"},
        lambda do, it: do.press(it.user, it.repository, it.id, it.fields["identifier"]),
    ),
    "publish-package": ({"name!": "string", "tag!": "string", "digest!": "string"}, _publish),
}


class Control:
    """The routes under `/_sandbox`."""

    def __init__(self, world: World, base_url: str, faults: Faults, actions: Actions) -> None:
        self._world = world
        self._base_url = base_url
        self._faults = faults
        self._actions = actions

    def routes(self) -> list[BaseRoute]:
        """All routes, as a literal list."""
        act = "/_sandbox/as/{user}/{owner}/{name}/{act}"
        return [
            Route("/_sandbox/faults", self._add_faults, methods=["POST"]),
            Route("/_sandbox/faults", self._clear_faults, methods=["DELETE"]),
            Route("/_sandbox/requests", self._requests, methods=["GET"]),
            Route(act, self._act, methods=["POST"]),
            Route(act + "/{id:int}", self._act, methods=["POST"]),
        ]

    async def _add_faults(self, request: Request) -> Response:
        if not is_same_origin(request):
            return _foreign()
        try:
            self._faults.add(body.parse(await request.body()))
        except Refused as refused:
            return JSONResponse(refused.body(), refused.status)
        return Response(status_code=204)

    async def _clear_faults(self, request: Request) -> Response:
        if not is_same_origin(request):
            return _foreign()
        self._faults.clear()
        return Response(status_code=204)

    async def _requests(self, request: Request) -> Response:
        del request
        found = await asyncio.to_thread(self._world.store.find, LoggedRequest)
        names = ("at", "actor", "method", "path", "status")
        return JSONResponse([{name: getattr(item, name) for name in names} for item in found])

    async def _act(self, request: Request) -> Response:
        """Act as a person; 404 for an act that does not exist, else what GitHub would answer on the web."""
        if not is_same_origin(request):
            return _foreign()
        raw = await request.body()
        try:
            return JSONResponse(await asyncio.to_thread(self._do, request.path_params, raw) or {})
        except Refused as refused:
            return JSONResponse(refused.body(), refused.status)

    def _do(self, params: Mapping[str, Any], raw: bytes) -> Any:
        if params["act"] not in ACTS:
            raise Refused(404, f"There is no act {params['act']!r}; the acts are {', '.join(ACTS)}.")
        described, act = ACTS[params["act"]]
        fields = body.parse(raw)
        body.check(described, fields)
        repository = f"{params['owner']}/{params['name']}"
        return act(self._actions, _Asked(params["user"], repository, params.get("id", 0), fields))


def _foreign() -> Response:
    """What a page of another origin gets that tries to act here."""
    return JSONResponse({"message": "Only the sandbox's own pages and programs may do this."}, 403)
